"""The token that clients must know. It is kept in a file that only its owner can read, never on a command line."""

import os
import secrets
from pathlib import Path

from orchestration.errors import TidemarkError
from orchestration.location import Location
from orchestration.serving.sql.address import address_file


def default_token_file(lake: Location) -> Path:
    """One for each lake and user, outside of the lake. It survives restarts, so clients keep their token."""
    return address_file(lake).with_suffix(".token")


def load_token(file: Path) -> str:
    """The token in the file; a new one if the file does not exist. TidemarkError if others can read the file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return _read_token(file)
    token = secrets.token_urlsafe(24)
    with os.fdopen(descriptor, "w") as text:
        text.write(token + "\n")
    return token


def _read_token(file: Path) -> str:
    status = file.stat()
    if status.st_mode & 0o077 or status.st_uid != os.geteuid():
        raise TidemarkError(f"other users can read {file}: restrict it with `chmod 600 {file}`, or delete it to get a new token.")
    token = file.read_text().strip()
    if not token.isprintable() or not token.isascii() or " " in token or not token:
        raise TidemarkError(f"{file} holds no valid token (printable ASCII without spaces): delete it to get a new one.")
    return token
