"""The word that clients say to be let in: kept in a file that only its owner can read, never on a command line."""

import os
import secrets
from pathlib import Path

from orchestration.errors import TidemarkError
from orchestration.serving.sql.address import address_file


def usual_file(lake: Path) -> Path:
    """One for each lake and user, outside of the lake: clients that know it know it after a restart, too."""
    return address_file(lake).with_suffix(".token")


def secret_in(file: Path) -> str:
    """What the file holds, a new word where it is not there; TidemarkError where others could know it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        made = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return _kept_in(file)
    word = secrets.token_urlsafe(24)
    with os.fdopen(made, "w") as text:
        text.write(word + "\n")
    return word


def _kept_in(file: Path) -> str:
    about = file.stat()
    if about.st_mode & 0o077 or about.st_uid != os.geteuid():
        raise TidemarkError(f"others than you can know what {file} holds: make it yours alone with `chmod 600 {file}`, or delete it.")
    word = file.read_text().strip()
    if not word.isprintable() or not word.isascii() or " " in word or not word:
        raise TidemarkError(
            f"{file} holds no word that a client could say, in letters, digits and signs: delete it, and there will be one."
        )
    return word
