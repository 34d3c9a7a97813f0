"""How a user reaches the server of a lake: files below XDG_STATE_HOME that only this user can read."""

import getpass
import hashlib
import os
import re
import secrets
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile

import msgspec

from orchestration.errors import ConfError
from orchestration.location import Location

USER = re.compile(r"([A-Za-z0-9_.-]{1,63}):([!-~]{16,})")
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}


@dataclass(frozen=True)
class Address:
    """`process`: id of the server's; 0 where it does not run."""

    host: str
    port: int
    user: str
    password: str
    database: str
    is_encrypted: bool
    process: int = 0

    def __str__(self) -> str:
        """Return what psql and most clients take; it has the password."""
        host = EVERYWHERE.get(self.host, self.host)
        where = f"[{host}]" if ":" in host else host
        return f"postgresql://{self.user}:{self.password}@{where}:{self.port}/{self.database}" + "?sslmode=require" * self.is_encrypted


def published(lake: Location) -> Address | None:
    """Return the address that a running server of this user has; None if there is none."""
    try:
        address = msgspec.json.decode(_file(lake, "json").read_bytes(), type=Address)
        os.kill(address.process, 0)
    except (FileNotFoundError, PermissionError, ProcessLookupError, msgspec.DecodeError):
        return None
    return address


def publish(lake: Location, address: Address) -> None:
    with NamedTemporaryFile(dir=_file(lake, "json").parent, delete=False) as draft:
        draft.write(msgspec.json.encode(asdict(address)))
    Path(draft.name).rename(_file(lake, "json"))


def withdraw(lake: Location) -> None:
    _file(lake, "json").unlink(missing_ok=True)


def users_of(lake: Location, file: Path | None) -> dict[str, str]:
    """Return passwords by user: this user with a random one, made once for a lake, and those of a file. ConfError names a wrong line."""
    users = {getpass.getuser(): _own_password(lake)}
    if file is None:
        return users
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfError(f"{file} cannot be read ({error}); check the path, and that the file is text in UTF-8") from error
    if file.stat().st_mode & 0o077:
        raise ConfError(f"other users can read {file}: chmod 600 {file}")
    named = dict[str, str]()
    for number, line in enumerate(map(str.strip, lines), 1):
        if line and not line.startswith("#"):
            user = USER.fullmatch(line)
            if user is None or user[1] in named:
                raise ConfError(f"{file}:{number} is not NAME:PASSWORD with a unique name and a password of 16 ASCII characters or more")
            named[user[1]] = user[2]
    return users | named


def _own_password(lake: Location) -> str:
    file = _file(lake, "password")
    if not file.exists():
        with NamedTemporaryFile("w", dir=file.parent) as draft:  # only its owner can read it
            draft.write(secrets.token_urlsafe(24))
            draft.flush()
            with suppress(FileExistsError):  # two commands may start at once; the file appears with its password in it
                os.link(draft.name, file)
    return file.read_text(encoding="utf-8")


def _file(lake: Location, suffix: str) -> Path:
    """One for each lake; its folder is there."""
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    folder = state / "tidemark" / "servers"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder / f"{hashlib.sha256(str(lake.local.resolve()).encode()).hexdigest()[:16]}.{suffix}"
