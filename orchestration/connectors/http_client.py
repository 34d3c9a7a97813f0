"""Requests to HTTP servers, on connections that are kept; and who asks, by name and password.

No redirect is followed: a redirected POST becomes a GET without its body, and would look delivered; a redirected GET takes its secrets
elsewhere.
"""

import logging
import math
import time
from base64 import b64encode
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from functools import cache
from http.client import HTTPException
from typing import NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import urllib3

from orchestration.errors import DownError, TidemarkError

MAX_ANSWER_BYTES = 65_536
LONGEST_RETRY_SECONDS = 3600.0
logging.getLogger("urllib3").setLevel(logging.WARNING)  # below that it writes addresses


class Answer(NamedTuple):
    """`content`: its beginning. `retry_after`: the header of that name."""

    status: int
    content: bytes
    retry_after: str | None = None


class NoAnswerError(TidemarkError):
    """Why there was none. It names no part of the address, which may be secret."""


class PostError(DownError):
    """The answer of an address that does not accept a request. It names no part of the address, which may be secret."""

    def __init__(self, what: str, retry_after: float = 0.0, *, is_final: bool = False, status: int | None = None) -> None:
        """`is_final`: a repeat of the request is of no use. `status`: of the answer, where there was one."""
        super().__init__(what, retry_after)
        self.is_final, self.status = is_final, status


def basic(username: str, password: str) -> str:
    return f"Basic {b64encode(f'{username}:{password}'.encode()).decode()}"


def ask(
    method: str, url: str, headers: Mapping[str, str], timeout_seconds: float, *, body: bytes | None = None, most: int = MAX_ANSWER_BYTES
) -> Answer:
    """Whatever is answered, as it is, up to `most` bytes; NoAnswerError, or ValueError where the URL is none."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        raise ValueError
    try:
        pool = _pool(parts.scheme, parts.netloc)
        sent = pool.request(
            method, url, body, headers=headers, timeout=timeout_seconds, redirect=False, retries=False, preload_content=False
        )
        with sent as answer:
            return Answer(answer.status, answer.read(most), answer.headers.get("Retry-After"))
    except (urllib3.exceptions.HTTPError, OSError, HTTPException) as error:
        if isinstance(error, ValueError):
            raise
        raise NoAnswerError(_reason(error)) from None


def post(url: str, body: bytes, headers: Mapping[str, str], timeout_seconds: float) -> bytes:
    """The beginning of the answer; PostError for any but 2xx."""
    try:
        answer = ask("POST", url, headers, timeout_seconds, body=body)
    except NoAnswerError as error:
        raise PostError(f"was not reached ({error})") from None
    except ValueError:
        raise PostError("is no http or https URL", is_final=True) from None
    if answer.status // 100 != 2:
        raise PostError(f"answered {answer.status}", _seconds(answer.retry_after), is_final=is_refused(answer.status), status=answer.status)
    return answer.content


def is_refused(status: int) -> bool:
    """Whether an answer refuses a request for good. A redirect does not: whoever set it up wrongly may mend it."""
    return status // 100 == 4 and status not in (408, 429)


def post_json(url: str, body: bytes, timeout_seconds: float, token: str | None = None, headers: Mapping[str, str] | None = None) -> None:
    """The same of JSON, with a token if there is one, and more headers."""
    standard = {"Content-Type": "application/json", "User-Agent": "tidemark"}
    of_token = {"Authorization": f"Bearer {token}"} if token else {}
    post(url, body, {**standard, **of_token, **(headers or {})}, timeout_seconds)


@cache
def _pool(scheme: str, host: str) -> urllib3.PoolManager:
    """Return the connections to a server, through the proxy that the environment names."""
    proxy = None if proxy_bypass(host) else getproxies().get(scheme)
    return urllib3.ProxyManager(proxy) if proxy else urllib3.PoolManager()


def _seconds(retry_after: str | None) -> float:
    """Return the value of Retry-After, seconds or a date, as seconds from now, an hour at most; 0 where it says nothing."""
    try:
        seconds = float(retry_after or 0)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(str(retry_after)).timestamp() - time.time()
        except ValueError:
            return 0.0
    return min(max(seconds, 0.0), LONGEST_RETRY_SECONDS) if math.isfinite(seconds) else 0.0


def _reason(error: BaseException) -> str:
    """Without the text of the error, which may quote the address."""
    causes = (error, *error.args, error.__cause__, error.__context__)
    cause = next((failure for failure in causes if isinstance(failure, OSError | HTTPException)), error)
    return getattr(cause, "strerror", None) or type(cause).__name__
