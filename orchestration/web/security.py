"""Checks of each request to the page: the host that it names, the token, and headers that let the page load only its own files."""

import asyncio
import re
import secrets
from contextlib import suppress
from http.cookies import SimpleCookie
from urllib.parse import parse_qs, parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orchestration.errors import ConfError

COOKIE = "tidemark"
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
MOST_BYTES, FORM_SECONDS = 100_000, 30.0
"""The most bytes of a form, and the longest that it may take to come."""
CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
"""Such as NUL, which databases refuse; not the tab and the ends of lines."""
LOCAL = ("127.0.0.1", "localhost", "[::1]")
HEALTH = "/healthz"
"""Open to whoever reaches the page, by any name: probes know neither. Its answer says nothing about the lake but whether it works."""


class Guarded:
    """An application behind these checks. `hosts`: names that a request may call it by, so that no other site's name leads here."""

    def __init__(self, application: ASGIApp, hosts: tuple[str, ...], token: str | None) -> None:
        self._application, self._hosts, self._token = application, hosts, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request by HTTP; web sockets are not served."""
        if scope["type"] == "lifespan":
            await self._application(scope, receive, send)
        elif scope["type"] == "http":
            await (self._refusal(scope) or self._application)(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if scope["path"] == HEALTH:
            return None
        if headers.get("host", "").lower().rpartition(":")[0] not in self._hosts and headers.get("host", "").lower() not in self._hosts:
            return PlainTextResponse("this host is not known here; open the address that tidemark printed\n", 421)
        # A page of another site may not read the stream of events, nor post, in the name of who has the cookie.
        if is_foreign(headers):
            is_link = headers.get("sec-fetch-mode") == "navigate" and scope["method"] == "GET"
            if not is_link:
                return PlainTextResponse("requests of other sites are refused\n", 403)
        return self._unless_known(scope, headers)

    def _unless_known(self, scope: Scope, headers: Headers) -> Response | None:
        if self._token is None:
            return None
        cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        given = headers.get("authorization", "").removeprefix("Bearer ") or (cookie.value if cookie else "")
        if secrets.compare_digest(given.encode(), self._token.encode()):
            return None
        query = parse_qs(scope["query_string"].decode("latin-1"))
        if scope["method"] == "GET" and secrets.compare_digest(query.pop("token", [""])[0].encode(), self._token.encode()):
            # From the address into a cookie, so that it stands in no history and no log.
            rest = urlencode(query, doseq=True)
            # One slash: a browser takes what follows two of them, or a backslash, for the name of another site.
            path = "/" + scope["path"].lstrip("/\\")
            answer = RedirectResponse(path + (f"?{rest}" if rest else ""), 303)
            answer.set_cookie(COOKIE, self._token, httponly=True, samesite="strict", secure=scope["scheme"] == "https")
            return answer
        return PlainTextResponse("open the address that `tidemark serve --link` prints, or send Authorization: Bearer TOKEN\n", 401)


def is_foreign(headers: Headers) -> bool:
    """Say whether a page of another site has made the browser send this; programs and old browsers do not say it."""
    return headers.get("sec-fetch-site", "none") not in ("none", "same-origin")


class FormError(ConfError):
    """A form that cannot be taken because of one `field`."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field


class FormToken:
    """A secret in the page's forms, which no other site knows, so that none can post in the name of the person at the page."""

    def __init__(self) -> None:
        self._secret = secrets.token_urlsafe(32)

    def new(self) -> str:
        """For the forms of one page. It ends in what no other page has: that tells a form that is sent twice from two that say the same."""
        return f"{self._secret}.{secrets.token_hex(8)}"

    def is_of(self, form: dict[str, str]) -> bool:
        return secrets.compare_digest(form.get("form_token", "").rpartition(".")[0].encode(), self._secret.encode())


async def form_of(request: Request) -> dict[str, str]:
    """The fields of a form, as browsers send it; none of what is larger than MOST_BYTES, takes longer than FORM_SECONDS, or is no form."""
    content = b""
    with suppress(TimeoutError):
        async with asyncio.timeout(FORM_SECONDS):
            async for part in request.stream():
                content += part
                if len(content) > MOST_BYTES:
                    return {}
    if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        return {}
    return dict(parse_qsl(content.decode("utf-8", "replace"), keep_blank_values=True))


def text_of(form: dict[str, str], name: str, most: int, is_needed: bool = True) -> str:
    """Return the text of a field without the blanks around it; FormError for none, a long one, or one with control characters."""
    text = form.get(name, "").strip()
    if (is_needed and not text) or len(text) > most:
        raise FormError(name, f"the form wants {name}, of at most {most:,} characters.")
    if CONTROLS.search(text):
        raise FormError(name, f"{name} holds a control character; write text and line ends alone.")
    return text


def whole(text: str, otherwise: int) -> int:
    """A whole number that a request gives as a text; `otherwise` for none, and for one of more than 18 digits."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 18 else otherwise


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(HEADERS)
        await send(message)

    return sending
