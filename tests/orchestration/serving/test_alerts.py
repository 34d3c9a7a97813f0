"""`tidemark alerts test`: what an alert would have done over a snapshot, in rows, in a sentence and in a picture."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gold.alerts.spec import Alert, Escalation, Signal
from orchestration.conf.model import Conf
from orchestration.errors import TidemarkError
from orchestration.serving.alerts import COLUMNS, tried
from orchestration.serving.plots.alerts import draw, thresholds
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.snapshots import SNAPSHOTS
from orchestration.storage.tables import LakeStore, ensure
from silver.aggregation import Aggregation
from silver.metric import Metric
from tests.commands import Tidemark
from tests.lakes import bare_conf, write

START = datetime(2026, 1, 5, tzinfo=UTC)
HOT = Alert("hot", Signal("reading", "temperature", "kitchen"), "value > 280", "value < 260")
OVEN = (250.0, 290.0, 270.0, 255.0, 300.0, 300.0)


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def lake_of(folder: Path) -> Conf:
    """Readings of an oven and a fridge each minute, and a batch of which no snapshot knows."""
    made = bare_conf(folder, metrics={"temperature": Metric("temperature", Aggregation.AVERAGE, 600, "degC")})
    of_all = {"metric": "temperature", "groups": ["kitchen"], "ingested_at": at(60), "bronze_row": 0, "part": 0}
    of_oven = [of_all | {"device_id": "oven", "event_time": at(n), "value": value, "bronze_batch": 0} for n, value in enumerate(OVEN)]
    of_fridge = [of_all | {"device_id": "fridge", "event_time": at(n), "value": 4.0, "bronze_batch": 0} for n in range(6)]
    after = of_all | {"device_id": "fridge", "event_time": at(1), "value": 400.0, "bronze_batch": 1}
    store = LakeStore(made)
    ensure(store.tables["silver.late"])
    write(store, "silver.readings", *of_oven, *of_fridge, after)
    write(
        store,
        "bronze.events",
        *({"bronze_batch": batch, "bronze_row": 0, "ingested_at": at(60), "ingested_on": at(60).date()} for batch in range(2)),
    )
    SNAPSHOTS.append(made.lake, [Snapshot(0, at(60), 1, 0, {"silver.readings": 0}, {"kitchen": at(5)})])
    return made


def rows(conf: Conf, alert: Alert, **since: datetime) -> list[tuple[Any, ...]]:
    return [(row["entity"], row["state"], row["changed_at"]) for row in tried(conf, alert, **since).changes.to_pylist()]


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Conf:
    return lake_of(tmp_path_factory.mktemp("plant"))


def test_an_alert_is_judged_over_what_the_snapshot_has_and_no_more(plant: Conf) -> None:
    assert rows(plant, HOT) == [("oven", "firing", at(1)), ("oven", "normal", at(3)), ("oven", "firing", at(4))]
    assert rows(plant, HOT, since=at(2)) == [("oven", "normal", at(3)), ("oven", "firing", at(4))]


def test_the_summary_says_how_often_how_long_and_for_whom_most(plant: Conf) -> None:
    escalating = Alert("hot", HOT.signal, "value > 280", "value < 260", escalate=(Escalation(60, "high"),))
    for alert in (HOT, escalating):
        assert tried(plant, alert).summary() == (
            "hot fired 2 times for 1 of 2, 0:03:00 in all; most for oven: 2 times, 0:03:00; 12 samples of 2 until 2026-01-05T00:05:00Z"
        )
    assert tried(plant, Alert("cold", HOT.signal, "value < 0")).summary() == "cold never fired; 12 samples of 2 until 2026-01-05T00:05:00Z"


def test_a_count_looks_at_the_readings_of_the_snapshot_too(plant: Conf) -> None:
    alert = Alert("silent", Signal("count", every_seconds=120), "readings < 2")
    assert rows(plant, alert) == []
    assert [row["value"] for row in tried(plant, alert).samples.to_pylist()] == [2, 2, 2, 2]


def test_a_lake_without_a_snapshot_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(TidemarkError, match=r"has no snapshot yet: make one with `.*run --once`"):
        tried(bare_conf(tmp_path), HOT)


def test_the_picture_has_a_panel_for_each_device_with_spans_and_thresholds(plant: Conf) -> None:
    figure = draw(plant, tried(plant, HOT))
    assert [panel.get_title(loc="left") for panel in figure.axes] == ["oven", "fridge"]
    assert [panel.get_title(loc="right") for panel in figure.axes] == ["fired 2 x", "never fired"]
    assert len(figure.axes[0].patches) == 2
    assert (thresholds(HOT, "when"), thresholds(HOT, "recover_when")) == ([280.0], [260.0])
    assert "value > 280" in "".join(text.get_text() for text in figure.texts)


def test_a_picture_without_samples_says_so(plant: Conf) -> None:
    (panel,) = draw(plant, tried(plant, Alert("hot", Signal("reading", "humidity"), "value > 1"))).axes
    assert [text.get_text() for text in panel.texts] == ["no samples"]


def test_the_command_prints_rows_to_stdout_and_the_summary_beside_it(
    plant: Conf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tidemark: Tidemark
) -> None:
    monkeypatch.setattr("orchestration.conf.load.load", lambda folder: replace(plant, alerts={"hot": HOT}))
    picture = tmp_path / "made" / "hot.png"
    said = tidemark("alerts", "test", "hot", "--since", "2026-01-05T00:02", "--format", "json", "--png", picture)
    (_, row), err = said.rows, said.err
    assert (said.code, tuple(row)) == (0, COLUMNS)
    assert (row["changed_at"], row["entity"], row["state"], row["value"]) == ("2026-01-05T00:04:00Z", "oven", "firing", 300.0)
    assert err.startswith("hot fired 1 time for 1 of 2, 0:01:00 in all; ") and err.endswith(f"{picture}\n")
    assert picture.read_bytes().startswith(b"\x89PNG")
    said = tidemark("alerts", "test", "hto")
    assert (said.code, "there is no alert 'hto'; the alerts are hot" in said.err) == (2, True)
