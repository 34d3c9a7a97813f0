"""The interface of every channel: it sends messages about alerts to people or other systems, at least once.

A message has the same id whenever it is sent again, by which a receiver drops a repeat.
"""

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict

from gold.alerts.messages import DIGEST, OVER, Message, message_id
from orchestration.errors import TidemarkError
from orchestration.rendering import plain

__all__ = ["DIGEST", "FILE", "OVER", "Channel", "Message", "RefusedError", "as_json", "message_id"]

FILE = "alerts.yml"  # the file of conf that declares channels


class RefusedError(TidemarkError):
    """The target will not take this, however often it is sent."""


class Channel(ABC):
    """Called by one thread. Any error means that it is down; RefusedError that a repeat is of no use."""

    most = 1  # messages of one call

    @abstractmethod
    def send(self, messages: Sequence[Message]) -> None:
        """All of them, or an error. It may be called again with the same."""


def as_json(message: Message) -> bytes:
    """An object with the fields of a message; instants in ISO 8601, and null where the value is no finite number."""
    value = message.value if message.value is not None and math.isfinite(message.value) else None
    return json.dumps(plain(asdict(message) | {"value": value})).encode()
