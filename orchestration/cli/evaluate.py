"""`tidemark evaluate`: how well are labelled faults found?"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orchestration.rendering import format_option, show

if TYPE_CHECKING:
    from collections.abc import Iterable

    from orchestration.audit.evaluation.labelled import Result

COLUMNS = ("detector", "found", "faults", "false_alarms", "score")


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--labels", type=click.Path(path_type=Path), help="JSON with the faults; absent: labels.json in the folder.")
@click.option("--by-file", is_flag=True, help="One row a file, too.")
@format_option
def command(folder: Path, labels: Path | None, by_file: bool, format: str) -> int:
    """Judge labelled series of CSV files by the detectors of anomalies, and count what they find.

    Each file learns from its first 15 %, at most 750 rows, and is judged from there on. Several columns are features of one device.

    \b
    found         faults in which there is an alarm
    false_alarms  alarms outside of them
    score         by the rules of the Numenta Anomaly Benchmark: 0 for a detector that never alarms, 100 for a perfect one
    The other rows are ways to alarm that know little: a detector should be well above them.

    \b
    Example:
      tidemark evaluate NAB/data --labels NAB/labels/combined_windows.json
    """
    from rich.console import Console
    from rich.progress import track

    from orchestration.audit.evaluation.labelled import evaluate, labelled

    series = [*labelled(folder, labels or folder / "labels.json")]
    results = [result for one in track(series, "judged", console=Console(stderr=True), transient=True) for result in evaluate(one)]
    rows = [_row(way, [result for result in results if result.way == way]) for way in dict.fromkeys(result.way for result in results)]
    rows += [_row(f"{result.way}: {result.name}", [result]) for result in results if by_file and result.way == "default"]
    show(rows, format, COLUMNS)
    return 0


def _row(name: str, results: "Iterable[Result]") -> dict[str, Any]:
    from gold.anomalies.nab import Counted

    total = sum((result.counted for result in results), Counted(0.0, 0, 0, 0))
    score = round(total.normalized, 1) if total.windows else None
    return dict(zip(COLUMNS, (name, total.hits, total.windows, total.false, score), strict=True))
