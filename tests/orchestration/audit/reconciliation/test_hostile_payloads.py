"""Payloads that nobody would think of: 10,000 mutations of good and of hostile lines, or as many as `--hostile` says.

`--seed` repeats a run. Whatever they are, no flow stops, every byte is kept, and every one is accounted for.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from orchestration.audit.reconciliation import account
from orchestration.audit.reconciliation.discrepancies import discrepancies
from orchestration.conf.model import Conf, Source
from orchestration.conf.transport_settings import LandingFolder
from orchestration.engine.lake import Lake
from silver.spec import Origin, PayloadFormat, Time
from tests.lakes import KITCHEN, conf, event, land, minutes, run, table, with_batches_of
from tests.orchestration.connectors.sources.test_hostile_files import HOSTILE
from tests.rows import at

pytestmark = pytest.mark.fuzz
FILES = 4  # of each source: some batches, so that some rows are late
LISTS = PayloadFormat(
    "json", Origin(field="gateway"), Time("each.t", "epoch_s"), metric=Origin(field="each.m"), value="each.v", each="readings"
)
ROOMS = PayloadFormat("csv", Origin(file_name=r"(\w+)-"), Time("when"), metrics={"temperature": "T", "power": "P"}, has_header=True)
HEADER = b"T,when,P"
TIMES = minutes(at("2026-01-05T00:00:00"), 60)
TEMPLATES = {
    "plant": [
        *(event("oven", metric, 20 + n, time).encode() for n, time in enumerate(TIMES) for metric in ("temperature", "power")),
        *(payload for payload, _ in HOSTILE.values() if len(payload) < 1000),
    ],
    "lists": [
        b'{"gateway": "fridge", "readings": [{"m": "temperature", "v": %d, "t": %d}, {"m": "power", "v": "9e2", "t": %d}]}'
        % (n, time.timestamp(), time.timestamp() + 1)
        for n, time in enumerate(TIMES)
    ],
    "rooms": [b'%d.5,2026-01-05 00:%02d:00,"%d"' % (n, n, n) for n in range(60)],
}


def apart(pieces: bytes) -> list[bytes]:
    return pieces.split(b"|")


PIECES = [
    *apart(b"|\x00|\xff|\xc3|\xed\xa0\x80|\xf0\x9f\x98\x80|\xe2\x80\xae|\xef\xbb\xbf|\r|\t|\\|\\u0000|\\ud800"),
    *apart(b"\"|'|{|}|[|]|,|:|;|{}|[[[[|null|true|NaN|Infinity|-0|1e999|0x1F|1_000|1.7976931348623157e308|-1e-400"),
    *apart(b"2026-02-30T00:00:00Z|0000-00-00|9999-12-31T23:59:59Z|0000-01-01T00:00:00Z|0001-01-01T00:00:00+01:00"),
    *apart(
        b"0001-01-01T00:00:00Z|9223372036854775807|-292277022657-01-27T08:29:52Z|+10000-01-01T00:00:00Z|2026-01-05T00:00:00+99:99|24:00:00"
    ),
    *apart(b'${env:HOME}|\' or 1=1 --|%s%n|../../etc|\x1b[31m|T,when,P|"device":|"value":|"ts":|"x":{"a":'),
    *(b"9" * 400, b"oven" * 300),
]

Mutation = Callable[[random.Random, bytes, bytes], bytes]
"""Changes a line; it is given another line too."""


def cut(chance: random.Random, line: bytes) -> tuple[bytes, bytes, bytes]:
    """A line in three at random, the middle a short one."""
    start = chance.randint(0, len(line))
    end = min(len(line), start + chance.randint(0, 12))
    return line[:start], line[start:end], line[end:]


def inserted(chance: random.Random, line: bytes, _: bytes) -> bytes:
    before, middle, after = cut(chance, line)
    return before + chance.choice(PIECES) + middle + after


def replaced(chance: random.Random, line: bytes, _: bytes) -> bytes:
    before, _middle, after = cut(chance, line)
    return before + chance.choice(PIECES) + after


def flipped(chance: random.Random, line: bytes, _: bytes) -> bytes:
    flipped_line = bytearray(line or b"\x00")
    flipped_line[chance.randrange(len(flipped_line))] ^= 1 << chance.randrange(8)
    return bytes(flipped_line)


def repeated(chance: random.Random, line: bytes, _: bytes) -> bytes:
    before, middle, after = cut(chance, line)
    return before + middle * chance.randint(2, 50) + after


def ended(chance: random.Random, line: bytes, _: bytes) -> bytes:
    return cut(chance, line)[0]


def spliced(chance: random.Random, line: bytes, other: bytes) -> bytes:
    return cut(chance, line)[0] + cut(chance, other)[2]


def unchanged(_: random.Random, line: bytes, __: bytes) -> bytes:
    return line


MUTATIONS: list[Mutation] = [inserted, inserted, replaced, replaced, flipped, repeated, ended, spliced, unchanged]


def hostile(chance: random.Random, templates: list[bytes]) -> Iterator[bytes]:
    """Payloads without end, of one line each; a line that equals the header would be one."""
    while True:
        line = chance.choice(templates)
        for _ in range(chance.choice([1, 1, 1, 2, 5])):
            line = chance.choice(MUTATIONS)(chance, line, chance.choice(templates))
        line = line.replace(b"\n", b"")
        if line != HEADER:
            yield line


@pytest.fixture(scope="module")
def count(pytestconfig: pytest.Config) -> int:
    """Of payloads, in all sources."""
    chosen: int = pytestconfig.getoption("hostile")
    return chosen


@pytest.fixture(scope="module")
def written(count: int, seed: int | None) -> dict[str, list[bytes]]:
    """By source. The first line of a file is a good one: a byte order mark before it would belong to the file."""
    chance = random.Random(seed or 5)
    lines = {}
    for source, templates in TEMPLATES.items():
        payloads = hostile(chance, templates)
        lines[source] = [next(payloads) for _ in range(count // len(TEMPLATES) + 1)]
    return lines


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, written: dict[str, list[bytes]]) -> Conf:
    """A lake that has all of them behind it."""
    folder = tmp_path_factory.mktemp("payloads")
    plain = conf(folder, groups={"kitchen": KITCHEN})
    more = {
        name: Source(name, shape, LandingFolder(folder / name, settle_seconds=0.0)) for name, shape in (("lists", LISTS), ("rooms", ROOMS))
    }
    size = sum(len(line) + 1 for lines in written.values() for line in lines)
    found = with_batches_of(replace(plain, sources=plain.sources | more), size // FILES)
    for number in range(FILES):
        for source, lines in written.items():
            head = [HEADER] if source == "rooms" else []
            folder_of = "landing" if source == "plant" else source
            land(folder, f"oven-{number}.txt", [*head, TEMPLATES[source][number], *lines[number::FILES]], folder_of)
    run(found, spark)
    return found


def test_every_payload_is_in_bronze_byte_for_byte(made: Conf, written: dict[str, list[bytes]]) -> None:
    events = table(made, "bronze.events")
    for source, lines in written.items():
        sent, kept = Counter([*lines, *TEMPLATES[source][:FILES]]), Counter(events[events.source == source].payload)
        assert (kept - sent, sent - kept) == (Counter(), Counter())


def test_every_payload_is_accounted_for(made: Conf, written: dict[str, list[bytes]]) -> None:
    tables = account.open_tables(Lake(made))
    found = account.account(tables)
    rows = account.by_day(found.batches)
    assert discrepancies(tables, found, {}) == []
    assert {row["source"]: row["events"] for row in rows} == {source: len(lines) + FILES for source, lines in written.items()}
    assert all(row[kind] > 0 for row in rows for kind in ("readings", "quarantined", "duplicates"))
    assert sum(row["waiting"] for row in rows) == 0
    assert len({batch["bronze_batch"] for batch in found.batches}) > 1


def test_every_row_in_quarantine_has_the_bytes_of_its_event(made: Conf, count: int) -> None:
    identity = ["bronze_batch", "bronze_row"]
    columns = [*identity, "payload"]
    # No other column: event times that nobody would think of are beyond what pandas can hold.
    quarantined, events = (DeltaTable(made.lake.local / name).to_pandas(columns=columns) for name in ("silver/quarantine", "bronze/events"))
    both = quarantined.merge(events, on=identity, how="left")
    assert len(both) > count // 10
    assert (both.payload_x == both.payload_y).all()
