"""Sources come and go on one lake: nothing is read twice, nothing is lost, and what bronze has of them can always be read."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from orchestration.audit.reconciliation.account import ALARMS, account, by_day, open_tables
from orchestration.audit.verify.check import verify
from orchestration.audit.verify.lake_snapshot import latest_snapshot
from orchestration.conf.model import Conf, Source
from orchestration.conf.transport_settings import LandingFolder
from orchestration.engine.lake import Lake
from orchestration.errors import TidemarkError
from orchestration.jobs import bronze
from orchestration.storage.payload_formats import FILE, former, payload_formats, remember
from silver.spec import Origin, PayloadFormat, Time
from tests.lakes import KITCHEN, SHAPE, conf, event, land, minutes, multiset, run, table
from tests.rows import at

START = at("2026-01-05T00:00:00")
TIMES = minutes(START, 8)
ROOMS = PayloadFormat("csv", Origin(file_name=r"(\w+)\.csv"), Time("when"), metrics={"temperature": "T", "power": "P"}, has_header=True)
BRONZE, ALL = ("bronze.events",), ()


def named(folder: Path, *names: str) -> Conf:
    """A lake with these sources; `hall` is another name of `annex`."""
    all_sources = [
        Source("plant", SHAPE, LandingFolder(folder / "landing", settle_seconds=0)),
        *(Source(name, ROOMS, LandingFolder(folder / "rooms", settle_seconds=0)) for name in ("annex", "hall")),
    ]
    of_names = {source.name: source for source in all_sources if source.name in names}
    return conf(folder, sources=of_names, groups={"kitchen": KITCHEN})


def heat(number: int) -> list[str]:
    return [event("oven", "temperature", number, TIMES[number])]


def room(number: int) -> list[str]:
    return ["when,T,P", f"{TIMES[number]:%Y-%m-%d %H:%M},{number},{number}"]


def sent(made: Conf) -> dict[object, int]:
    return dict(multiset(table(made, "bronze.events"), ["source", "position"]))


def once(pairs: Iterable[tuple[str, str]]) -> dict[object, int]:
    return dict.fromkeys(pairs, 1)


def test_a_source_is_added_removed_renamed_and_brought_back_on_one_lake(spark: SparkSession, tmp_path: Path) -> None:
    land(tmp_path, "0.json", heat(0))
    run(named(tmp_path, "plant"), spark, BRONZE)

    land(tmp_path, "sub/fridge.csv", room(1), "rooms")
    land(tmp_path, "2.json", heat(2))
    run(named(tmp_path, "plant", "annex"), spark, BRONZE)  # added, and first in the order of names

    land(tmp_path, "3.json", heat(3))
    land(tmp_path, "oven.csv", room(4), "rooms")
    run(named(tmp_path, "hall"), spark, BRONZE)  # plant removed, annex renamed
    renamed = [("plant", "0.json"), ("plant", "2.json"), ("annex", "sub/fridge.csv"), ("hall", "oven.csv")]
    assert sent(named(tmp_path, "hall")) == once(renamed)

    made = named(tmp_path, "plant", "hall")  # plant is back
    land(tmp_path, "5.json", heat(5))
    for flows in (ALL, BRONZE):  # the second time nothing waits
        run(made, spark, flows)
        assert sent(made) == once([*renamed, ("plant", "3.json"), ("plant", "5.json")])
    # Silver has not seen annex before, and reads it as it was declared.
    values = multiset(table(made, "silver.readings"), ["source", "device_id", "value"])
    assert values == {("plant", "oven", f"{n}.0"): 1 for n in (0, 2, 3, 5)} | {
        ("annex", "fridge", "1.0"): 2,
        ("hall", "oven", "4.0"): 2,
    }
    days = by_day(account(open_tables(Lake(made))).batches)
    assert {(row["source"], *(row[alarm] for alarm in ALARMS)) for row in days} == {
        (name, 0, 0, 0, 0) for name in ("plant", "annex", "hall")
    }
    report = verify(latest_snapshot(made), made)
    assert [difference for outcome in report.outcomes for difference in outcome.first] == []


def test_what_an_interrupted_batch_holds_of_a_source_comes_in_also_when_it_is_removed_meanwhile(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its file is claimed, and not read."""
    both = named(tmp_path, "plant", "annex")
    land(tmp_path, "0.json", heat(0))
    land(tmp_path, "fridge.csv", room(1), "rooms")

    def broken(*_: object, **__: object) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(bronze, "append_pieces", broken)
        with pytest.raises(OSError, match="no space left"):
            run(both, spark, BRONZE)
    for made in (named(tmp_path, "plant"), both):
        run(made, spark, BRONZE)
        assert sent(made) == once([("plant", "0.json"), ("annex", "fridge.csv")])  # one event: the header is none


def test_a_lake_remembers_every_part_of_a_shape_as_it_was_declared_last(tmp_path: Path) -> None:
    nested = PayloadFormat(
        "json",
        Origin(field="gw.id"),
        Time("each.at", "epoch_ms", "Europe/Berlin"),
        zone=Origin(constant="hall"),
        metrics={"b": "each.b", "a": "each.a"},
        each="data",
    )
    plant = Source("plant", nested, LandingFolder(tmp_path / "landing"))
    for shape in (SHAPE, nested):
        remember(
            conf(
                tmp_path,
                sources={"plant": replace(plant, payload_format=shape), "rooms": replace(plant, name="rooms", payload_format=ROOMS)},
            )
        )
    without = conf(tmp_path, sources={})
    remember(without)
    assert payload_formats(without) == {"plant": nested, "rooms": ROOMS}
    assert list(payload_formats(without)["plant"].metrics) == ["b", "a"]  # the place in the list is the part
    assert former(without) == ["plant", "rooms"]
    assert former(conf(tmp_path)) == ["rooms"]


def test_files_of_a_source_that_nobody_knows_and_a_damaged_memory_are_refused(tmp_path: Path) -> None:
    made = conf(tmp_path)
    (made.lake.local / "intake" / "ghost").mkdir(parents=True)
    with pytest.raises(TidemarkError, match=r"holds files of source ghost, which neither .*\n  Declare ghost in sources.yml for one run"):
        remember(made)
    for content in ("", '{"plant": {}}', "[]", '{"plant": {"format": 1}}'):
        (made.lake.local / FILE).write_text(content)
        with pytest.raises(TidemarkError, match=r"sources.json is damaged: its bytes differ"):
            payload_formats(made)
