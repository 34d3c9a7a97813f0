"""Secrets in conf: only references to them, `${env:NAME}` or `${file:PATH}`, which are followed when a server or client starts."""

import os
import re
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qs, urlsplit

from pydantic import Field, PlainSerializer

from expectations.settings import PLAIN, PlainText
from orchestration.conf.place import absolute
from orchestration.conf.values import OfText
from orchestration.errors import TidemarkError

REFERENCE = r"^\$\{(env:[A-Za-z_][A-Za-z0-9_]*|file:[^{}\x00-\x1f]+)\}$"
HINT = "write ${env:NAME} or ${file:PATH}, so that conf, logs and messages hold no secret"
PASSWORD = re.compile(r"password\s*=", re.IGNORECASE)


def secret(reference: str, file: str = "sources.yml") -> str:
    """Follow a reference in this file of a conf and return the secret without its line end; TidemarkError if it is missing or empty."""
    kind, _, name = reference[2:-1].partition(":")
    try:
        content = os.environ[name] if kind == "env" else Path(name).read_text(encoding="utf-8").rstrip("\r\n")
    except (KeyError, OSError, ValueError):  # of a file that is no text the message would show its bytes
        content = ""
    if not content:
        raise TidemarkError(f"{reference}, which {file} names, is missing or empty; set it for this process.")
    return content


def resolved(text: str, file: str = "sources.yml") -> str:
    """The text, or what it refers to; TidemarkError where that is nothing. Never to be shown or kept."""
    return secret(text, file) if re.fullmatch(REFERENCE, text) else text


def aws_keys(settings: Any) -> dict[str, str]:
    """Arguments of boto3 for the two keys that settings refer to; none if boto3 has to find them itself."""
    return (
        {"aws_access_key_id": secret(settings.access_key), "aws_secret_access_key": secret(settings.secret_key)}
        if settings.access_key
        else {}
    )


def _with_absolute_path(folder: Path, text: str) -> str:
    """A reference for whoever does not know the conf in `folder`; any other text as it is. Links stay: a secret may be renewed."""
    match = re.fullmatch(REFERENCE, text)
    is_file = match is not None and match[1].startswith("file:")
    return f"${{file:{absolute(folder, text[len('${file:') : -1], follows_links=False)}}}" if is_file else text


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
    return _with_absolute_path(folder, text)


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


Secret = Annotated[str, OfText(_with_absolute_path, _hidden(REFERENCE, HINT))]
Name = Annotated[str, OfText(_with_absolute_path)]
"""It may be a reference."""
Option = Annotated[str, OfText(_with_absolute_path, PlainText)]
"""A value for librdkafka, or a reference to it."""
Endpoint = Annotated[str, OfText(_endpoint, _hidden(r"^[^\x00-\x1f\x7f]+$", PLAIN))]
"""An address or a connection string, or a reference to it."""
Url = Annotated[str, OfText(_url, _hidden(r"^[^\x00-\x1f\x7f]+$", PLAIN))]
