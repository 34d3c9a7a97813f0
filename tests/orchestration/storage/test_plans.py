"""Plans: what a checkpoint does not go on under, and what may change at any time."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, write_deltalake

from orchestration.conf.model import Conf
from orchestration.engine.lake import Lake
from orchestration.errors import TidemarkError
from orchestration.storage.bindings import bind, changed_since_begun
from orchestration.storage.changed_settings import changed_settings
from orchestration.storage.delta import open_table
from orchestration.storage.generations import Generation
from orchestration.storage.source_offsets import with_offsets
from orchestration.storage.tables import ensure
from silver.aggregation import Aggregation
from silver.spec import Metric
from tests.lakes import KITCHEN, METRICS, PRESSES, SHAPE, conf


def with_metric(name: str, **changes: Any) -> Callable[[Conf], Conf]:
    return lambda made: replace(made, metrics=METRICS | {name: replace(METRICS[name], **changes)})


def with_kitchen(**changes: Any) -> Callable[[Conf], Conf]:
    return lambda made: replace(made, groups={"kitchen": replace(KITCHEN, **changes), "presses": PRESSES})


@pytest.mark.parametrize(
    ("flow", "change", "told"),
    [
        (
            "gold.kitchen",
            with_metric("temperature", step_seconds=300),
            "the window of temperature in conf/metrics.yml was 600 s, and is 300 s now",
        ),
        (
            "gold.presses",
            with_metric("vibration", slide_seconds=None),
            "the window of vibration in conf/metrics.yml was 600 s every 300 s, and is 600 s now",
        ),
        (
            "gold.kitchen",
            with_metric("power", aggregation=Aggregation.MEDIAN),
            "what is aggregated beside count, min, max, sum and latest was nothing, and is median now",
        ),
        (
            "gold.kitchen",
            with_metric("power", aggregation=Aggregation.COUNTER_INCREASE),
            "what is aggregated beside count, min, max, sum and latest was nothing, and is readings now",
        ),
    ],
)
def test_a_flow_does_not_go_on_under_another_plan(flow: str, change: Callable[[Conf], Conf], told: str, tmp_path: Path) -> None:
    made = conf(tmp_path)
    bind(Lake(made), flow, (Lake(made).tables["bronze.events"],))
    with pytest.raises(TidemarkError) as refused:
        bind(Lake(change(made)), flow, ())
    assert str(refused.value).startswith(f"{flow} cannot go on: {told}.\n  Undo the change in conf, or run `tidemark replay`")


def test_a_setting_that_changes_what_payloads_mean_is_told_since_its_batch_until_a_replay(tmp_path: Path) -> None:
    made = conf(tmp_path)
    lake = Lake(made)
    ensure(lake.tables["bronze.events"])
    bind(lake, "silver.readings", ())
    shape = replace(SHAPE, time=replace(SHAPE.time, time_zone="Europe/Berlin"))
    moved = replace(made, sources={"plant": replace(made.sources["plant"], payload_format=shape)})
    assert changed_since_begun(Lake(moved)) == []  # bronze has no event yet that was read otherwise

    put_offset(lake, batch=4)
    moved = replace(moved, metrics=METRICS | {"power": replace(METRICS["power"], unit="kW")})
    told = [
        "power.unit was not set, and is kW since bronze batch 5: readings of earlier batches stay as they were read;"
        " `tidemark replay` reads them anew"
    ]
    assert list(map(str, changed_since_begun(Lake(moved)))) == told
    put_offset(lake, batch=6)
    assert list(map(str, changed_settings(Lake(moved)))) == told  # as `status` asks
    assert len(changed_since_begun(lake)) == 2  # both are put back, and batches between were read by the others
    assert changed_settings(Lake(moved, generation=Generation(places={"checkpoints/silver.readings": 2}))) == []


def put_offset(lake: Lake, batch: int) -> None:
    """As if bronze had written a batch."""
    properties = CommitProperties(custom_metadata=with_offsets({}, batch, {"plant": {"claim": batch}}, {}, {}))
    events = open_table(lake.table_path("bronze.events"))
    write_deltalake(events, pa.schema(events.schema().to_arrow()).empty_table(), mode="append", commit_properties=properties)


@pytest.mark.parametrize(
    "change",
    [
        with_metric("temperature", unit="K", label="warmth", maximum=400.0),
        with_metric("temperature", aggregation=Aggregation.MAX),
        with_metric("vibration", step_seconds=900),  # of another stream
        with_kitchen(lateness_seconds=1200, idle_close_seconds=60, label="Kitchen", metrics=("temperature", "power", "noise"), vector=None),
    ],
)
def test_what_a_checkpoint_does_not_depend_on_may_change(change: Callable[[Conf], Conf], tmp_path: Path) -> None:
    made = conf(tmp_path, metrics=METRICS | {"noise": Metric("noise", Aggregation.MAX, 600)})
    bind(Lake(made), "gold.kitchen", ())
    changed = change(made)
    bind(Lake(replace(changed, metrics=made.metrics | changed.metrics)), "gold.kitchen", ())
