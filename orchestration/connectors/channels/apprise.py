"""Chats, pagers and e-mail, by the library apprise: a message is a title and a few lines."""

import logging
import re
from collections.abc import Sequence

import apprise

from orchestration.conf.secrets import secret
from orchestration.connectors.channels.channel import FILE, Channel, Message, RefusedError
from orchestration.errors import TidemarkError

STATUS = re.compile(r"error=(\d{3})\b")
KINDS = {"normal": apprise.NotifyType.SUCCESS, "firing": apprise.NotifyType.FAILURE}
SHOWN = 50
"""Entities of one message."""


class AppriseChannel(Channel):
    def __init__(self, url: str) -> None:
        """`url`: a reference to it."""
        self._url = url

    def send(self, messages: Sequence[Message]) -> None:
        service = apprise.Apprise()
        if not service.add(secret(self._url, FILE)):
            raise RefusedError(f"{self._url}, which {FILE} names, holds no address that apprise knows.")
        for message in messages:
            with apprise.LogCapture(level=logging.WARNING, fmt="%(message)s") as said:  # type: ignore[no-untyped-call]
                is_sent = service.notify(_body(message), _title(message), KINDS.get(message.state, apprise.NotifyType.WARNING))
                status = STATUS.search(said.getvalue())  # of its words nothing else is kept: they may quote the address
            if not is_sent:
                _refuse(int(status[1]) if status else None)


def _refuse(status: int | None) -> None:
    is_final = status is not None and 400 <= status < 500 and status not in (408, 429)
    raise (RefusedError if is_final else TidemarkError)(f"the service answered {status}." if status else "the service was not reached.")


def _title(message: Message) -> str:
    return f"{message.severity}: {message.alert} is {message.state}"


def _body(message: Message) -> str:
    more = [f"and {len(message.entities) - SHOWN} more"] if len(message.entities) > SHOWN else []
    entities = [] if len(message.entities) == 1 else [", ".join([*message.entities[:SHOWN], *more])]
    return "\n".join([message.summary, *entities, f"since {message.changed_at:%Y-%m-%d %H:%M:%S} UTC, message {message.message_id[:12]}"])
