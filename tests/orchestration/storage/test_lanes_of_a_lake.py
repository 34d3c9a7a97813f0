"""Lanes of a lake: written down with the checkpoint, begun with the state that they need; what follows silver asks them. Without Spark."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from gold.flows.in_time import Final
from gold.flows.slices import THE_BEGINNING
from gold.instants import SECOND
from orchestration.conf.model import Conf, Source
from orchestration.conf.transport_settings import LandingFolder
from orchestration.engine.lake import Lake
from orchestration.jobs.gold import lane_slices
from orchestration.storage.bindings import Start, begin, start_of
from orchestration.storage.lane_record import FLOW
from orchestration.storage.lanes import begin_anew, begin_lanes, lanes_of, versions_with_state
from orchestration.storage.positions import FlowPosition
from orchestration.storage.tables import LakeStore, ensure
from orchestration.utc import to_micros
from tests.lakes import SHAPE, conf, event, land, write
from tests.rows import at
from tests.taking import opened, take

NOON = at("2026-01-05T12:00:00")
NONE = {"zone": None, "attributes": None}


def sites(folder: Path, lateness: int | None) -> Conf:
    declared = {
        name: Source(name, SHAPE, LandingFolder(folder / name, settle_seconds=0.0), lateness_seconds=seconds)
        for name, seconds in (("site_a", None), ("site_b", lateness))
    }
    return conf(folder, sources=declared)


def reading(source: str, batch: int, minutes: float, **more: Any) -> dict[str, Any]:
    event_time = NOON + timedelta(minutes=minutes)
    cells = {"device_id": source, "metric": "temperature", "event_time": event_time, "value": 1.0, "groups": ["kitchen"]}
    return cells | {"source": source, "ingested_at": NOON, "bronze_batch": batch, "bronze_row": 0, "part": 0, "parts": 1} | NONE | more


def a_lake(folder: Path, batches: int = 4) -> LakeStore:
    """Of two sources in one lane, with these bronze batches; in silver the later ones of site_b are late."""
    lake = opened(sites(folder, None))
    for batch in range(batches):
        for name in ("site_a", "site_b"):
            land(folder, f"{batch}.json", [event(name, "temperature", 1.0, NOON)], name)
        assert take(lake) is not None
    for name in (FLOW, "silver.late"):
        ensure(lake.tables[name])
    write(lake, FLOW, *(reading("site_a", batch, 30.0 * batch) for batch in range(batches)), reading("site_b", 0, -360))
    late = (reading("site_b", batch, 10 * batch - 360, cause="late") for batch in range(1, batches))
    write(lake, "silver.late", *late)
    begin(lake, FLOW, (lake.tables[FLOW],), Start())
    return lake


def test_a_lake_of_one_lane_has_no_file_of_lanes(tmp_path: Path) -> None:
    lake = a_lake(tmp_path)
    begin_lanes(lake)
    assert lanes_of(lake).flows == [FLOW]
    assert not (lake.checkpoint(FLOW) / "lanes.json").exists()


def test_a_new_lane_begins_a_lateness_before_its_newest_reading_and_writes_what_comes_from_now_on(tmp_path: Path) -> None:
    lake = a_lake(tmp_path)
    for lateness in (7_200, 1_201):
        later = LakeStore(sites(tmp_path, lateness))
        begin_lanes(later)
        flow = lanes_of(later).flows[-1]
        # Bronze version 0 is the making of the table. Its newest reading is the one of batch 0, before which there was none.
        assert start_of(later, flow) == Start(1, 3)
    assert lanes_of(LakeStore(sites(tmp_path, 1_201))).flows == [FLOW, "silver.readings@site_b", "silver.readings@site_b_4"]
    assert versions_with_state(lake, lanes_of(lake))[FLOW] == 4


def test_of_a_replayed_generation_each_lane_begins_for_itself(tmp_path: Path) -> None:
    a_lake(tmp_path)
    lake = LakeStore(sites(tmp_path, 7_200))
    begin_anew(lake, 3)
    starts = {flow: start_of(lake, flow) for flow in lanes_of(lake).flows}
    assert starts == {FLOW: Start(4, 3), "silver.readings@site_b": Start(1, 3)}
    assert lanes_of(lake).of_default() == "not ((source = 'site_b'))"


def test_a_flow_waits_for_the_slower_lane_and_leaves_out_what_that_one_brought_behind_it(tmp_path: Path) -> None:
    a_lake(tmp_path)
    made = sites(tmp_path, 3_600)
    begin_lanes(LakeStore(made))
    lake = Lake(made)
    write(lake, FLOW, reading("site_a", 4, 120), reading("site_b", 4, -300), reading("site_b", 5, 170), reading("site_a", 5, 180))
    lanes = lanes_of(lake)
    begin_position = FlowPosition(-1, THE_BEGINNING)
    noon = to_micros(NOON)
    before = lane_slices.final_position(lake, lanes, begin_position, 3, "true")
    assert (before.until, before.final) == (noon + 80 * 60 * SECOND, Final(before.until, {"": noon + 90 * 60 * SECOND}))
    after = lane_slices.final_position(lake, lanes, before, 5, "true")
    assert after.until == noon + 110 * 60 * SECOND  # 170 less 60 minutes, of site_b
    one_lane = lane_slices.final_position(lake, lanes, before, 5, "source = 'site_a'")
    assert one_lane.until == noon + 170 * 60 * SECOND
    left_out = f"not (bronze_batch between 4 and 4 and arrow_cast(event_time, 'Int64') < {before.until})"
    assert lane_slices.in_time(lake, lanes, before, "true") == left_out
    assert lane_slices.in_time(lake, lanes, replace(begin_position), "true") == left_out
