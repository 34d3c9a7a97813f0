"""Verify's own alerts over the anomalies of a planted lake are those that the job wrote, however it went; without Spark."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from gold.alerts.spec import Alert, Signal
from gold.anomalies.spec import Anomalies
from gold.windows.spec import Vector
from orchestration.engine.lake import Lake
from orchestration.jobs.gold import slices
from orchestration.jobs.gold.exact_alerts import ExactAlert
from orchestration.jobs.gold.prefix import Prefix
from orchestration.storage.positions import GoldPosition
from orchestration.storage.tables import ensure
from silver.aggregation import Aggregation
from silver.metric import Metric
from tests.lakes import KITCHEN, conf, recorded, rewrite, write
from tests.orchestration.audit.verify.test_alerts_of_silver import outcomes
from tests.orchestration.jobs.test_alert_slices import START, now, readings

ON = Signal("anomaly", group="kitchen", features=("temperature",))
ALERTS = (
    Alert("odd", ON, "is_anomaly", "score < 1"),
    Alert("strong", ON, "score > 2 and temperature > 0", for_times=2, summary="{entity} {value:.1f} {reason}"),
    Alert("blind", ON, "score is null", keep_firing_seconds=90),
)
STEP, LATE_ONLY = 60, 720
BATCHES = ((0, 300), (300, 600), (600, 660), (720, 900), (900, 1200))
"""The seconds of which each has readings. Windows are closed up to CLOSED behind it."""
CLOSED = [end - 61 for _, end in BATCHES]
SCORES = {end: None if end < 240 else 4.5 if end in {420, 1020} else 2.5 if end in {480, 540} else 0.2 for end in range(STEP, 1081, STEP)}
"""Of vectors, by the ends of their windows in seconds; the one at LATE_ONLY was not there in time."""


def planted(folder: Path, ends: Sequence[int]) -> Lake:
    """Batches, the last one with a late reading that alone makes a vector; a run looks behind batches of `ends`."""
    groups = {"kitchen": replace(KITCHEN, metrics=("temperature",), lateness_seconds=60, vector=Vector("device", ("temperature",)))}
    groups["kitchen"] = replace(groups["kitchen"], anomalies=Anomalies())
    metrics = {"temperature": Metric("temperature", Aggregation.AVERAGE, STEP)}
    lake = Lake(conf(folder, groups=groups, metrics=metrics, alerts={alert.name: alert for alert in ALERTS}), None)
    for table in lake.tables.values():
        ensure(table)
    for end, score in SCORES.items():
        key: dict[str, Any] = {
            "entity": "device-0",
            "window_start": now(end - STEP),
            "window_end": now(end),
            "revision": int(end == LATE_ONLY),
        }
        is_odd = score is not None and score > 2
        judged = {"score": score, "is_anomaly": score == 4.5, "reason": f"why {end}" if is_odd else None if score else "learning"}
        write(lake, "gold.kitchen_vectors", key | {"vector": [float(end)], "missing": [], "filled": []})
        late = [key | judged | {"revision": 1, "score": 9.0, "is_anomaly": True}] if end == 300 else []
        write(lake, "gold.kitchen_anomalies", key | judged, *late)
    for batch, (begin, end) in enumerate(BATCHES):
        readings(lake, (np.arange(begin, end) // STEP + 1) * float(STEP), 1, batch, since=begin)
        if end == BATCHES[-1][1]:
            readings(lake, np.array([720.0]), 1, batch, since=700, table="silver.late", wall=end - 1)
        if batch in ends:
            reached = {"kitchen": GoldPosition(batch, START // 1000 + CLOSED[batch] * 1000, batch, batch)}
            for alert in lake.conf.alerts.values():
                assert sum(slices.follow(lake, ExactAlert(alert), Prefix(batch, reached))) >= 0
    return lake


@pytest.mark.parametrize("ends", [[4], [0, 1, 2, 3, 4]])
def test_the_second_evaluator_finds_the_rows_that_the_job_wrote(ends: list[int], tmp_path: Path) -> None:
    lake, closed = planted(tmp_path, ends), {"kitchen": now(CLOSED[-1])}
    (tmp_path / "store").mkdir()
    judged = {outcome.table: outcome for outcome in outcomes(lake, tmp_path / "store", closed)}
    assert {name: (outcome.differences, outcome.first) for name, outcome in judged.items()} == dict.fromkeys(judged, (0, ()))
    rows = recorded(lake, "gold.alerts")
    assert {row["alert"] for row in rows.to_pylist() if row["is_past"]} == {"blind"}  # without a score, and older than what is known
    present = rows.filter(pc.invert(rows["is_past"])).sort_by([("alert", "ascending"), ("changed_at", "ascending")]).to_pylist()
    said = [(row["alert"], row["state"], row["summary"]) for row in present]
    assert said == [
        ("blind", "firing", "blind: device-0 is firing: learning"),
        ("blind", "recovering", "blind: device-0 is recovering"),
        ("blind", "normal", "blind: device-0 is normal"),
        ("odd", "firing", "odd: device-0 is firing: why 420"),
        ("odd", "normal", "odd: device-0 is normal"),
        ("odd", "firing", "odd: device-0 is firing: why 1020"),
        ("odd", "normal", "odd: device-0 is normal"),
        ("strong", "pending", "device-0 4.5 why 420"),
        ("strong", "firing", "device-0 2.5 why 480"),
        ("strong", "normal", "device-0 0.2 no reason"),
        ("strong", "pending", "device-0 4.5 why 1020"),
        ("strong", "normal", "device-0 0.2 no reason"),
    ]
    other = pa.array([text.replace("why 480", "why 1") for text in rows["summary"].to_pylist()])
    rewrite(lake, "gold.alerts", rows.set_column(rows.schema.get_field_index("summary"), rows.schema.field("summary"), other))
    (tmp_path / "again").mkdir()
    assert sum(outcome.differences for outcome in outcomes(lake, tmp_path / "again", closed)) == 1
