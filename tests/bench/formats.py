"""Does CSV cost more than JSON? The same rows in FILES files of either, CSV with headers: `make bench NAME=formats`."""

import argparse
import json
import shutil
import statistics
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import yaml
from rich.console import Console

from tests.bench.factory import write_conf, write_events
from tests.bench.processes import Run
from tests.bench.script import all_layers, by_turns, narrow_table, parser_for, script, write_report

FORMATS = ("json", "csv")


def main() -> int:
    options = parser_for(__doc__, "bench-formats", events=300_000, files=60, rounds=3).parse_args()
    events = _events(options)
    runs = by_turns({name: partial(_run, options, events, name) for name in FORMATS}, options.rounds)
    table = narrow_table("format", "silver, seconds", "all layers", "CPU seconds")
    for name, of_format in runs.items():
        silver = statistics.median(seconds for _, seconds in of_format)
        whole = statistics.median(run.seconds for run, _ in of_format)
        cpu = statistics.median(run.cpu_seconds for run, _ in of_format)
        table.add_row(name, f"{silver:.1f}", f"{whole:.1f}", f"{cpu:.1f}")
    Console().print(table)
    write_report(options, {name: [{**vars(run), "silver": silver} for run, silver in of_format] for name, of_format in runs.items()})
    return 0


def _events(options: argparse.Namespace) -> pa.Table:
    folder = options.work / f"{options.events}-events"
    folder.mkdir(parents=True, exist_ok=True)
    landing = write_events(folder, write_conf(folder, options.driver_memory, options.cores), options.events)
    times = pyarrow.json.ParseOptions(explicit_schema=pa.schema([("ts", pa.string())]))
    return pa.concat_tables(pyarrow.json.read_json(file, parse_options=times) for file in sorted(landing.iterdir()))


def _run(options: argparse.Namespace, events: pa.Table, name: str) -> tuple[Run, float]:
    """Of all layers in a new lake, and the seconds of silver's micro-batches."""
    folder = options.work / f"{options.events}-as-{name}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    conf = write_conf(folder, options.driver_memory, options.cores)
    sources = yaml.safe_load((conf / "sources.yml").read_text())
    sources["sources"]["plant"] |= {"format": name} | ({"header": True} if name == "csv" else {})
    (conf / "sources.yml").write_text(yaml.safe_dump(sources))
    _write(events, folder / "landing", name, options.files)
    run = all_layers(conf, folder / "run.log")
    log = [json.loads(line) for line in (folder / "run.log").read_text().splitlines() if line.startswith("{")]
    return run, sum(line["seconds"] for line in log if line.get("flow") == "silver.readings")


def _write(events: pa.Table, landing: Path, name: str, files: int) -> None:
    landing.mkdir()
    rows = -(-events.num_rows // files)
    for number in range(files):
        part, file = events.slice(number * rows, rows), landing / f"{number:04d}.{name}"
        if name == "csv":
            pyarrow.csv.write_csv(part, file)
        else:
            file.write_text("".join(json.dumps(row) + "\n" for row in part.to_pylist()))


if __name__ == "__main__":
    script(main)
