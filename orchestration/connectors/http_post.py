"""POST, and nothing that only looks like it; and who asks, by name and password."""

from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, Request, build_opener

from orchestration.errors import TidemarkError

MAX_ANSWER_BYTES = 65_536


class NoRedirect(HTTPRedirectHandler):
    """A redirected POST becomes a GET without its body, and would look delivered; a redirected GET takes its secrets elsewhere."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """None makes the answer an error."""


def basic(username: str, password: str) -> str:
    return f"Basic {b64encode(f'{username}:{password}'.encode()).decode()}"


class PostError(TidemarkError):
    """What an address did, such as "answered 503", instead of accepting a request. It names no part of the address, which may be secret."""

    def __init__(self, what: str, *, is_final: bool = False) -> None:
        """`is_final`: a repeat of the request is of no use."""
        super().__init__(what)
        self.is_final = is_final


def post(url: str, body: bytes, headers: Mapping[str, str], timeout_seconds: float) -> bytes:
    """The beginning of the answer; PostError for any but 2xx."""
    try:
        if urlsplit(url).scheme not in ("http", "https"):
            raise PostError("is no http or https URL", is_final=True)
        with _opener().open(Request(url, body, dict(headers), method="POST"), timeout=timeout_seconds) as answer:
            return bytes(answer.read(MAX_ANSWER_BYTES))
    except HTTPError as error:
        error.close()
        raise PostError(f"answered {error.code}", is_final=error.code < 500 and error.code not in (408, 429)) from None
    except (OSError, HTTPException) as error:
        raise PostError(f"was not reached ({reason_of(error)})") from None
    except ValueError as error:
        raise PostError(f"is no URL ({type(error).__name__})", is_final=True) from None


def post_json(url: str, body: bytes, timeout_seconds: float, token: str | None = None, headers: Mapping[str, str] | None = None) -> None:
    """The same of JSON, with a token if there is one, and more headers."""
    known = {"Content-Type": "application/json", "User-Agent": "tidemark"}
    of_token = {"Authorization": f"Bearer {token}"} if token else {}
    post(url, body, {**known, **of_token, **(headers or {})}, timeout_seconds)


@cache
def _opener() -> OpenerDirector:
    """It takes longer to make than a short request."""
    return build_opener(NoRedirect)


def reason_of(error: Exception) -> str:
    """Why there was no answer, without the text of the error, which may quote the address."""
    reason = getattr(error, "reason", error)
    return getattr(reason, "strerror", None) or type(reason).__name__
