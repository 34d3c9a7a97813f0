"""`make soak`: a plant that is fed 20 times as fast as the real one, and disturbed again and again, in the order of a seed.

From ten minutes on nobody disturbs it in the last quarter, and what it takes of the machine must be flat there.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestration.storage.delta import rows_of
from tests.services import rows, tidemark
from tests.soak.plant import SINK_TABLE, Plant, plant
from tests.soak.samples import BATCHES, DESCRIPTORS, FILES, LAKE, MEMORY, PROCESSES, Samples, growth, growth_per_batch
from tests.soak.soak import Soak

pytestmark = [pytest.mark.processes, pytest.mark.soak, pytest.mark.postgres, pytest.mark.spark]
ARTIFACTS = Path("artifacts")
SEED = 2026
MOST_GROWTH = {MEMORY: 1.25, DESCRIPTORS: 1.15, FILES: 1.25}
"""Of the last third of the quiet end against the third before it; of files for each batch of bronze."""


@pytest.fixture
def of_soak(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Plant]:
    with plant(tmp_path) as made:
        for name, value in made.environment.items():
            monkeypatch.setenv(name, value)
        yield made


def test_what_up_says_of_each_disturbance_is_what_happened_and_no_event_is_lost(
    of_soak: Plant, pytestconfig: pytest.Config, seed: int | None
) -> None:
    minutes = float(pytestconfig.getoption("minutes"))
    soak = Soak(of_soak, minutes, SEED if seed is None else seed)
    print(
        f"seed {soak.seed}, {minutes:g} minutes" + ("" if of_soak.disk.is_own else "; the disk is not filled, as only root can mount one")
    )
    try:
        soak.run()
    finally:
        soak.write(ARTIFACTS)
        soak.watch.kill_all()
    assert_all_is_accounted_for(soak)
    assert_the_sink_has_what_readers_see(of_soak)
    if soak.is_long:
        assert grown(soak.samples, soak.quiet_at, 60 * minutes) == {}


def assert_all_is_accounted_for(soak: Soak) -> None:
    """Of files and objects each event once; of requests each event, and once more only what was sent once more."""
    conf = soak.plant.conf_folder
    for command in ("ledger", "verify"):
        ended = tidemark(conf, command)
        assert ended.returncode == 0, ended.stdout + ended.stderr
    payloads: dict[str, Counter[bytes]] = {"plant": Counter(), "web": Counter(), "bucket": Counter()}
    for row in rows_of(soak.watch.lake / "bronze" / "events"):
        payloads[row["source"]][bytes(row["payload"])] += 1
    assert payloads["plant"].total() == soak.feeds.landed
    assert payloads["bucket"] == Counter(soak.feeds.sent["bucket"])
    assert payloads["web"].keys() == {*soak.feeds.sent["web"]}
    (counted,) = rows(conf, "sql", "select sum(events)::bigint as events from ops.ledger")
    assert counted["events"] == sum(found.total() for found in payloads.values())
    print({name: found.total() for name, found in payloads.items()}, f"{payloads['web'].total() - len(payloads['web'])} of web twice")


def assert_the_sink_has_what_readers_see(made: Plant) -> None:
    columns = "device_id, metric, {} as ends, revision, value"
    in_lake = rows(made.conf_folder, "sql", f"select {columns.format('epoch(window_end)::bigint')} from {SINK_TABLE}")
    in_sink = made.database.rows(f"select {columns.format('extract(epoch from window_end)::bigint')} from kitchen")
    assert len(in_sink) > 0
    assert Counter(tuple(row.values()) for row in in_lake) == Counter(in_sink)


def grown(samples: Samples, first: float, last: float) -> dict[str, float]:
    """What has, between two instants at which nobody disturbed, by more than it may."""
    found = {
        f"{measure} of {of}": growth(samples.series(of, measure, first, last)) for of in PROCESSES for measure in (MEMORY, DESCRIPTORS)
    }
    files, batches = (samples.series(LAKE, measure, first, last) for measure in (FILES, BATCHES))
    found[f"{FILES} of {LAKE}"] = growth_per_batch(files, batches)
    print({name: round(value, 2) for name, value in found.items()})
    return {name: value for name, value in found.items() if value > MOST_GROWTH[name.split(" ")[0]]}
