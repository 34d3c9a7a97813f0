"""Follow references to secrets, `${env:NAME}` or `${file:PATH}`: conf holds nothing else."""

import os
import re
from pathlib import Path
from typing import Any

from orchestration.errors import TidemarkError

REFERENCE = r"^\$\{(env:[A-Za-z_][A-Za-z0-9_]*|file:[^{}\x00-\x1f]+)\}$"


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
