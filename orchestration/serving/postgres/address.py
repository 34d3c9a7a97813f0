"""The users of a lake's SQL server, and the address that they connect with."""

import getpass
import hashlib
import os
import re
import secrets
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from urllib.parse import quote

from orchestration.conf.model import Conf
from orchestration.conf.pipeline_settings import SqlServerSettings
from orchestration.errors import ConfError
from orchestration.location import Location
from orchestration.stores.disk import host_state

USER = re.compile(r"([A-Za-z0-9_.-]{1,63}):([!-~]{16,})")
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def address_of(conf: Conf, settings: SqlServerSettings) -> str:
    """Return the address that this user connects with, with the password, as psql and most clients take it."""
    host, user = EVERYWHERE.get(settings.host, settings.host), getpass.getuser()
    where = f"{user}:{quote(users_of(conf.lake, settings.users)[user], safe='')}@{f'[{host}]' if ':' in host else host}:{settings.port}"
    return f"postgresql://{where}/{conf.pipeline}" + "?sslmode=require" * bool(settings.certificate)


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
    """Return the password in a file below XDG_STATE_HOME that only this user can read."""
    state = host_state() / "servers"
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = state / f"{hashlib.sha256(str(lake.local.resolve()).encode()).hexdigest()[:16]}.password"
    if not file.exists():
        with NamedTemporaryFile("w", dir=state) as draft:
            draft.write(secrets.token_urlsafe(24))
            draft.flush()
            with suppress(FileExistsError):  # two commands may start at once; the file appears with its password in it
                os.link(draft.name, file)
    return file.read_text(encoding="utf-8")
