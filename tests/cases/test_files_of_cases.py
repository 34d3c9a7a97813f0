"""Files after public reports, as preview and verify read them: each value right to the last digit, or refused with a reason. Without Spark.

README.md of tests says which case is which. Times are on the second of March 2026.
"""

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestration.audit.verify import measurements as verify
from orchestration.conf.model import Device, Source
from orchestration.conf.transport_settings import LandingFolder
from orchestration.connectors.sampling import sample_of_file
from orchestration.jobs.preview import preview
from silver.aggregation import Aggregation
from silver.metric import Metric
from silver.spec import Origin, PayloadFormat, Time
from tests.lakes import conf

FILES = Path(__file__).parent / "files"
ODD = PayloadFormat(
    "json", Origin(field="device"), Time("ts"), metric=Origin(field="metric"), value=Origin("value"), attributes={"note": "note"}
)
SHEET = PayloadFormat("csv", Origin(field="Gerät"), Time("Zeit"), metrics={"c_temp": "Temp"}, has_header=True, separator=";", ragged=True)
WIDE = {f"p_{name}": name for name in ("dec", "u64", "u8", "f32", "f16", "flag")}
ROWS = PayloadFormat("parquet", Origin(field="device"), Time("ts", time_zone="Europe/Berlin"), metrics=WIDE)
LISTS = PayloadFormat("parquet", Origin(field="device"), Time("ts"), metric=Origin(field="each.m"), value=Origin("each.v"), each="readings")
EIGHT = "08:00:00"
OF_SHEET = [(21.5, EIGHT), (21.6, "08:01:00"), (21.7, "08:02:00"), (21.9, "08:04:00")]


@dataclass(frozen=True)
class Case:
    """`readings`: value and time of day, UTC. `broken`: rules, and how many rows break each."""

    shape: PayloadFormat
    readings: list[tuple[float, str]]
    broken: dict[str, int]


CASES = {
    "49-odd.jsonl": Case(
        ODD,
        [
            *((21.5, EIGHT), (9007199254740992.0, "08:00:02"), (1.8446744073709552e19, "08:00:03"), (5e-324, "08:00:06"), (0, "08:00:07")),
            *((7.777777777777778e299, "08:00:08"), (10, "08:00:10"), (12, "08:00:12"), (13, "08:00:13"), (14, "08:00:14")),
            *((21.5, "08:00:17"), (21.5, "08:00:18"), (1000, "08:00:20"), (-0.0, "08:00:24"), (1, "08:00:25"), (28, "08:00:28")),
            (31, "08:00:31"),
        ],
        {"value_is_a_number": 12, "payload_is_readable": 3, "device_is_known": 1},
    ),
    "49-byte.jsonl": Case(ODD, [(60, "08:01:00"), (62, "08:01:02")], {"payload_is_utf8": 1}),
    "50-plain.csv": Case(SHEET, [*OF_SHEET, (22.0, "08:05:00")], {"value_is_a_number": 1}),
    "50-sheet.csv": Case(SHEET, OF_SHEET, {"value_is_a_number": 1}),
    "51-ns.parquet": Case(
        ROWS,
        [
            *((value, "08:00:00.123456") for value in (1234567890123.123456, 1.8446744073709552e19, 255, 21.7, 1.5, 1)),
            *((value, "08:00:00.123457") for value in (0.1, 9007199254740992.0, 0, 0.1, 2.5, 0)),
            *((value, "08:00:01") for value in (-5.000001, 1, 1, 65504)),
        ],
        {},
    ),
    "51-naive.parquet": Case(ROWS, [(1.5, "07:00:00"), (2, "07:00:00")], {}),
    "51-zone.parquet": Case(ROWS, [(3.25, EIGHT)], {}),
    "51-int96.parquet": Case(ROWS, [(4.25, "08:00:00.123456")], {}),
    "51-intid.parquet": Case(ROWS, [(5.25, EIGHT)], {}),
    "51-floatid.parquet": Case(ROWS, [], {"device_is_known": 1}),
    "51-empty.parquet": Case(ROWS, [], {}),
    "51-lists.parquet": Case(LISTS, [(1.25, EIGHT)], {"value_is_a_number": 1, "something_is_measured": 2}),
}


@pytest.mark.parametrize("name", CASES)
def test_each_value_of_a_file_is_right_or_refused_with_a_reason(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    source = Source("plant", case.shape, LandingFolder(FILES, settle_seconds=0.0))
    metrics = {metric: Metric(metric, Aggregation.LATEST, 60) for metric in ("jv", "c_temp", "l1", "l2", *WIDE)}
    devices = {device: Device(device, ("kitchen",)) for device in ("j1", "c1", "c2", "17", *(f"q{n}" for n in range(1, 7)))}
    events = sample_of_file(source, FILES / name)
    rows = preview(conf(tmp_path, sources={"plant": source}, metrics=metrics, devices=devices, groups={}), "plant", events).measurements
    readings = [(row["value"], row["event_time"]) for row in rows if row["becomes"] == "reading"]
    day = datetime(2026, 3, 2, tzinfo=UTC).date()
    assert readings == [(value, datetime.fromisoformat(f"{day}T{time}+00:00")) for value, time in case.readings]
    assert Counter(rule for row in rows for rule in row["reasons"]) == case.broken
    assert all(reason for row in rows for reason in row["reasons"].values())
    of_verify = verify.measurements(events, case.shape, 10_000)
    assert sum(number is not None for number in of_verify["number"].to_pylist()) >= len(readings)
