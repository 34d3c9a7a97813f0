"""`tidemark init --from FILE` takes device and metric out of an id that holds both, and a preview reads them so."""

import json
from pathlib import Path

import pytest

from orchestration.connectors.sampling import sample_of_file
from orchestration.jobs.preview import preview
from tests.orchestration.conf.conftest import START, Propose

JOINED = [
    pytest.param(["L1.Press01.Oil", "L1.Press02.Oil"], {"Press01", "Press02"}, {"Oil"}, id="points"),
    pytest.param(["plant/press/oil", "plant/press/temp"], {"press"}, {"oil", "temp"}, id="slashes"),
    pytest.param(["L1.Press.Oil", "L2.Press.Oil"], {"L1.Press", "L2.Press"}, {"Oil"}, id="two of one name"),
    pytest.param(["Oil", "L2.Press.Oil"], {"sample"}, {"Oil", "L2.Press.Oil"}, id="not in each"),
]


@pytest.mark.parametrize(("ids", "devices", "metrics"), JOINED)
def test_device_and_metric_are_parts_of_one_id(
    ids: list[str], devices: set[str], metrics: set[str], propose: Propose, tmp_path: Path
) -> None:
    rows = [{"ts": START + n, "values": [{"id": name, "v": 54.5} for name in ids]} for n in range(6)]
    conf = propose([json.dumps(row) for row in rows])
    assert (set(conf.devices), set(conf.metrics)) == (devices, metrics)
    read = preview(conf, "sample", sample_of_file(conf.sources["sample"], tmp_path / "sample.txt")).measurements
    assert {(row["becomes"], row["device_id"], row["metric"]) for row in read} >= {("reading", min(devices), min(metrics))}
    assert len(read) == 6 * len(ids) == sum(row["becomes"] == "reading" for row in read)
