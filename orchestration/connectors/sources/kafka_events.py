"""Messages of Kafka to events. One without a value, as a tombstone is, has an empty payload: silver puts it into quarantine."""

from collections.abc import Sequence
from operator import methodcaller
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Message

from bronze.events import ARRIVED
from bronze.schema import HEADERS, INSTANT

FIRST_MS, LAST_MS = -62_135_596_800_000, 253_402_300_799_999
"""Since 1970: the years 1 to 9999. A producer may write any number as the time of a message."""
HEADERS_OF = methodcaller("headers")
"""Where the name of a header is not UTF-8, the client returns a list with a hole in it and sets an exception. Called like this, Python sees
the exception; a plain call looks at the list, and the process is gone, at each start anew (seen with 2.16.1 and Python 3.11)."""


def events_of(source: str, messages: Sequence[Message]) -> tuple[pa.Table, set[str]]:
    """ARRIVED, and the topics of messages whose headers cannot be read; these are null then.

    `received_at` is null where the brokers keep no time.
    """
    times, unreadable = [message.timestamp() for message in messages], set[str]()
    is_unknown = np.array([kind == TIMESTAMP_NOT_AVAILABLE for kind, _ in times])
    micros = np.clip(np.array([ms for _, ms in times], np.int64), FIRST_MS, LAST_MS) * 1000
    columns = {
        "payload": pa.array([message.value() or b"" for message in messages], pa.binary()),
        "header": pa.nulls(len(messages), pa.string()),
        "source": pa.repeat(source, len(messages)),
        "position": [f"{message.topic()}/{message.partition()}/{message.offset()}" for message in messages],
        "received_at": pa.array(micros, INSTANT, mask=is_unknown),
        "key": pa.array([message.key() for message in messages], pa.binary()),
        "headers": pa.array([_headers(message, unreadable) for message in messages], HEADERS),
    }
    return pa.table(columns, ARRIVED), unreadable


def _headers(message: Message, unreadable: set[str]) -> list[dict[str, Any]] | None:
    try:
        headers: Any = HEADERS_OF(message)
    except SystemError:
        unreadable.add(str(message.topic()))
        return None
    return None if headers is None else [{"key": key, "value": value} for key, value in headers]
