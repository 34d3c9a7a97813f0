"""Types of settings of sources.yml of which YAML may be shorter than what Python gets, or which have a check of their own."""

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo
from pydantic_core import PydanticCustomError

from expectations.settings import Key, Names, Some, Text, UniqueSome, expression, of_pattern, unreadable
from expectations.wording import quoted

ELEMENT = "each."
"""A field path that begins with this begins at the element of the list `PayloadFormat.each`, not at the event."""
PATH = "Dotted path of a field, or name of a CSV column. With `each`, a path that begins with `each.` begins at the element of the list."
Separator = Annotated[str, of_pattern(r"^[^\r\n\x00]$", "write one character, no line end", 1, 1)]
Quote = Annotated[
    str, of_pattern(r"^[!-/:-@\[-`{-~\u00a1-\uffff]$", "write one character that is no letter, digit, blank or picture", 1, 1)
]
MeasuredField = Annotated[Text, Field(description=PATH, examples=["data.temp"])]


def _with_group(text: str) -> str:
    if not re.compile(expression(text)).groups:
        raise unreadable(f"is {quoted(text)}, which has no group; put ( ) around the part to take, for example '^(.+)\\.txt$'")
    return text


Pattern = Annotated[Text, AfterValidator(_with_group)]


def _fields_of_names(written: Any, info: ValidationInfo) -> Any:
    """A list names metrics whose fields have the same names: those of the elements, where the source has a list of them."""
    if not isinstance(written, list) or not written or not all(isinstance(name, str) for name in written):
        return written
    if len(set(written)) < len(written):
        raise PydanticCustomError("twice", "names a metric twice")
    return {name: f"{ELEMENT if info.data.get('each') else ''}{name}" for name in written}


_Fields = Some[dict[Annotated[Key, Names("metrics")], MeasuredField]]
MeasuredFields = Annotated[_Fields, BeforeValidator(_fields_of_names, json_schema_input_type=_Fields | UniqueSome[Key])]

_Marks = UniqueSome[Text]
CommentMarks = Annotated[
    _Marks, BeforeValidator(lambda written: [written] if isinstance(written, str) else written, json_schema_input_type=Text | _Marks)
]


def _decoders(written: Any) -> Any:
    """A decoder alone is a list of one."""
    steps = written if isinstance(written, list | tuple) else [written]
    for step in steps:
        is_named = isinstance(step, dict) and len(step) == 1 and all(isinstance(argument, str | dict) for argument in step.values())
        if not is_named and not isinstance(step, str):
            raise unreadable(f"has {quoted(step)}; write the name of a decoder, `name: field`, or `name: {{argument: value}}`")
    return steps


_Decoder = Text | Annotated[dict[Text, Any], Field(min_length=1, max_length=1)]
Decoders = Annotated[
    tuple[Any, ...], Field(max_length=10), BeforeValidator(_decoders, json_schema_input_type=_Decoder | UniqueSome[_Decoder])
]
