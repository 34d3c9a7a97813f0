"""`tidemark init --from` of a CSV: lines around names and values are said as they are."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from orchestration.conf.proposal import proposal_of
from orchestration.conf.starter import findings_of
from orchestration.connectors.sampling import sample_of_file
from orchestration.jobs.preview import preview
from tests.orchestration.conf.conftest import Propose
from tests.orchestration.conf.test_proposal import wide_rows

BODY = [f"{time};{a};{b}" for time, a, b in wide_rows()]
RAGGED = "some rows lack values at their end, or have empty ones more: see ragged in sources.yml"
NO_NAMES = ("c1", "c2", "c3")


@pytest.mark.parametrize(
    ("lines", "settings", "said"),
    [
        (["Yard 7", "Start: 2026-03-02 08:00", "time;t;h", *BODY], {"skip_lines": 2}, "2 lines before the header, such as Yard 7: events"),
        (["File;a.csv", "Start;2026-03-02", "", "time;t;h", *BODY], {"skip_lines": 2}, "2 lines before the header, such as File;a.csv"),
        (
            ["# site A", "# time ; t ; h", *BODY],
            {"columns": ("time", "t", "h"), "comment": ("#",)},
            "2 lines before the rows, such as # site",
        ),
        (["# site A", *BODY], {"columns": NO_NAMES, "comment": ("#",)}, "no header was found: the columns are numbered; give them"),
        (["a b", *BODY], {"columns": NO_NAMES, "skip_lines": 1}, "1 line before the rows, such as a b: events without measurements"),
        (["time;t;h", ";°C;%", *BODY], {}, "1 line between the header and the rows, such as ;°C;%: events without measurements"),
        (["time;t;h;", *BODY], {"ragged": True}, RAGGED),
        (["time;t;h", *(f"{row};;" for row in BODY)], {"ragged": True}, RAGGED),
        (["time\tt\th", *(f"{row};".replace(";", "\t") for row in BODY)], {"ragged": True}, RAGGED),
        (["time;t;h;note", *(f"{row};x" for row in BODY[1:]), BODY[0]], {"ragged": True}, RAGGED),
        (["time;t;h", *BODY, "Total;9"], {"comment": ("Total",)}, "lines that begin with Total are taken for no rows: see comment"),
        (
            ["time;t;h", *BODY, "Sum;;9;", "Mean;;1;"],
            {"comment": ("Mean", "Sum")},
            "lines that begin with Mean or Sum are taken for no rows",
        ),
        (["time;t;h", *BODY[1:], f"{BODY[0]};9"], {}, f"another number of values in 1 of {len(BODY)} rows; such events go to"),
        (["time;t;h;n", *(f'{row};"a\nb"' for row in BODY)], {}, "not read: n"),
    ],
)
def test_what_stands_around_names_and_values_is_said_as_it_is_and_costs_no_reading(
    lines: list[str], settings: dict[str, Any], said: str, propose: Propose, tmp_path: Path
) -> None:
    conf = propose(lines)
    source = conf.sources["sample"]
    defaults = {"columns": (), "skip_lines": 0, "comment": (), "ragged": False}
    assert {name: getattr(source.payload_format, name) for name in defaults} == defaults | settings
    assert any(finding.startswith(said) for finding in findings_of(proposal_of(tmp_path / "sample.txt")))
    rows = preview(conf, "sample", sample_of_file(source, tmp_path / "sample.txt")).measurements
    assert sum(row["becomes"] == "reading" for row in rows) == 2 * (len(BODY) - (said.startswith("another")))


def test_comments_and_what_a_spreadsheet_writes_before_the_header_are_no_header(propose: Propose, tmp_path: Path) -> None:
    shape = propose(["sep=;", "time;t", *(f"{time};{a}" for time, a, _ in wide_rows())]).sources["sample"].payload_format
    assert (shape.separator, shape.columns, shape.metrics) == (";", (), {"t": "t"})
    shutil.rmtree(tmp_path / "conf")
    shape = propose(["# station 7", "# by hand", "time;t", *(f"{time};{a}" for time, a, _ in wide_rows())]).sources["sample"].payload_format
    assert (shape.columns, shape.comment, shape.metrics) == ((), ("#",), {"t": "t"})
    said = "2 lines before the header, such as # station 7: events without measurements"
    assert said in findings_of(proposal_of(tmp_path / "sample.txt"))


LOGGERS: dict[str, tuple[list[str], list[str]]] = {
    "Campbell": (
        [
            '"TOA5","Yard","CR1000","1","CR1000.Std.31","a.CR1","5","Table1"',
            '"TIMESTAMP","RECORD","AirTC_Avg"',
            '"TS","RN","Deg C"',
            '"","","Avg"',
        ]
        + [f'"2026-03-02 08:0{n}:00",{n},{n}.5' for n in range(5)],
        ["skip_lines: 1", "time: {field: TIMESTAMP, format: iso, time_zone: UTC}", "AirTC_Avg: AirTC_Avg"],
    ),
    "WinCC": (
        ['"VarName";"TimeString";"VarValue";"Validity";"Time_ms"']
        + [f'"Boiler";"02.03.2026 08:00:0{n}";7{n},25;1;46083333333,{n}' for n in range(5)]
        + ['"$RT_OFF$";"02.03.2026 08:05:00";0;2;46083336805,5556'],
        ['decimal: ","', 'comment: ["\\"$RT_"]', 'format: "dd.MM.yyyy HH:mm:ss"', "metric: {field: VarName}", "value: {field: VarValue}"],
    ),
    "Davis": (
        [
            "\t\tTemp\tHi\tLow\tWind",
            "Date\tTime\tOut\tTemp\tTemp\tDir",
            *(f"3/02/26\t{n or 12}:00a\t1{n}.5\t1{n}.9\t60\tNNE" for n in range(5)),
        ],
        ['columns: [Date, Time, "Temp Out", "Hi Temp", "Low Temp", "Wind Dir"]', 'fields: [Date, Time], format: "M/d/yy h:mma"'],
    ),
    "Davis with names of which the lower halves differ": (
        ["\t\tTemp\tHi", "Date\tTime\tOut\tTemp", *(f"3/02/26\t{n or 12}:00a\t1{n}.5\t1{n}.9" for n in range(5))],
        ['columns: [Date, Time, "Temp Out", "Hi Temp"]'],
    ),
    "Fronius": (
        ["Datum;Symo 8.2 (1);PV", "[dd.MM.yyyy HH:mm];[Wh];[W]", *(f"02.03.2026 08:{n}0;12{n},5;1{n}0" for n in range(5))],
        ['"Symo 8.2 (1)": "Symo 8.2 (1)"', "PV: PV"],
    ),
    "Siemens": (
        ["Record,Date,UTC Time,Level", *(f"{n},03/22/2026,08:00:0{n},1.52{n}000E+00" for n in range(5))],
        ['fields: [Date, "UTC Time"], format: "MM/dd/yyyy HH:mm:ss"', "Level: Level"],
    ),
    "Beckhoff": (
        [
            "Name;Scope",
            "Start;02.03.2026 08:00:00",
            "",
            "Time;Motor.Speed",
            ";rpm",
            *(f"02.03.2026 08:00:0{n},500;145{n},125" for n in range(5)),
        ],
        ["skip_lines: 2", 'decimal: ","', 'format: "dd.MM.yyyy HH:mm:ss,SSSSSS"', "Speed: Motor.Speed"],
    ),
    "HOBO": (
        ['"Plot Title: Cellar"', '"#","Date Time, GMT+01:00","Temp, °C (LGR S/N: 2, SEN S/N: 2)","End Of File (LGR S/N: 2)"']
        + [f"{n},03/22/26 08:00:0{n} AM,2{n}.125," for n in range(1, 6)]
        + ["6,03/22/26 08:01:00 AM,,Logged"],
        ["skip_lines: 1", 'format: "MM/dd/yy hh:mm:ss a", time_zone: Etc/GMT-1', "Temp, °C (LGR S/N: 2, SEN S/N: 2)"],
    ),
    "Excel": (
        ["sep=;", "Datum;Anlage;kW", *(f"46083,{n}25;BHKW;1.25{n},5" for n in range(5)), "Summe;;6.260,0"],
        ['decimal: ","', 'thousands: "."', "comment: [Summe]", "format: excel"],
    ),
    "an hour that comes twice": (
        ["time;kwh", *(f"26.10.2025 {clock};{n}.5" for n, clock in enumerate(("01:30", "02:00", "02:30", "02:00", "02:30", "03:00")))],
        ["time_zone: UTC, repeated_hour: in_order"],
    ),
}


@pytest.mark.parametrize("name", LOGGERS)
def test_a_file_of_a_logger_is_proposed_with_its_settings_and_each_of_its_values_is_a_reading(
    name: str, propose: Propose, tmp_path: Path
) -> None:
    lines, said = LOGGERS[name]
    conf = propose(lines, "logger.csv")
    text = (tmp_path / "conf" / "sources.yml").read_text(encoding="utf-8")
    assert [line for line in said if line not in text] == []
    rows = preview(conf, "sample", sample_of_file(conf.sources["sample"], tmp_path / "logger.csv")).measurements
    broken = {rule for row in rows for rule in row["reasons"]} - {"something_is_measured"}
    assert (broken, sum(row["becomes"] == "reading" for row in rows) >= 4) == (set(), True)


def test_units_below_a_header_and_in_names_are_those_of_the_metrics(propose: Propose) -> None:
    rows = [f"02.03.2026 08:00:0{n};{n}.5;{n}.5;{n}.5" for n in range(5)]
    metrics = propose(["time;t;flow;RH, %", ";Deg C;[m3/h];", *rows]).metrics
    assert {name: metric.unit for name, metric in metrics.items()} == {"t": "Deg C", "flow": "m3/h", "RH, %": "%"}
