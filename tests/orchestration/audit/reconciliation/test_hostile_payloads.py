"""Payloads that nobody would think of: all that is known to be hard to read, and 10,000 random changes, or as many as `--hostile` says.

`--seed` repeats a run. Whatever they are, no flow stops, every byte is kept, and every one is accounted for.
"""

import re
from collections import Counter

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from orchestration.audit.reconciliation import account
from orchestration.audit.reconciliation.discrepancies import discrepancies
from orchestration.conf.model import Conf, Source
from orchestration.conf.transport_settings import LandingFolder
from orchestration.engine.lake import Lake
from tests.lakes import KITCHEN, conf, land, run, table, with_batches_of
from tests.orchestration.audit.verify.hostile import payloads
from tests.orchestration.audit.verify.hostile_shapes import DECODED, GOOD, HEADERS, SHAPES

pytestmark = pytest.mark.fuzz
FILES = 4  # of each source: some batches, so that some rows are late
SOURCES = {"plant": "long", "lists": "list", "rooms": "csv with header"} | {
    name.replace(" ", "_"): name for name in DECODED if name not in ("text", "by_key of some")
}
"""Shapes by source."""


@pytest.fixture(scope="module")
def count(pytestconfig: pytest.Config) -> int:
    """Of payloads, in all sources."""
    chosen: int = pytestconfig.getoption("hostile")
    return chosen


@pytest.fixture(scope="module")
def written(count: int, seed: int | None) -> dict[str, list[bytes]]:
    """By source; a payload is a line, and one that names the column of the time, as a header does, would be none."""
    all_payloads = list(payloads(seed or 5, count // len(SOURCES), SOURCES.values()))
    return {
        source: [payload for name, payload, _ in all_payloads if name == shape and b"\n" not in payload and not is_header(shape, payload)]
        for source, shape in SOURCES.items()
    }


def is_header(shape: str, payload: bytes) -> bool:
    return shape in HEADERS and re.search(rb"(^|[,\s\"])t([,\s\"]|$)", payload) is not None


def header_of(shape: str) -> bytes | None:
    (header, *_) = HEADERS.get(shape, [None])
    return None if header is None else header.encode()


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, written: dict[str, list[bytes]]) -> Conf:
    """A lake that has all of them behind it."""
    folder = tmp_path_factory.mktemp("payloads")
    sources = {name: Source(name, SHAPES[shape], LandingFolder(folder / name, settle_seconds=0.0)) for name, shape in SOURCES.items()}
    size = sum(len(line) + 1 for lines in written.values() for line in lines)
    found = with_batches_of(conf(folder, groups={"kitchen": KITCHEN}, sources=sources), size // FILES // len(SOURCES))
    for number in range(FILES):
        for source, lines in written.items():
            # The first line is a good one: a byte order mark before it would belong to the file.
            head = [header_of(SOURCES[source]), GOOD[SOURCES[source]][0].encode()]
            land(folder, f"oven-{number}.txt", [*filter(None, head), *lines[number::FILES]], source)
    run(found, spark)
    return found


def test_every_payload_is_in_bronze_byte_for_byte(made: Conf, written: dict[str, list[bytes]]) -> None:
    events = table(made, "bronze.events")  # a row of CSV may be several lines, with quotes around their ends
    for source, lines in written.items():
        sent, kept = (
            Counter([*lines, *[GOOD[SOURCES[source]][0].encode()] * FILES]),
            Counter(b"\n".join(events[events.source == source].payload).split(b"\n")),
        )
        assert (kept - sent, sent - kept) == (Counter(), Counter())


def test_every_payload_is_accounted_for(made: Conf) -> None:
    tables = account.open_tables(Lake(made))
    found = account.account(tables)
    rows = account.by_day(found.batches)
    assert discrepancies(tables, found, {}) == []
    assert {row["source"]: row["events"] for row in rows} == Counter(table(made, "bronze.events").source)
    kinds = {row["source"]: [row[kind] > 0 for kind in ("quarantined", "readings", "duplicates")] for row in rows}
    assert all(all(kinds[source][: 1 if name in DECODED else 3]) for source, name in SOURCES.items())
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
