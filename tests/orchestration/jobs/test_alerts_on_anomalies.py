"""Alerts on anomalies, slice by slice, without Spark: gold has vectors and how they were judged in time, changes of alerts come out."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gold.alerts.spec import Alert, Signal
from gold.anomalies.spec import Anomalies
from orchestration.engine.lake import Lake
from orchestration.jobs.gold import slices
from orchestration.jobs.gold.exact_alerts import ExactAlert
from orchestration.jobs.gold.prefix import Prefix
from orchestration.storage.positions import GoldPosition
from orchestration.storage.tables import ensure
from tests.lakes import KITCHEN, conf, write
from tests.orchestration.jobs.test_alert_slices import SECOND, START, now, readings, rows_of

REASON = "temperature 231.4, expected 198.2 ± 3.1 (78 % of the score), power 1, expected 0"
ODD = Alert("odd", Signal("anomaly", group="kitchen", features=("temperature", "power")), "is_anomaly", "score < 1")
STRONG = replace(ODD, name="strong", when="score > 2.5 and temperature > 200", recover_when=None, summary="{value:.1f}: {reason}")
SCORES = {600: None, 1200: 0.4, 1800: 4.5, 2400: 0.3, 3600: 2.2, 4200: 2.6}
"""Of vectors in time, by the end of their windows in seconds. One that ends at 3,000 s is of late rows alone."""
CLOSED = (1200, 2400, 3600, 4800)
"""Up to where windows are closed behind each batch."""


def judged_lake(folder: Path) -> Lake:
    """An oven whose anomaly of 1,800 s late rows have taken back since: alerts are about what was known in time."""
    groups = {"kitchen": replace(KITCHEN, anomalies=Anomalies())}
    lake = Lake(conf(folder, groups=groups, alerts={"odd": ODD, "strong": STRONG}), None)
    for table in lake.tables.values():
        ensure(table)
    for batch, closed in enumerate(CLOSED):
        readings(lake, np.array([200.0]), 1, batch, since=closed + 600)
    readings(lake, np.array([200.0]), 1, 2, since=2700, table="silver.late")
    vector, judged = {"vector": [231.4, 1.0], "missing": [], "filled": []}, {"share": [0.78, 0.22], "expected": [198.2, 0.0]}
    for end, score in [*SCORES.items(), (3000, 9.0)]:
        key: dict[str, Any] = {"entity": "device-0", "window_start": now(end - 600), "window_end": now(end), "gold_batch": 0}
        revision = int(end == 3000)
        write(lake, "gold.kitchen_vectors", key | vector | {"revision": revision})
        is_anomaly = score is not None and score > 2.5
        row = key | judged | {"score": score, "is_anomaly": is_anomaly, "reason": REASON if is_anomaly else None}
        write(lake, "gold.kitchen_anomalies", row | {"revision": revision}, *([row | {"revision": 1, "score": 0.1}] if end == 1800 else []))
    return lake


def follow(lake: Lake, batch: int) -> None:
    reached = {"kitchen": GoldPosition(batch, START // 1000 + CLOSED[batch] * 1000, batch, batch)}
    for alert in lake.conf.alerts.values():
        assert sum(slices.follow(lake, ExactAlert(alert), Prefix(batch, reached))) >= 0


@pytest.mark.parametrize("ends", [[3], [1, 3], [0, 1, 2, 3]])
def test_an_alert_on_anomalies_sees_vectors_as_they_were_judged_in_time(ends: Sequence[int], tmp_path: Path) -> None:
    lake = judged_lake(tmp_path)
    for batch in ends:
        follow(lake, batch)
    seen = [
        ((row["changed_at"].timestamp() * SECOND - START) / SECOND, row["state"], row["value"], row["summary"])
        for row in rows_of(lake, "odd")
    ]
    assert seen == [
        (1800, "firing", 4.5, f"odd: device-0 is firing: {REASON}"),
        (2400, "normal", 0.3, "odd: device-0 is normal"),
        (4200, "firing", 2.6, f"odd: device-0 is firing: {REASON}"),
    ]
    strong = [(row["state"], row["summary"]) for row in rows_of(lake, "strong")]
    assert strong == [("firing", f"4.5: {REASON}"), ("normal", "0.3: no reason"), ("firing", f"2.6: {REASON}")]
