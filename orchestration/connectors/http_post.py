"""POST, and nothing that only looks like it; and who asks, by name and password."""

from base64 import b64encode
from collections.abc import Mapping
from typing import Any
from urllib.request import HTTPRedirectHandler, Request, build_opener

MAX_ANSWER_BYTES = 65_536


class NoRedirect(HTTPRedirectHandler):
    """A redirected POST becomes a GET without its body, and would look delivered; a redirected GET takes its secrets elsewhere."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """None makes the answer an error."""


def basic(username: str, password: str) -> str:
    """The value of the header Authorization."""
    return f"Basic {b64encode(f'{username}:{password}'.encode()).decode()}"


def post(url: str, body: bytes, headers: Mapping[str, str], timeout_seconds: float) -> bytes:
    """The beginning of the answer. Raises what urllib does, for any but 2xx; its messages may quote the address."""
    with build_opener(NoRedirect).open(Request(url, body, dict(headers), method="POST"), timeout=timeout_seconds) as answer:
        return bytes(answer.read(MAX_ANSWER_BYTES))
