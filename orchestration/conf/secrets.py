"""Kinds of settings that are secrets: only references to them, which are followed when a server or client starts (secrets.py)."""

import re
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qs, urlsplit

from pydantic import Field, PlainSerializer

from expectations.settings import PLAIN, PlainText
from orchestration.conf.place import with_absolute_path
from orchestration.conf.values import OfText
from orchestration.secrets import REFERENCE

HINT = "write ${env:NAME} or ${file:PATH}, so that conf, logs and messages hold no secret"
PASSWORD = re.compile(r"password\s*=", re.IGNORECASE)


def has_password(text: str) -> bool:
    """Whether a connection string or URL holds one; also one that cannot be read."""
    try:
        url = urlsplit(text)
        return PASSWORD.search(text) is not None or url.password is not None or any("password" in key for key in parse_qs(url.query))
    except ValueError:
        return True


def _endpoint(folder: Path, text: str) -> str:
    if has_password(text):
        raise ValueError(f"holds a password in plain text; {HINT}")
    if "${" in text and not re.fullmatch(REFERENCE, text):
        raise ValueError(f"is a reference that cannot be followed; {HINT}")
    return with_absolute_path(folder, text)


def _url(folder: Path, text: str) -> str:
    if not re.match(r"https?://[^/]|\$", _endpoint(folder, text)):
        raise ValueError("is not an address that begins with https:// or http://; write one")
    return text


def _hidden(pattern: str, hint: str) -> Any:
    """A text that no message shows; of one that is no reference JSON has a digest."""
    return Annotated[
        str,
        Field(strict=True, max_length=1000, pattern=pattern, json_schema_extra={"patternErrorMessage": hint, "writeOnly": True}),
        PlainSerializer(_digest, return_type=str, when_used="json"),
    ]


def _digest(text: str) -> str:
    return text if re.fullmatch(REFERENCE, text) else f"hidden, digest {sha256(text.encode()).hexdigest()[:8]}"


Secret = Annotated[str, OfText(with_absolute_path, _hidden(REFERENCE, HINT))]
Name = Annotated[str, OfText(with_absolute_path)]
"""It may be a reference."""
Option = Annotated[str, OfText(with_absolute_path, PlainText)]
"""A value for librdkafka, or a reference to it."""
Endpoint = Annotated[str, OfText(_endpoint, _hidden(r"^[^\x00-\x1f\x7f]+$", PLAIN))]
"""An address or a connection string, or a reference to it."""
Url = Annotated[str, OfText(_url, _hidden(r"^[^\x00-\x1f\x7f]+$", PLAIN))]
