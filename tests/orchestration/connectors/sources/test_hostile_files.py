"""Hostile files end to end: whatever a line holds, every other line goes through, and it is kept with its bytes and its reasons."""

from dataclasses import replace
from typing import NamedTuple

import pandas as pd
import pytest
from pyspark.sql import SparkSession

from orchestration.conf.model import Source
from orchestration.conf.transport_settings import LandingFolder
from silver.policy import Policy
from silver.spec import Origin, PayloadFormat, Time
from tests.lakes import conf, event, land, land_bytes, minutes, run, table, with_batches_of
from tests.rows import at

START = at("2026-01-05T00:00:00")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
ROOM = PayloadFormat("csv", Origin(file_name=r"(\w+)\."), Time("when"), metrics={"temperature": "T", "power": "P"}, has_header=True)
READING = b'{"device":"oven","metric":"temperature","value":%s,"ts":"2026-01-05T00:00:00Z"}'
UNREADABLE, NOTHING = ["payload_is_readable"], ["something_is_measured"]
HOSTILE: dict[str, tuple[bytes, list[str]]] = {
    "a row dated 2099": (event("oven", "temperature", 1, at("2099-01-01T00:00:00")).encode(), ["event_time_is_not_in_the_future"]),
    "a row of the year 0": ((READING % b"1").replace(b"2026-01-05", b"0000-01-05"), ["event_time_is_valid"]),
    "a row of the year 0 in UTC": (
        (READING % b"1").replace(b"2026-01-05T00:00:00Z", b"0001-01-01T00:00:00+01:00"),
        ["event_time_is_valid"],
    ),
    "a broken number": (READING % b'"12..5"', ["value_is_a_number"]),
    "a number that breaks the JSON": (READING % b"12..5", UNREADABLE),
    "an empty line": (b"", NOTHING),
    "a blank line": (b" \t ", NOTHING),
    "two objects on one line": (READING % b"1" + READING % b"2", UNREADABLE),
    "invalid UTF-8 in a text": (
        b'{"device":"ov\xff\xfeen","metric":"temperature","value":1,"ts":"2026-01-05T00:00:00Z"}',
        ["payload_is_utf8", "device_is_known"],
    ),
    "invalid UTF-8 alone": (b"\xc3\x28\x80", ["payload_is_utf8", "payload_is_readable"]),
    "100,000 brackets": (b"[" * 100_000, UNREADABLE),
    "100,000 objects inside each other": (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, UNREADABLE),
    "100,000 brackets in a field that nobody reads": (
        (READING % b"1")[:-1] + b',"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        UNREADABLE,
    ),
    "NUL bytes": (b"\x00" * 64, UNREADABLE),
    "a NUL byte in a text": (b'{"device":"ov\x00en","metric":"temperature","value":1,"ts":"2026-01-05T00:00:00Z"}', UNREADABLE),
    "a line of 50 MB": ((READING % b"1")[:-1] + b',"pad":"' + b"x" * 50_000_000 + b'"}', ["payload_is_small_enough"]),
}


def good(*minutes_of: int) -> list[bytes]:
    """Lines as they should be, one a minute; the minute is the value."""
    times = minutes(START, 60)
    return [event("oven", "temperature", minute, times[minute]).encode() for minute in minutes_of]


class Seen(NamedTuple):
    events: pd.DataFrame
    readings: pd.DataFrame
    quarantine: pd.DataFrame

    def payloads(self, file: str) -> list[bytes]:
        """What bronze holds of the file, in the order of its lines."""
        return list(self.events[self.events.position == file].sort_values("bronze_row").payload)

    def values(self, file: str) -> list[float]:
        """Values of the file's readings, sorted."""
        identities = self.events[self.events.position == file][["bronze_batch", "bronze_row"]]
        return sorted(self.readings.merge(identities).value)

    def reasons(self, file: str) -> list[tuple[bytes, list[str]]]:
        """Payloads and broken rules of the file's quarantined rows."""
        rows = self.quarantine[self.quarantine.position == file].sort_values("bronze_row")
        return list(zip(rows.payload, map(list, rows.broken_rules), strict=True))


@pytest.fixture(scope="module")
def seen(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """One lake for all tests. The first batch is the file with the hostile lines, a good one after each; the second is the other files."""
    folder = tmp_path_factory.mktemp("hostile")
    plain = conf(folder, policy=Policy(600, max_future_seconds=300, max_payload_bytes=1_048_576))
    sources = plain.sources | {"rooms": Source("rooms", ROOM, LandingFolder(folder / "rooms", settle_seconds=0.0))}
    made = with_batches_of(replace(plain, sources=sources), 1_000_000)
    hostile = (payload for payload, _ in HOSTILE.values())
    land(folder, "hostile.json", [line for pair in zip(hostile, good(*range(len(HOSTILE))), strict=True) for line in pair])
    land_bytes(folder, "crlf.json", b"\r\n".join([*good(20), b"", *good(21), b""]))
    land_bytes(folder, "unended.json", b"\n".join(good(22, 23)))
    land_bytes(folder, "marked.json", BYTE_ORDER_MARK + b"\n".join(good(24, 25)))
    land_bytes(folder, "oven.csv", BYTE_ORDER_MARK + b"T,when,P\r\n26,2026-01-05 00:26,126\r\n27,2026-01-05 00:27,127", "rooms")
    run(made, spark)
    return Seen(table(made, "bronze.events"), table(made, "silver.readings"), table(made, "silver.quarantine"))


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_line_is_in_quarantine_with_its_bytes_and_its_reasons(name: str, seen: Seen) -> None:
    payload, reasons = HOSTILE[name]
    # Compared by hand: a failed assert would print 50 MB.
    assert [rules for kept, rules in seen.reasons("hostile.json") if kept == payload] == [reasons]
    assert seen.payloads("hostile.json").count(payload) == 1


def test_every_other_line_is_a_reading_and_nothing_else_is_in_quarantine(seen: Seen) -> None:
    assert seen.values("hostile.json") == [*map(float, range(len(HOSTILE)))]
    assert len(seen.reasons("hostile.json")) == len(HOSTILE)


def test_good_rows_after_a_batch_with_a_row_of_2099_are_not_late(seen: Seen) -> None:
    batches = seen.events.groupby("position").bronze_batch.unique().map(list)
    assert [batches[name] for name in ("hostile.json", "crlf.json", "unended.json", "marked.json")] == [[0], [1], [1], [1]]
    assert [seen.values(name) for name in ("crlf.json", "unended.json", "marked.json")] == [[20.0, 21.0], [22.0, 23.0], [24.0, 25.0]]


def test_a_carriage_return_stays_with_its_line_and_spoils_no_reading(seen: Seen) -> None:
    assert seen.payloads("crlf.json") == [good(20)[0] + b"\r", b"\r", good(21)[0] + b"\r"]
    assert seen.reasons("crlf.json") == [(b"\r", NOTHING)]


def test_a_byte_order_mark_belongs_to_the_file_and_not_to_its_first_line(seen: Seen) -> None:
    """So the first JSON object is read, and the first column of a CSV file is found by its name."""
    assert seen.payloads("marked.json") == good(24, 25)
    assert seen.values("oven.csv") == [26.0, 27.0, 126.0, 127.0]
    assert [seen.reasons(name) for name in ("marked.json", "oven.csv")] == [[], []]
