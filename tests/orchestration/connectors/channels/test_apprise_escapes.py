"""Names that look like HTML, Markdown or a mention are shown as the letters that they are, in mail and in chats."""

import email
import html
import io
import json
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from email.message import Message as Mail
from html.parser import HTMLParser
from typing import Any

import pytest
import requests

from orchestration.connectors.channels.apprise import AppriseChannel
from tests.http_server import Answer, Asked, http_server
from tests.orchestration.connectors.channels.test_channels import FIRING

DEVICES = (
    '<a href="http://evil.example/">oven</a>',
    "[oven](http://evil.example/)",
    "<!channel> <@U123> @channel",
    "*bold* _slanted_ ~struck~ `code`",
    "&lt;b&gt; &amp;",
    "<img src=x onerror=alert(1)>",
)
MESSAGE = replace(FIRING, entities=DEVICES, summary=f"{DEVICES[0]} is hot")


@contextmanager
def smtp_server(mails: list[bytes]) -> Iterator[int]:
    """Take one mail after another, in plain SMTP; the port."""

    def converse(connection: socket.socket) -> None:
        with connection, connection.makefile("rwb") as stream:

            def say(line: bytes) -> None:
                stream.write(line + b"\r\n")
                stream.flush()

            say(b"220 here")
            while command := stream.readline().strip().upper():
                if command == b"DATA":
                    say(b"354 go on")
                    mails.append(b"".join(iter(stream.readline, b".\r\n")))
                say(b"221 bye" if command == b"QUIT" else b"250 fine")
                if command == b"QUIT":
                    return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=lambda: converse(listener.accept()[0]))
        thread.start()
        yield int(listener.getsockname()[1])
        thread.join()


class Shown(HTMLParser):
    """What a mail program shows of HTML, and the tags that it obeys."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.text, self.tags = "", set[str]()
        self.feed(content)

    def handle_data(self, data: str) -> None:
        self.text += data.replace("\xa0", " ")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)


def text_of(part: Mail) -> str:
    content = part.get_payload(decode=True)
    assert isinstance(content, bytes)
    return content.decode()


def test_both_parts_of_a_mail_show_names_as_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    mails = list[bytes]()
    with smtp_server(mails) as port:
        monkeypatch.setenv("MAIL", f"mailto://127.0.0.1:{port}?from=plant@example.org&to=someone@example.org&format=html")
        AppriseChannel("${env:MAIL}").send([MESSAGE])
    parts = {part.get_content_type(): text_of(part) for part in email.message_from_bytes(mails[0]).walk() if not part.is_multipart()}
    assert set(parts) == {"text/plain", "text/html"}
    shown = Shown(parts["text/html"])
    assert {"a", "img", "b"} & shown.tags == set()
    for device in DEVICES:
        assert device in parts["text/plain"]
        assert device in shown.text


CHATS = {
    "mattermost": "mmost://{0}/aaaaaaaaaaaaaaaaaaaaaaaaaa",
    "rocket.chat": "rocket://aaaaaaaaaaaaaaaa/bbbbbbbbbbbbbbbbbbbb@{0}/#plant",
}
MARKUP = re.compile(r"(?<!\\)[\[\]*_~`]|(?<!\\)&(?=\w+;)|@(?!\u2060)|(?<!\\)>")


@pytest.mark.parametrize("chat", CHATS)
def test_a_chat_that_reads_markdown_gets_none_and_no_mention(chat: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bodies = list[bytes]()

    def answer(asked: Asked) -> Answer:
        bodies.append(asked.body)
        return 200, b"ok"

    with http_server(answer) as url:
        monkeypatch.setenv("CHAT", CHATS[chat].format(url.removeprefix("http://")))
        AppriseChannel("${env:CHAT}").send([MESSAGE])
    _, text = json.loads(bodies[0])["text"].split("\n", 1)  # without the title
    assert MARKUP.findall(text) == []
    shown = re.sub(r"\\(.)", r"\1", text).replace("\u2060", "")
    assert [device for device in DEVICES if device not in shown] == []


FAR: dict[str, tuple[str, Callable[[dict[str, Any]], str]]] = {
    "slack": ("slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#plant", lambda body: html.unescape(body["attachments"][0]["text"])),
    "telegram": ("tgram://123456789:abcdefg_hijklmnop/12315544/", lambda body: Shown(body["text"]).text),
}


@pytest.mark.parametrize("chat", FAR)
def test_a_fake_of_requests_sees_that_chats_out_of_reach_get_names_as_letters(chat: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bodies, (url, shown) = list[dict[str, Any]](), FAR[chat]

    def answer(*_: object, **more: Any) -> requests.Response:
        bodies.append(json.loads(more["data"]))
        response = requests.Response()
        response.status_code, response.raw = 200, io.BytesIO(b"ok")
        return response

    monkeypatch.setattr(requests.Session, "request", answer)
    monkeypatch.setenv("CHAT", url)
    AppriseChannel("${env:CHAT}").send([MESSAGE])
    assert [device for device in DEVICES if device not in shown(bodies[0])] == []
    assert bodies[0].get("mrkdwn") is not True
    assert "<!channel>" not in json.dumps(bodies[0])
