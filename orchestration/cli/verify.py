"""`tidemark verify`: does every table hold what bronze gives?"""

from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from orchestration.cli.option_types import DAY
from orchestration.rendering import format_option, show
from orchestration.utc import to_iso

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.status import Status

    from orchestration.audit.verify.check import Report
    from orchestration.audit.verify.compare import Outcome
    from orchestration.audit.verify.lake_snapshot import LakeSnapshot
    from orchestration.conf.model import Conf
    from orchestration.location import Location
    from orchestration.storage.ops_tables import Proof
    from orchestration.storage.seals import Damage

COLUMNS = ("table", "rows", "differences", "seconds")
SIDE_BY_SIDE = ("table", "row", "what", "in_table", "from_bronze")


@click.command()
@click.option("--group", "groups", multiple=True, metavar="NAME", help="Verify the gold of this device group only; may be repeated.")
@click.option("--since", type=DAY, metavar="DAY", help="Only what was ingested on this day (UTC) or later, and windows that end later.")
@click.option("--everything", is_flag=True, help="Compare all of it, and read every byte, whatever was proved before.")
@click.option("--snapshot", type=int, metavar="ID", help="Verify what this snapshot pins.")
@format_option
@click.pass_obj
def command(  # noqa: PLR0917
    obj: dict[str, Any], groups: tuple[str, ...], since: datetime | None, everything: bool, snapshot: int | None, format: str
) -> int:
    """Recompute silver and gold from bronze, with an evaluator of its own and without Spark, and compare them row by row.

    It computes what is new or changed since the last proof, a row of ops.proofs; with --everything all. With --group, --since or --snapshot
    it computes all that is chosen, and that is no proof.

    It compares the tables as they are. It compares the newest snapshot instead while a run writes, while a retry of the quarantine is half
    done, and where gold is behind silver because a run was ended early. Each bronze batch is judged by the conf that it was read with.

    \b
    rows         rows compared; for bronze.events: measurements in its events
    differences  rows that are missing, extra, or different from what bronze gives
    Below the tables come the first ten differences of each, side by side (with --format json in `first`).
    Exit code 1: there are differences, or files have changed since they were written. Changed files are listed.

    \b
    Examples:
      tidemark verify
      tidemark verify --everything
      tidemark verify --group kitchen --since 2026-01-05
    """
    from orchestration.conf.load import load
    from orchestration.storage.kept_confs import running_conf

    written = load(obj["conf"])
    if (conf := running_conf(written)) is not written:
        click.echo("the conf has changed and is not taken up yet: judged is by the one that the lake runs", err=True)
    for name in groups:
        if name not in conf.groups:
            raise click.BadParameter(f"'{name}' is not a group; the groups are {', '.join(conf.groups)}", param_hint="--group")
    chosen = {"groups": groups or None, "since": since.date() if since else None}
    report = _report(conf, chosen, snapshot, is_whole=not groups and since is None and snapshot is None, is_new=not everything)
    _show(report, format)
    return 0 if report.is_clean else 1


def _show(report: "Report", format: str) -> None:
    rows = [asdict(outcome) | {"seconds": round(outcome.seconds, 1)} for outcome in report.outcomes]
    show(rows, format, COLUMNS if format != "json" else (*COLUMNS, "first"))
    differences = [asdict(difference) for outcome in report.outcomes for difference in outcome.first]
    if differences and format == "table":
        show(differences, format, SIDE_BY_SIDE)


def _report(conf: "Conf", chosen: dict[str, Any], snapshot: int | None, *, is_whole: bool, is_new: bool) -> "Report":
    """Files that are not as they were written, then the tables; only the files where these cannot be read.

    `is_whole`: it is a proof of the lake; `is_new`: of what is new or changed since the last one.
    """
    from rich.console import Console

    from orchestration.audit.verify.check import Report, verify
    from orchestration.audit.verify.lake_snapshot import latest_snapshot, pinned_snapshot
    from orchestration.audit.verify.proofs import last_proof
    from orchestration.storage.seals import damaged_files, damaged_log
    from orchestration.storage.snapshots import find_snapshot

    began, files = datetime.now(UTC), tuple["Outcome", ...]()
    with Console(stderr=True).status("looking at the files") as status:
        if logs := _damaged(conf, damaged_log):
            return Report(logs)
        try:
            pinned = find_snapshot(conf.lake, snapshot) if snapshot is not None or not _is_at_rest(conf) else None
            state = pinned_snapshot(conf, pinned) if pinned else latest_snapshot(conf)
            before = last_proof(state, conf) if is_whole and is_new else None
            files = _damaged(conf, partial(damaged_files, since=chosen["since"], at=before.at if before else None))
            report = verify(state, conf, progress=partial(_progress, status), before=before, **chosen)
        except Exception:
            if not (files := files or _damaged(conf, damaged_files)):
                raise
            return Report(files)
    report = Report((*files, *report.outcomes), report.events)
    if is_whole:
        _write_down(conf, state, report, began, before)
    return report


def _progress(status: "Status", what: str, done: int, total: int) -> None:
    status.update(f"{what} {done:,} of {total:,}")


def _write_down(conf: "Conf", state: "LakeSnapshot", report: "Report", began: datetime, before: "Proof | None") -> None:
    """Append the proof to ops.proofs, and tell what was proved before."""
    from orchestration.audit.verify.proofs import proof_of
    from orchestration.storage.ops_tables import PROOFS

    rows, differences = (sum(getattr(outcome, name) for outcome in report.outcomes) for name in ("rows", "differences"))
    try:
        PROOFS.append(conf.lake, [proof_of(state, conf, began, (report.events, rows, differences))])
    except OSError as error:
        click.echo(f"the proof is not written down, so the next one compares the same again: {error}", err=True)
    if before:
        click.echo(
            f"bronze batches up to {before.bronze_batch} were proved at {to_iso(before.at)}; computed again: {report.events:,} events,"
            f" compared: {rows:,} rows. All of it: --everything",
            err=True,
        )


def _is_at_rest(conf: "Conf") -> bool:
    """Whether nobody writes it, and all that silver has is in gold."""
    from orchestration.engine.lake import Lake
    from orchestration.jobs.gold.prefix import consistent_prefix
    from orchestration.storage.lease import is_held
    from orchestration.storage.positions import passed_by_silver

    lake = Lake(conf)
    if is_held(conf.lake):
        return False
    prefix = consistent_prefix(lake)
    return (prefix.bronze_batch if prefix else None) == passed_by_silver(lake)


def _damaged(conf: "Conf", find: "Callable[[Location], Sequence[Damage]]") -> "tuple[Outcome, ...]":
    """One for each table of which it finds files that are not as they were written."""
    from orchestration.audit.verify.compare import FIRST, Difference, Outcome
    from orchestration.engine.lake import Lake
    from orchestration.storage.sealing import sealed_tables

    outcomes = []
    for table, path in sealed_tables(Lake(conf)).items():
        if damages := find(path):
            first = tuple(Difference(table, str(damage.file), "damaged", damage.what, None) for damage in damages[:FIRST])
            outcomes.append(Outcome(table, 0, len(damages), first))
    return tuple(outcomes)
