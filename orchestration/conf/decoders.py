"""Check the decoders of a source: each is there, and takes the arguments that conf gives it."""

import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any, get_args, get_type_hints

from pydantic import TypeAdapter, ValidationError

from expectations.settings import Step
from expectations.wording import hint, quoted
from orchestration.conf.source_settings import SourceSettings
from orchestration.conf.structure import Finding
from silver.decoders.steps import step_of
from silver.decoders.user_code import module_of
from silver.spec import BINARY

GIVEN = ("content", "message", "shape", "names")
"""Parameters of built-in decoders that are no arguments of conf."""
KINDS: dict[Any, str] = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", list[str]: "a list of texts"}


def check_decoders(base: tuple[Step, ...], source: SourceSettings) -> Iterator[Finding]:
    """Say which decoder of a source is none, or has arguments that it does not take."""
    from silver.decoders.chain import BUILT_IN  # with Arrow, which takes a while

    for at, written in enumerate(source.decode):
        step = step_of(written)
        function = BUILT_IN.get(step.name)
        if function is None and ":" in step.name:
            own = _own_function(step.name, source.code)
            if isinstance(own, str):
                yield Finding.of((*base, "decode"), own, at)
                continue
            function = own
        if function is None:
            remedy = hint(step.name, BUILT_IN, f"they are {', '.join(sorted(BUILT_IN))}; your own are module:function")
            yield Finding.of((*base, "decode"), f"names {quoted(step.name)}, which is no decoder; {remedy}", at)
            continue
        given = {**step.arguments} | ({"field": step.field} if step.field is not None else {})
        for problem in _wrong_arguments(step.name, function, given):
            yield Finding.of((*base, "decode"), f"has {step.name}, {problem}", at, *([step.name] if isinstance(written, dict) else []))
    if source.format != "json":
        remedy = (
            f"name {source.format} in decode instead" if source.format in BINARY else "they make objects, which are read as JSON; remove it"
        )
        yield Finding.of((*base, "format"), f"is {source.format}, but {base[1]} has decoders; {remedy}")
    if source.registry and step_of(source.decode[0]).name not in BINARY:
        yield Finding.of(
            (*base, "registry"), "is for payloads that begin with the id of their schema, but other decoders come first; set schema"
        )


def _own_function(name: str, code: Mapping[str, str]) -> Any:
    """The function of a user's; else what is wrong, as the second half of a sentence."""
    module, _, function = name.partition(":")
    if module not in code:
        return f"names {quoted(name)}, but the conf folder has no {module}.py; put it there"
    try:
        members = vars(module_of(module, code[module]))
    except Exception as error:
        return f"names {quoted(name)}, but {module}.py cannot be imported: {type(error).__name__}: {error}"
    functions = [name for name, member in members.items() if inspect.isfunction(member)]
    if function not in functions:
        remedy = hint(function, functions, f"it has {', '.join(functions) or 'no function'}")
        return f"names {quoted(name)}, but {module}.py has no function {quoted(function)}; {remedy}"
    return members[function]


def _wrong_arguments(decoder: str, function: Any, given: Mapping[str, Any]) -> Iterator[str]:
    declared = inspect.signature(function).parameters
    parameters = {name: parameter for name, parameter in [*declared.items()][1:] if name not in GIVEN}
    kinds = {} if ":" in decoder else get_type_hints(function)
    names = ("field", *parameters)
    for name in given.keys() - {*names}:
        yield f"which has no argument {quoted(name)}; {hint(name, names, 'it has ' + ', '.join(names))}"
    for name, parameter in parameters.items():
        if name not in given:
            if parameter.default is parameter.empty:
                yield f"which needs {name}; write for example `{decoder}: {{{name}: ..}}`"
            continue
        try:
            TypeAdapter(kinds.get(name, Any)).validate_python(given[name], strict=True)
        except ValidationError:
            texts = [text for text in get_args(kinds[name]) if isinstance(text, str)]
            wanted = f"one of {', '.join(texts)}" if texts else KINDS.get(kinds[name], "a text or a number")
            yield f"whose {name} is {quoted(given[name])}, but must be {wanted}"
        if name == "match":
            try:
                re.compile(str(given[name]))
            except re.error as error:
                yield f"whose {name} is {quoted(given[name])}, which is no regular expression ({error})"
    field = given.get("field", "x")
    if not isinstance(field, str) or not all(field.split(".")):
        yield f"whose field is {quoted(field)}; write names with single dots between them"
