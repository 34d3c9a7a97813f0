"""Secrets in conf: only references to them, `${env:NAME}` or `${file:PATH}`, which are followed when a server or client starts."""

import os
import re
from pathlib import Path
from typing import Annotated

from pydantic import Field

from orchestration.conf.place import absolute
from orchestration.errors import TidemarkError

REFERENCE = r"^\$\{(env:[A-Za-z_][A-Za-z0-9_]*|file:[^{}\x00-\x1f]+)\}$"
HINT = "write ${env:NAME} or ${file:PATH}, so that conf, logs and messages hold no secret"
Secret = Annotated[
    str,
    Field(strict=True, max_length=1000, pattern=REFERENCE, json_schema_extra={"patternErrorMessage": HINT, "writeOnly": True}),
]
NOTHING_THERE = (KeyError, OSError, ValueError)
"""Raised by `followed`. Not to be shown: of a file that is no text the message would show its bytes."""


def followed(kind: str, place: str | Path) -> str:
    """The value of a variable (`env`), or the content of a file without its line end; raises one of NOTHING_THERE."""
    return os.environ[str(place)] if kind == "env" else Path(place).read_text(encoding="utf-8").rstrip("\r\n")


def secret(folder: Path, reference: str) -> str:
    """What a reference of the conf in `folder` leads to, without the line end of a file; TidemarkError where there is nothing."""
    match = re.fullmatch(REFERENCE, reference)
    if match is None:
        raise TidemarkError(f"a secret of {folder / 'sources.yml'} is no reference; {HINT}.")
    kind, _, name = match[1].partition(":")
    try:
        found = followed(kind, name if kind == "env" else absolute(folder, name))
    except NOTHING_THERE:
        found = ""
    if not found:
        where = f"the variable {name}" if kind == "env" else f"the file {name}"
        raise TidemarkError(f"{where}, which {folder / 'sources.yml'} names for a secret, is missing or empty; set it, then start again.")
    return found


def with_absolute_path(folder: Path, text: str) -> str:
    """The same reference for whoever does not know the conf in `folder`; any other text as it is."""
    match = re.fullmatch(REFERENCE, text)
    is_file = match is not None and match[1].startswith("file:")
    return f"${{file:{folder.resolve().parent / Path(text[len('${file:') : -1]).expanduser()}}}" if is_file else text
