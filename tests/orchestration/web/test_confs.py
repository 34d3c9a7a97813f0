"""The view of runs shows which conf runs, since when, what it changed, and what is not taken up."""

from datetime import UTC, datetime
from pathlib import Path

from orchestration.conf.load import load
from orchestration.storage import confs
from orchestration.storage.bindings import bind
from orchestration.storage.tables import LakeStore, ensure
from orchestration.supervisor.service_state import RefusedConf, refused_conf
from tests.conf_changes import CHANGES, write_plant
from tests.pages import served


def test_the_conf_that_runs_its_difference_to_the_one_before_and_a_refused_one_are_shown(tmp_path: Path) -> None:
    folder = write_plant(tmp_path)
    lake = LakeStore(load(folder))
    ensure(lake.tables["bronze.events"])
    bind(lake, "silver.readings", ())
    for title in ("a label", "a new rule"):
        confs.take_up(LakeStore(load(folder)), datetime.now(UTC))
        next(change for change in CHANGES if change.title == title).apply(folder)
    confs.take_up(LakeStore(load(folder)), datetime.now(UTC))
    refused = RefusedConf("conf/metrics.yml", 2, "the window <b> was 600 s, and is 60 s now", "tidemark replay", "2026-03-02T08:00:00Z")
    refused_conf(lake.conf.lake).write(refused)
    with served(folder) as running:
        shown = running.ask("/runs")[2]
        assert "Version 3 of the conf runs, since" in shown
        assert "rooms.label was Rooms, and is All rooms now" in shown
        assert "is_warm is new" in shown
        assert "conf/metrics.yml:2: the window &lt;b&gt; was 600 s" in shown
        assert "is not taken up; all goes on as before: conf/metrics.yml:2: the window &lt;b&gt; was 600 s" in running.ask("/")[2]
