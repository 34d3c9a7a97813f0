"""What an address in conf means: it is one, and holds no secret in plain text. The text itself is not shown: it may hold one."""

import re
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

from orchestration.conf.document import Step
from orchestration.conf.secrets import HINT, REFERENCE
from orchestration.conf.structure import Finding

PASSWORD = re.compile(r"password\s*=", re.IGNORECASE)


def check_url(path: tuple[Step, ...], url: str) -> Iterator[Finding]:
    """Of a web address, or a reference to it."""
    yield from check_no_secret(path, url)
    if not re.match(r"https?://[^/]|\$", url):
        yield Finding.of(path, "is no address that begins with https:// or http://; write one")


def check_no_secret(path: tuple[Step, ...], text: str) -> Iterator[Finding]:
    """Of an address or a connection string, or a reference to it."""
    if has_password(text):
        yield Finding.of(path, f"holds a password in plain text; {HINT}")
    elif "${" in text and not re.fullmatch(REFERENCE, text):
        yield Finding.of(path, f"is a reference that cannot be followed; {HINT}")


def has_password(text: str) -> bool:
    """Whether a connection string or URL holds one; also one that cannot be read."""
    try:
        url = urlsplit(text)
        return PASSWORD.search(text) is not None or url.password is not None or any("password" in key for key in parse_qs(url.query))
    except ValueError:
        return True
