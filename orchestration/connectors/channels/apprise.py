"""Chats, pagers and e-mail, by the library apprise: a message is a title and a few lines.

It is sent as text: names of devices come from outside, and may look like links, markup or mentions. apprise escapes what a service reads as
HTML or Markdown.
"""

import logging
import re
from collections.abc import Sequence

import apprise

from orchestration.connectors.channels.channel import FILE, OVER, Channel, Message, RefusedError
from orchestration.connectors.http_client import is_refused
from orchestration.errors import TidemarkError
from orchestration.secrets import secret

STATUS = re.compile(r"error=(\d{3})\b")
KINDS = {"normal": apprise.NotifyType.SUCCESS, OVER: apprise.NotifyType.INFO, "firing": apprise.NotifyType.FAILURE}
MARKDOWN_CHATS = {"discord", "mmost", "mmosts", "rocket", "rockets"}
"""Services that read every text as Markdown, whatever apprise says of them, and tell people of `@all` in it."""
WORD_JOINER = "\u2060"  # is not shown, and ends a mention
SHOWN = 50  # entities of one message


class AppriseChannel(Channel):
    def __init__(self, url: str) -> None:
        """`url`: a reference to it."""
        self._url = url

    def send(self, messages: Sequence[Message]) -> None:
        service = apprise.Apprise()
        if not service.add(secret(self._url, FILE)):
            raise RefusedError(f"{self._url}, which {FILE} names, holds no address that apprise knows.")
        chats = [plugin for plugin in service if MARKDOWN_CHATS & {plugin.protocol, plugin.secure_protocol}]
        for chat in chats:
            chat.notify_format = apprise.NotifyFormat.MARKDOWN
        for message in messages:
            body = _body(message).replace("@", f"@{WORD_JOINER}") if chats else _body(message)
            with apprise.LogCapture(level=logging.WARNING, fmt="%(message)s") as said:  # type: ignore[no-untyped-call]
                kind = KINDS.get(message.state, apprise.NotifyType.WARNING)
                is_sent = service.notify(body, _title(message), kind, body_format=apprise.NotifyFormat.TEXT)
                status = STATUS.search(said.getvalue())  # of its words nothing else is kept: they may quote the address
            if not is_sent:
                _refuse(int(status[1]) if status else None)


def _refuse(status: int | None) -> None:
    is_final = status is not None and is_refused(status)
    raise (RefusedError if is_final else TidemarkError)(f"the service answered {status}." if status else "the service was not reached.")


def _title(message: Message) -> str:
    return f"{message.severity}: {message.alert} is {message.state}"


def _body(message: Message) -> str:
    more = [f"and {len(message.entities) - SHOWN} more"] if len(message.entities) > SHOWN else []
    entities = [] if len(message.entities) == 1 else [", ".join([*message.entities[:SHOWN], *more])]
    instants = {"since": message.changed_at, "until": message.ended_at, "known": message.known_at, "sent": message.told_at}
    times = ", ".join(f"{name} {at:%Y-%m-%d %H:%M:%S}" for name, at in instants.items() if at)
    return "\n".join([message.summary, *entities, f"{times} UTC, message {message.message_id[:12]}"])
