"""`tidemark evaluate`: how well are labelled faults found?"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orchestration.cli.option_types import FILE
from orchestration.rendering import format_option, show

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gold.anomalies.recall import Found, Tally
    from orchestration.audit.evaluation.labelled import Result

COLUMNS = ("detector", "found", "faults", "false_alarms", "score")
OF_GROUP = ("detector", "found", "faults", "recall", "precision", "false_alarms_per_week", "delay_seconds", "named", "vus_pr")


@click.command()
@click.argument("series", metavar="GROUP|FOLDER")
@click.option(
    "--labels", type=FILE, help="The faults. Of a group CSV, by default those of ops.labels; of a folder JSON, labels.json in it."
)
@click.option("--by-file", is_flag=True, help="Of a folder: one row a file, too.")
@click.option("--plot", type=FILE, help="Of a group: draw scores, thresholds, alarms and labels of each labelled entity into this PNG.")
@format_option
@click.pass_obj
def command(obj: dict[str, Any], series: str, *, labels: Path | None, by_file: bool, plot: Path | None, format: str) -> int:
    """Judge the anomalies of a GROUP, or series of CSV files in a FOLDER, by labelled faults.

    Vectors learn from the first 15 %, at most 750 rows, and longer where a model was trained later; all is counted from there on. The other
    rows are ways to alarm that know little: a detector should be well above them. A shadow model is not judged.

    \b
    found                  faults in which there is an alarm
    false_alarms           alarms outside of them
    score                  by the rules of the Numenta Anomaly Benchmark: 0 for a detector that never alarms, 100 for a perfect one
    recall                 the share of faults that are found
    precision              the share of alarms that are in a fault
    false_alarms_per_week  by entity
    delay_seconds          from the begin of a fault to the end of the first vector with an alarm, the median
    named                  the share of found faults whose metric is the first that the alarm names
    vus_pr                 the volume under the surface of precision and recall, the mean of labelled entities: 0 to 1
    Labels of a group have the columns entity,begins_at,ends_at,kind and, if you like, metric.

    \b
    Examples:
      tidemark evaluate kitchen --labels faults.csv --plot faults.png
      tidemark evaluate NAB/data --labels NAB/labels/combined_windows.json
    """
    if Path(series).is_dir():
        show(_rows_of_folder(Path(series), labels, by_file), format, COLUMNS)
    else:
        show(_rows_of_group(obj["conf"], series, labels, plot), format, OF_GROUP)
    return 0


def _rows_of_group(conf_path: Path, name: str, labels: Path | None, plot: Path | None) -> list[dict[str, Any]]:
    from orchestration.conf.load import load

    conf = load(conf_path)
    if name not in conf.groups:
        raise click.UsageError(f"there is no folder and no group {name!r}; the groups are {', '.join(conf.groups)}")

    from orchestration.audit.evaluation.group_evaluation import MODEL, evaluate_group, labels_in, labels_of_group

    faults = labels_in(labels) if labels else labels_of_group(conf, name)
    evaluation = evaluate_group(conf, conf.groups[name], faults)
    if evaluation.left_out:
        others = f", or of entities that {name} does not have: {', '.join(evaluation.others[:8])}" if evaluation.others else ""
        click.echo(f"{evaluation.left_out} of {len(faults)} labels are of times that are not judged{others}", err=True)
    if not labels:
        click.echo("people label what was raised: a fault that raised no alarm is in ops.labels only where they noted it", err=True)
    if plot is not None:
        from orchestration.serving.plots.anomalies import plot_evaluation

        click.echo(plot_evaluation(conf.groups[name], evaluation, plot), err=True)
    of_model = evaluation.tallies[MODEL]
    kinds = sorted({fault.kind for fault in of_model.faults})
    by_kind = [_row_of_kind(kind, [fault for fault in of_model.faults if fault.kind == kind]) for kind in kinds]
    return [*(_row_of_way(way, tally) for way, tally in evaluation.tallies.items()), *by_kind]


def _row_of_way(way: str, tally: "Tally") -> dict[str, Any]:
    return _row_of_kind(way, tally.faults) | {
        "precision": round(1 - tally.false / tally.alarms, 2) if tally.alarms else None,
        "false_alarms_per_week": round(tally.false / tally.weeks, 2),
        "vus_pr": round(sum(tally.volumes) / len(tally.volumes), 2) if tally.volumes else None,
    }


def _row_of_kind(name: str, faults: "Iterable[Found]") -> dict[str, Any]:
    listed = [*faults]
    delays = sorted(fault.delay for fault in listed if fault.delay is not None)
    named = [fault.is_named for fault in listed if fault.is_named is not None]
    return {
        "detector": name,
        "found": len(delays),
        "faults": len(listed),
        "recall": round(len(delays) / len(listed), 2) if listed else None,
        "delay_seconds": delays[len(delays) // 2] / 1e6 if delays else None,
        "named": round(sum(named) / len(named), 2) if named else None,
    }


def _rows_of_folder(folder: Path, labels: Path | None, by_file: bool) -> list[dict[str, Any]]:
    from rich.console import Console
    from rich.progress import track

    from orchestration.audit.evaluation.labelled import evaluate, labelled

    series = [*labelled(folder, labels or folder / "labels.json")]
    results = [result for one in track(series, "judged", console=Console(stderr=True), transient=True) for result in evaluate(one)]
    rows = [_row(way, [result for result in results if result.way == way]) for way in dict.fromkeys(result.way for result in results)]
    return rows + [_row(f"{result.way}: {result.name}", [result]) for result in results if by_file and result.way == "default"]


def _row(name: str, results: "Iterable[Result]") -> dict[str, Any]:
    from gold.anomalies.nab import Counted

    total = sum((result.counted for result in results), Counted(0.0, 0, 0, 0))
    score = round(total.normalized, 1) if total.windows else None
    return dict(zip(COLUMNS, (name, total.hits, total.windows, total.false, score), strict=True))
