"""Planted bugs: each protection, switched off, lets something wrong into the tables, and verify, the ledger or a second look names it.

`make planted` plants all of them; the default run plants those of FEW.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from expectations.rule import Rule
from gold.windows import vectors
from gold.windows.spec import Group
from orchestration.audit.verify import lake_snapshot
from orchestration.conf.model import Device
from orchestration.engine import windows
from orchestration.engine.lake import Lake
from orchestration.errors import HeldError, TidemarkError
from orchestration.jobs import maintenance
from orchestration.jobs.gold import amendments
from orchestration.location import Location
from orchestration.storage import bindings, lease, registry, silver_inputs
from orchestration.storage.delta import table_of
from orchestration.storage.retention import RetentionNeeds
from silver import account as account_of_silver
from silver import judging, rules
from silver.metric import Metric
from silver.spec import Time
from tests.lakes import DEVICES, SHAPE, conf, event, land, minutes, run
from tests.planted import aggregation_bugs, anomaly_bugs, flow_bugs, sink_bugs
from tests.planted.day import START, Day
from tests.sample import all_of

pytestmark = [pytest.mark.planted, pytest.mark.processes]
FEW = ("amendment", "ledger by identity", "clock of an alert", "notes of dead rows", "revision that is judged")


class CrashError(Exception):
    """As if the process had died."""


def whole_day(day: Day) -> list[str]:
    day.first()
    day.second()
    return day.wrong()


def without_rule(name: str) -> Callable[[pytest.MonkeyPatch], None]:
    def plant(patch: pytest.MonkeyPatch) -> None:
        def left(*declared: Any) -> dict[str, str]:
            return {rule: holds for rule, holds in rules.rules_of(*declared).items() if rule != name}

        patch.setattr(judging, "rules_of", left)

    return plant


def without_amendments(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(amendments, "_may_be_late", lambda *_: False)


def ledger_forgets(patch: pytest.MonkeyPatch) -> None:
    """As one that trusts Spark's count of dropped rows would."""
    split = account_of_silver.split
    patch.setattr(account_of_silver, "split", lambda measurements: (split(measurements)[0], split(measurements)[1].slice(0, 0)))


def without_conflicts(patch: pytest.MonkeyPatch) -> None:
    """A contradiction is taken for a repeat."""
    duplicates = account_of_silver.duplicates

    def repeats(*rows: Any) -> pa.Table:
        found = duplicates(*rows)
        return found.set_column(found.column_names.index("is_conflict"), "is_conflict", pa.repeat(False, len(found)))

    patch.setattr(account_of_silver, "duplicates", repeats)


def without_fill_bound(patch: pytest.MonkeyPatch) -> None:
    bounded = vectors.in_blocks

    def boundless(rows: pa.Table, groups: Sequence[Group], metrics: Mapping[str, Metric]) -> Iterator[pa.Table]:
        with_vectors = ((group, group.vector) for group in groups if group.vector is not None)
        return bounded(rows, [replace(group, vector=replace(of, max_fill_seconds=10**9)) for group, of in with_vectors], metrics)

    patch.setattr(windows, "in_blocks", boundless)


def without_transaction_ids(patch: pytest.MonkeyPatch) -> None:
    def append(path: Location, pieces: Iterator[pa.Table], *_: Any) -> None:
        write_deltalake(path.local, pa.concat_tables(pieces), mode="append")

    patch.setattr(windows, "append_pieces", append)


def crash_between_two_tables(day: Day) -> list[str]:
    """The aggregates of a batch are written, its vectors are not; then the batch is repeated."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windows, "in_blocks", _crash)
        with pytest.raises(CrashError):
            day.first()
    run(day.made, day.spark)
    return day.wrong()


def _crash(*_: Any) -> None:
    raise CrashError


def without_generation_guard(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(bindings, "_holds_rows", lambda *_: False)


def lost_checkpoint(day: Day) -> list[str]:
    """Of gold, which then numbers its batches from 0 again, and Delta takes them for repeats."""
    day.first()
    lost = Lake(day.made, day.spark).checkpoint("gold.kitchen")
    lost.local.rename(lost.local.with_name("lost"))
    day.second()
    return day.wrong()


def with_frozen_registry(patch: pytest.MonkeyPatch) -> None:
    """For the stream and the account. In the stream alone it makes readings of new devices late, which verify takes as recorded."""
    patch.setattr(registry, "table_of", cache(table_of))


def new_device(day: Day) -> list[str]:
    """A device is declared between two runs."""
    day.first()
    known = {name: Device(name, groups) for name, groups in (DEVICES | {"mixer": ("kitchen",)}).items()}
    later = Day(replace(day.made, devices=known), day.spark)
    later.second(event("mixer", "temperature", 5, START + timedelta(hours=4)))
    return later.wrong()


def without_moves(patch: pytest.MonkeyPatch) -> None:
    def undated(*generation: Any) -> pa.Table:
        rows = registry.in_force(*generation)
        return rows.set_column(rows.column_names.index("moved_at"), rows.field("moved_at"), pa.nulls(len(rows), pa.timestamp("us", "UTC")))

    patch.setattr(silver_inputs, "in_force", undated)


def moved_device(day: Day) -> list[str]:
    """A device has moved between two runs, and what it measured before that comes after it."""
    day.first()
    oven = Device("oven", ("presses",), since=START + timedelta(hours=2))
    later = Day(replace(day.made, devices=day.made.devices | {"oven": oven}), day.spark)
    later.second()
    return later.wrong()


def hour_that_comes_twice(day: Day) -> list[str]:
    """A reading of 02:30 on the night on which summer time ends in Berlin."""
    local = replace(SHAPE, time=Time("ts", time_zone="Europe/Berlin"))
    plant = replace(day.made.sources["plant"], payload_format=local)
    autumn = Day(replace(day.made, sources={"plant": plant}), day.spark)
    land(day.made.folder, "1.json", [event("oven", "temperature", 1, datetime(2025, 10, 26, hour, 30)) for hour in (1, 2, 5)])  # noqa: DTZ001
    run(autumn.made, day.spark)
    return autumn.wrong()


def flagged(day: Day) -> list[str]:
    """A device marks one of its values as bad; a rule of the conf asks for the mark."""
    plant = replace(day.made.sources["plant"], payload_format=replace(SHAPE, attributes={"quality": "q"}))
    is_good = Rule("quality_is_good", "attributes['quality'] = 'good'")
    marked = Day(replace(day.made, sources={"plant": plant}, rules=(is_good,)), day.spark)
    lines = [event("oven", "temperature", n, time) for n, time in enumerate(minutes(START, 30))]
    land(day.made.folder, "1.json", [line.replace("{", f'{{"q": "{"bad" if n == 7 else "good"}", ', 1) for n, line in enumerate(lines)])
    run(marked.made, day.spark)
    return marked.wrong()


def without_pins(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("orchestration.engine.lake.snapshot_for", lambda *_: None)


def asked_twice(day: Day) -> list[str]:
    """A snapshot gives the same answer as long as it is kept."""
    lake, query = Lake(day.made, day.spark), "select count(*) from silver.readings"
    day.first()
    before = lake.sql(query, snapshot=0).collect()
    day.second()
    after = lake.sql(query, snapshot=0).collect()
    return [] if before == after else [f"snapshot 0 said {before}, and says {after}"]


def without_vacuum_guard(patch: pytest.MonkeyPatch) -> None:
    """Whatever the newest version does not have is removed."""
    patch.setattr(maintenance, "_needs", lambda *_: RetentionNeeds([], None, datetime.now(UTC) + timedelta(days=1)))


def maintained(day: Day) -> list[str]:
    """A snapshot gives the same answer before and after its files were compacted."""
    lake, query = Lake(day.made, day.spark), "select sum(value) from silver.readings"
    day.first()
    before = lake.sql(query, snapshot=0).collect()
    day.second()
    for _ in range(2):  # files go one maintenance after they were compacted
        list(maintenance.maintain(lake, datetime.now(UTC), lambda _: nullcontext()))
    try:
        after = lake.sql(query, snapshot=0).collect()
    except Exception as error:  # files are gone
        return [str(error).splitlines()[0]]
    return [] if before == after else [f"snapshot 0 said {before}, and says {after}"]


def verify_without_prefix(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(lake_snapshot, "_passed", lambda *_: 10**9)


def bronze_ahead(day: Day) -> list[str]:
    """Bronze has read what silver has not."""
    day.first()
    land(day.made.folder, "2.json", [event("oven", "temperature", 1, START + timedelta(hours=4))])
    run(day.made, day.spark, ["bronze.events"])
    return day.wrong()


def without_lease(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("orchestration.storage.lease.fcntl.flock", lambda *_: None)


def two_writers(day: Day) -> list[str]:
    """A second one while the first one writes."""
    with lease.sole_writer(day.made.lake):
        try:
            with lease.sole_writer(day.made.lake):
                return ["two hold the lake"]
        except HeldError:
            return []


BUGS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], Callable[[Day], list[str]]]] = {
    "transaction ids": (without_transaction_ids, crash_between_two_tables),
    "generation guard": (without_generation_guard, lost_checkpoint),
    "future bound": (without_rule("event_time_is_not_in_the_future"), whole_day),
    "age bound": (without_rule("event_time_is_not_too_old"), whole_day),
    "hour that comes twice": (without_rule("local_time_is_unique"), hour_that_comes_twice),
    "mark of bad values": (without_rule("quality_is_good"), flagged),
    "events without measurements": (without_rule("something_is_measured"), whole_day),
    "contradictions": (without_conflicts, whole_day),
    "null-key guard": (without_rule("device_is_present"), whole_day),
    "lease": (without_lease, two_writers),
    "ledger by identity": (ledger_forgets, whole_day),
    "amendment": (without_amendments, whole_day),
    "snapshot pin": (without_pins, asked_twice),
    "VACUUM guard": (without_vacuum_guard, maintained),
    "prefix cut of verify": (verify_without_prefix, bronze_ahead),
    "fill bound": (without_fill_bound, whole_day),
    "registry re-read": (with_frozen_registry, new_device),
    "dated moves": (without_moves, moved_device),
    **aggregation_bugs.BUGS,
    **sink_bugs.BUGS,
    **flow_bugs.BUGS,
    **anomaly_bugs.BUGS,
}
"""By protection: how it is switched off, and what then happens."""
SCENARIOS = list(dict.fromkeys(happens for _, happens in BUGS.values()))
OF_FEW = [BUGS[name][1] for name in FEW]


@pytest.mark.parametrize("protection", all_of(BUGS, FEW))
def test_a_protection_that_is_switched_off_is_noticed(
    protection: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    switch_off, happens = BUGS[protection]
    switch_off(monkeypatch)
    found = happens(Day(conf(tmp_path), spark))
    print(f"{protection}: {found[:1]}")
    assert found, f"{protection} is switched off, and nobody noticed"


@pytest.mark.parametrize("happens", all_of(SCENARIOS, OF_FEW, lambda happens: happens.__name__))
def test_with_every_protection_there_is_nothing_to_notice(happens: Callable[[Day], list[str]], spark: SparkSession, tmp_path: Path) -> None:
    if happens is lost_checkpoint:
        with pytest.raises(TidemarkError, match="is missing"):
            happens(Day(conf(tmp_path), spark))
    else:
        assert happens(Day(conf(tmp_path), spark)) == []
