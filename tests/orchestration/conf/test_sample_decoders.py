"""`tidemark init --from FILE` names the decoder of messages that are neither plain JSON objects nor CSV, and a preview reads them by it."""

import json
from pathlib import Path

import pytest

from orchestration.cli.app import exit_code
from orchestration.conf.load import load
from orchestration.conf.proposal import proposal_of
from orchestration.conf.starter import write_proposal
from orchestration.connectors.sampling import sample_of_file
from orchestration.jobs.preview import preview

OTLP = json.dumps(
    {
        "resourceMetrics": [
            {
                "resource": {"attributes": [{"key": "host.name", "value": {"stringValue": "gw-1"}}]},
                "scopeMetrics": [
                    {
                        "metrics": [
                            {
                                "name": "room.temperature",
                                "unit": "Cel",
                                "gauge": {"dataPoints": [{"asDouble": 21.5, "timeUnixNano": "1772438400000000000"}]},
                            }
                        ]
                    }
                ],
            }
        ]
    }
)


@pytest.mark.parametrize(
    ("content", "decode", "metrics"),
    [
        (b'[{"bn":"mote:","bt":1772438400,"n":"temp","v":21.5},{"n":"temp","t":-60,"v":21.3}]\n', "senml", ["temp"]),
        (b"m,site=a\\ b temp=21.5,hum=40i 1772438400123456789\n# a comment\nm temp=21.6 1772438401123456789\n", "influx", ["temp", "hum"]),
        (b'[{"id":"a","ts":1772438400,"temp":21.5},{"id":"b","ts":1772438460,"temp":21.3}]\n', "array", ["temp"]),
        (b"21.5\nON\n21.7\n", "text", ["value"]),
        (b'{"Device A":[{"ts":1772438400,"t":21.5}],"Device B":[{"ts":1772438400,"t":22.5}]}\n', "by_key", ["t"]),
        (b'{"id":"a","ts":[1772438400,1772438460],"temp":[21.5,21.6]}\n', "columns", ["temp"]),
        (
            b'{"id":"a","meterValue":[{"timestamp":"2026-03-02T08:00:00Z","sampledValue":[{"measurand":"Voltage","value":"230.1"}]}]}\n',
            {"flatten": "meterValue.sampledValue"},
            ["Voltage"],
        ),
        (OTLP.encode(), "otlp", ["room.temperature"]),
        (b'{"at":"2026-03-02T08:00:00Z","Body":"eyJ0ZW1wIjogMjEuNX0="}\n', {"base64": "Body"}, ["temp"]),
    ],
)
def test_a_sample_of_messages_that_are_no_objects_names_its_decoder(
    content: bytes, decode: str | dict[str, str], metrics: list[str], tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_bytes(content)
    proposal = proposal_of(tmp_path / "a.txt")
    assert (proposal.sample.decode, [*proposal.metrics]) == ((decode,), metrics)
    write_proposal(tmp_path / "conf", proposal)
    conf = load(tmp_path / "conf")
    (shown, *_) = preview(conf, "sample", sample_of_file(conf.sources["sample"], tmp_path / "a.txt")).measurements
    assert (shown["becomes"], shown["metric"]) == ("reading", metrics[0])


@pytest.mark.parametrize("deep", ['{"x":' * 500 + "1" + "}" * 500, "[" * 500 + "1" + "]" * 500])
def test_what_is_nested_deeply_is_no_obstacle(deep: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text('{"ts":1772438400,"id":"a","temp":21.5}\n{"ts":1772438460,"id":"a","deep":' + deep + "}\n")
    assert exit_code(["init", str(tmp_path / "conf"), "--from", str(tmp_path / "a.txt")]) == 0
    assert [*load(tmp_path / "conf").metrics] == ["temp"]
