"""`tidemark init --from` of a CSV: lines around names and values are said as they are."""

import shutil
from pathlib import Path

import pytest

from orchestration.conf.proposal import proposal_of
from orchestration.conf.starter import findings_of
from orchestration.connectors.sampling import sample_of_file
from orchestration.jobs.preview import preview
from tests.orchestration.conf.conftest import Propose
from tests.orchestration.conf.test_proposal import wide_rows

BODY = [f"{time};{a};{b}" for time, a, b in wide_rows()]
ABOVE = "lines before the rows, but for the first, are events without measurements"


@pytest.mark.parametrize(
    ("lines", "columns", "said"),
    [
        (["Yard 7", "Start: 2026-03-02 08:00", "time;t;h", *BODY], ("time", "t", "h"), f"2 lines before the header: {ABOVE}"),
        (["# site A", "# time ; t ; h", *BODY], ("time", "t", "h"), f"2 lines before the header: {ABOVE}"),
        (["# site A", *BODY], ("c1", "c2", "c3"), "no header was found: the columns are numbered; give them their names"),
        (["time;t;h", ";°C;%", *BODY], (), "1 line between the header and the rows, such as ;°C;%: events without measurements"),
        (["time;t;h;", *BODY], ("time", "t", "h"), "time is time (such as"),
        (["time;t;h", *(f"{row};;" for row in BODY)], ("time", "t", "h", "c4", "c5"), "rows end with a ; that the header lacks"),
        (
            ["time\tt\th", *(f"{row};".replace(";", "\t") for row in BODY)],
            ("time", "t", "h", "c4"),
            "rows end with a \\t that the header lacks",
        ),
        (["time;t;h", *BODY, "Total;9"], (), f"another number of values in 1 of {len(BODY) + 1} rows; such events go to silver.quarantine"),
    ],
)
def test_what_stands_around_names_and_values_is_said_as_it_is_and_costs_no_reading(
    lines: list[str], columns: tuple[str, ...], said: str, propose: Propose, tmp_path: Path
) -> None:
    conf = propose(lines)
    source = conf.sources["sample"]
    assert (source.payload_format.has_header or source.payload_format.columns, source.payload_format.columns) == (True, columns)
    assert any(finding.startswith(said) for finding in findings_of(proposal_of(tmp_path / "sample.txt")))
    rows = preview(conf, "sample", sample_of_file(source, tmp_path / "sample.txt")).measurements
    assert sum(row["becomes"] == "reading" for row in rows) == 2 * len(BODY)


def test_comments_and_what_a_spreadsheet_writes_before_the_header_are_no_header(propose: Propose, tmp_path: Path) -> None:
    shape = propose(["sep=;", "time;t", *(f"{time};{a}" for time, a, _ in wide_rows())]).sources["sample"].payload_format
    assert (shape.separator, shape.columns, shape.metrics) == (";", (), {"t": "t"})
    shutil.rmtree(tmp_path / "conf")
    shape = propose(["# station 7", "# by hand", "time;t", *(f"{time};{a}" for time, a, _ in wide_rows())]).sources["sample"].payload_format
    assert (shape.columns, shape.metrics) == (("time", "t"), {"t": "t"})
    said = "2 lines before the header: lines before the rows, but for the first, are events without measurements"
    assert said in findings_of(proposal_of(tmp_path / "sample.txt"))
