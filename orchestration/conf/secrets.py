"""Secrets in conf: only references to them, `${env:NAME}` or `${file:PATH}`, which are followed when a server or client starts."""

import os
import re
from pathlib import Path
from typing import Annotated
from urllib.parse import parse_qs, urlsplit

from pydantic import Field

from orchestration.conf.place import absolute
from orchestration.conf.values import PLAIN, OfText, PlainText
from orchestration.errors import TidemarkError

REFERENCE = r"^\$\{(env:[A-Za-z_][A-Za-z0-9_]*|file:[^{}\x00-\x1f]+)\}$"
HINT = "write ${env:NAME} or ${file:PATH}, so that conf, logs and messages hold no secret"
Secret = Annotated[
    str,
    Field(strict=True, max_length=1000, pattern=REFERENCE, json_schema_extra={"patternErrorMessage": HINT, "writeOnly": True}),
]
PASSWORD = re.compile(r"password\s*=", re.IGNORECASE)
NOTHING_THERE = (KeyError, OSError, ValueError)
"""Raised by `followed`. Not to be shown: of a file that is no text the message would show its bytes."""


def followed(kind: str, place: str | Path) -> str:
    """The value of a variable (`env`), or the content of a file without its line end; raises one of NOTHING_THERE."""
    return os.environ[str(place)] if kind == "env" else Path(place).read_text(encoding="utf-8").rstrip("\r\n")


def secret(folder: Path, reference: str, file: str = "sources.yml") -> str:
    """What a reference in this file of the conf in `folder` leads to, without its line end; TidemarkError where that is nothing."""
    match = re.fullmatch(REFERENCE, reference)
    if match is None:
        raise TidemarkError(f"a secret of {folder / file} is no reference; {HINT}.")
    kind, _, name = match[1].partition(":")
    try:
        found = followed(kind, name if kind == "env" else absolute(folder, name))
    except NOTHING_THERE:
        found = ""
    if not found:
        raise TidemarkError(f"{reference}, which {folder / file} names, is missing or empty; set it for this process.")
    return found


def resolved(folder: Path, text: str, file: str) -> str:
    """The text, or what it refers to; TidemarkError where that is nothing. Never to be shown or kept."""
    return secret(folder, text, file) if re.fullmatch(REFERENCE, text) else text


def _with_absolute_path(folder: Path, text: str) -> str:
    """The same reference for whoever does not know the conf in `folder`; any other text as it is."""
    match = re.fullmatch(REFERENCE, text)
    is_file = match is not None and match[1].startswith("file:")
    return f"${{file:{folder.resolve().parent / Path(text[len('${file:') : -1]).expanduser()}}}" if is_file else text


def has_password(text: str) -> bool:
    """Whether a connection string or URL holds one; also one that cannot be read."""
    try:
        url = urlsplit(text)
        return PASSWORD.search(text) is not None or url.password is not None or any("password" in key for key in parse_qs(url.query))
    except ValueError:
        return True


def _endpoint(_: Path, text: str) -> str:
    if has_password(text):
        raise ValueError(f"holds a password in plain text; {HINT}")
    if "${" in text and not re.fullmatch(REFERENCE, text):
        raise ValueError(f"is a reference that cannot be followed; {HINT}")
    return text


def _url(folder: Path, text: str) -> str:
    if not re.match(r"https?://[^/]|\$", _endpoint(folder, text)):
        raise ValueError("is no address that begins with https:// or http://; write one")
    return text


Option = Annotated[str, OfText(_with_absolute_path, PlainText)]
"""Of librdkafka: a value, or a reference to it."""
_Hidden = Annotated[
    str,
    Field(
        strict=True,
        max_length=1000,
        pattern=r"^[^\x00-\x1f\x7f]+$",
        json_schema_extra={"patternErrorMessage": PLAIN, "writeOnly": True},
    ),
]
"""It may hold a secret that should be a reference: no message shows it."""
Endpoint = Annotated[str, OfText(_endpoint, _Hidden)]
"""An address or a connection string, or a reference to it."""
Url = Annotated[str, OfText(_url, _Hidden)]
