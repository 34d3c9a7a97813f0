"""The examples of alerts in gold/alerts/README.md change as the text beside each says."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from gold.alerts.samples import samples
from gold.alerts.signals import Carried
from gold.alerts.states import State, judge
from gold.instants import to_micros
from orchestration.conf.load import load
from silver.schema import READINGS

PAGE = (Path(__file__).parents[3] / "gold" / "alerts" / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```yaml\n(alerts:\n.*?)```\n```text\n.*?\n(.*?)```", PAGE, re.DOTALL)


def at(time: str) -> datetime:
    return datetime.fromisoformat(f"2026-01-05T{time}").replace(tzinfo=UTC)


@pytest.mark.parametrize(("conf", "lines"), EXAMPLES, ids=[conf.split()[1] for conf, _ in EXAMPLES])
def test_an_example_changes_as_the_page_says(conf: str, lines: str, folder: Path) -> None:
    (folder / "alerts.yml").write_text(conf)
    (alert,) = load(folder).alerts.values()
    listed = [(at(time), value, change) for time, value, change in (line.split("#")[0].split() for line in lines.splitlines())]
    of_device = {"device_id": "d", "metric": "temperature", "groups": ["kitchen"]}
    readings = [of_device | {"event_time": time, "value": float(value)} for time, value, _ in listed if value != "-"]
    found, states, carried = list[tuple[datetime, str]](), dict[str, State](), Carried()
    with duckdb.connect() as store:
        for time, value, _ in listed:  # each line is a step: a reading that comes a second later, or a tick
            wall = to_micros(time + timedelta(seconds=2 if value == "-" else 1))
            of_step = [row | {"step": 0} for row in readings if row["event_time"] == time]
            store.register("readings", pa.Table.from_pylist(of_step, READINGS.append(pa.field("step", pa.int64()))))
            of_slice, carried = samples(store, alert, "readings", [wall], carried)
            changes, states, _ = judge(alert, states, of_slice, [wall])
            found += [(row["changed_at"], row["state"]) for row in changes.to_pylist()]
    assert found == [(time, change) for time, _, change in listed if change != "-"]


def test_the_page_has_three_examples() -> None:
    assert len(EXAMPLES) == 3
