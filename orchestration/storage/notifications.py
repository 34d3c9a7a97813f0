"""What became of each message about alerts: rows of ops.notifications and ops.dead_letters, and what each channel has yet to send.

A channel remembers in `channels/<name>.json` up to which version of gold.alerts it has looked. What it is about to send is written there
first, so that a process that comes after a kill sends the same messages again. Only the process that holds the lake writes here.
"""

import json
import time
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa

from gold.messages import DIGEST, Message
from gold.notices import Standing
from orchestration.location import Location
from orchestration.storage.atomic_json import read_atomic, write_atomic
from orchestration.storage.commit import append_rows, compact_many, create
from orchestration.storage.delta import INSTANT, path_of, rows_of
from orchestration.storage.lake_layout import fast_alerts_folder
from orchestration.storage.lease import holding

TABLE, DEAD_LETTERS = "ops.notifications", "ops.dead_letters"
SENT, FAILED, DEAD, SUPPRESSED = "sent", "failed", "dead", "suppressed"
SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("message_id", "channel", "state", "reason")),
        *(("tries", pa.int64()), ("at", INSTANT)),
        *((name, pa.string()) for name in ("alert", "alert_state", "severity", "summary")),
        *((name, pa.list_(pa.string())) for name in ("entities", "change_ids")),
    ]
)
"""Grain: what became of one message by one channel, as of `at`, UTC; of a message that failed first, a later row tells the end. `state`:
sent, failed (it is tried again), dead (it is not) or suppressed. `reason`: why it was held back, or the last error. `change_ids`: of the
changes that it tells; of one alone that is its id."""
DEAD_SCHEMA = pa.schema([("message_id", pa.string()), ("channel", pa.string()), ("at", INSTANT), ("message", pa.string())])
"""Grain: one message that is not tried any more by one channel; `message`: as JSON."""
_LOCK = ".notifications.lock"


@dataclass(frozen=True)
class Waiting:
    """A message that is to be sent."""

    message: Message
    change_ids: tuple[str, ...]
    tries: int = 0


@dataclass(frozen=True)
class Outcome:
    """What became of it now; `state` is one of the four."""

    waiting: Waiting
    state: str
    reason: str | None = None


Standings: TypeAlias = dict[str, Standing]


@dataclass(frozen=True)
class ChannelState:
    """`version` of the table `table_id`: what it has looked at. `checked_at`: the newest run of quality.results that it has looked at."""

    table_id: str = ""
    version: int = -1
    standings: Standings = field(default_factory=dict)
    waiting: list[Waiting] = field(default_factory=list)
    checked_at: datetime | None = None


def read_state(lake: Location, channel: str) -> ChannelState:
    """That of a new channel where there is none; TidemarkError where the file is damaged."""
    way_out = "Remove it: the channel then tells again what it has no row of in ops.notifications."
    return read_atomic(_file(lake, channel), way_out, ChannelState) or ChannelState()


def write_state(lake: Location, channel: str, state: ChannelState) -> None:
    write_atomic(_file(lake, channel), state)


def record(lake: Location, channel: str, outcomes: Sequence[Outcome], now: datetime) -> None:
    """One row each; a dead message is kept too."""
    rows = [_row(channel, outcome, now) for outcome in outcomes]
    dead = [
        {"message_id": of.message.message_id, "channel": channel, "at": now, "message": json.dumps(asdict(of.message), default=str)}
        for of in (outcome.waiting for outcome in outcomes if outcome.state == DEAD)
    ]
    # Channels are threads of one process, and another way to tell may be another process.
    with holding(path_of(lake, TABLE).local.with_name(_LOCK)):
        for table, schema, added in ((DEAD_LETTERS, DEAD_SCHEMA, dead), (TABLE, SCHEMA, rows)):
            if added:
                create(path_of(lake, table), schema)
                append_rows(path_of(lake, table), pa.Table.from_pylist(added, schema))
                compact_many(path_of(lake, table))


def leave_sent(lake: Location, channel: str, messages: Sequence[Message]) -> None:
    """Note what another process has sent, in a file of its own; `take_up_sent` makes rows of it.

    A commit each second would slow that process down: half of its alerts were told after 23 ms instead of 8 (measured).
    """
    write_atomic(_sent_folder(lake) / f"{channel}.{time.time_ns()}.json", {"messages": messages})


def take_up_sent(lake: Location, channel: str, now: datetime) -> None:
    """A kill before the end notes some of it a second time, which changes nothing."""
    files = sorted(_sent_folder(lake).local.glob(f"{channel}.*.json"))
    way_out = "Remove it: what fast alerts told is then told again, under the same ids."
    left = [read_atomic(_sent_folder(lake) / file.name, way_out, dict[str, list[Message]]) or {} for file in files]
    if outcomes := [Outcome(Waiting(of, (of.message_id,)), SENT) for content in left for of in content.get("messages", ())]:
        record(lake, channel, outcomes, now)
    for file in files:
        file.unlink()


def finished(lake: Location, channel: str, message_ids: Collection[str]) -> set[str]:
    """Of these messages those that are sent or dead."""
    rows = _rows(lake, channel, ["message_id"], [SENT, DEAD]) if message_ids else ()
    return {row["message_id"] for row in rows} & {*message_ids}


def dead_messages(lake: Location, channel: str) -> list[Waiting]:
    """Those of ops.dead_letters that were not sent since, in the order in which they came there."""
    rows = _rows(lake, channel, ["message_id", "state", "change_ids"], [SENT, DEAD])
    changes = {row["message_id"]: tuple(row["change_ids"]) for row in rows}
    sent = {row["message_id"] for row in rows if row["state"] == SENT}
    letters = rows_of(path_of(lake, DEAD_LETTERS), ["at", "message_id", "message"], [("channel", "=", channel)])
    in_order = sorted(letters, key=lambda row: row["at"])
    messages = {row["message_id"]: row["message"] for row in in_order if row["message_id"] not in sent}
    return [Waiting(msgspec.json.decode(text, type=Message), changes.get(id, ())) for id, text in messages.items()]


def known_changes(lake: Location, channel: str) -> dict[str, bool]:
    """As gold.notices takes them."""
    rows = _rows(lake, channel, ["change_ids", "state", "alert_state"], [SENT, DEAD, SUPPRESSED])
    known: dict[str, bool] = {}
    for row in rows:
        is_told = row["state"] != SUPPRESSED and row["alert_state"] != DIGEST
        known |= {change: is_told or known.get(change, False) for change in row["change_ids"]}
    return known


def tried(outcome: Outcome) -> Waiting:
    """The same message, with one try more."""
    return replace(outcome.waiting, tries=outcome.waiting.tries + 1)


def _rows(lake: Location, channel: str, columns: list[str], states: list[str]) -> list[dict[str, Any]]:
    return rows_of(path_of(lake, TABLE), columns, [("channel", "=", channel), ("state", "in", states)])


def _row(channel: str, outcome: Outcome, now: datetime) -> dict[str, Any]:
    message, tries = outcome.waiting.message, outcome.waiting.tries + (outcome.state != SUPPRESSED)
    of_message = {name: getattr(message, name) for name in ("message_id", "alert", "severity", "summary", "entities")}
    facts = {"channel": channel, "state": outcome.state, "reason": outcome.reason, "tries": tries, "at": now}
    return of_message | facts | {"alert_state": message.state, "change_ids": outcome.waiting.change_ids}


def _sent_folder(lake: Location) -> Location:
    return fast_alerts_folder(lake) / "sent"


def _file(lake: Location, channel: str) -> Location:
    return lake / "channels" / f"{channel}.json"
