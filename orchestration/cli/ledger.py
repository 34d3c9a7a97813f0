"""`tidemark ledger`: is every event accounted for?"""

from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orchestration.cli.option_types import DAY, FILE
from orchestration.rendering import format_option, plain, show, visible

if TYPE_CHECKING:
    from orchestration.audit.reconciliation.account import Rows


ACCOUNTS = """\b
The account of events:
  events       messages of a source that bronze ingested on a day
  readings, quarantined, late, duplicates
               what became of the measurements that they hold
  without_measurements
               events that measure nothing by the declared fields, such as a button press; no defect (silver.without_measurements)
  conflicts    duplicates whose value differs from that of the kept measurement
  missing      measurements (or events without any) that are in none of these tables
  duplicated   measurements that are in more than one of them, or twice in one
  orphaned     rows of silver whose event is not in bronze, or comes from another source there
  count_mismatch
               bronze batches that hold other counts than ops.ledger says they had
  waiting      events that the ledger has not come to yet

\b
The account of gold, of each group and metric at the newest snapshot, counts a reading once in each of its windows:
  readings, late  what silver has for the group: accepted ones, and those of silver.late
  counted         in emitted windows, in their newest revision
  open            in windows that are not emitted yet
  kept_aside      late, in a group that keeps late rows aside
  waiting         late, in windows that are still open; counted when the window closes
  missing         gold has them nowhere
  duplicated      gold has more than silver

\b
The account of anomalies, of each group whose vectors are judged, at the same snapshot:
  vectors           of windows that are closed
  scored            judged, with a score
  learning, too_few_features
                    judged, without a score
  missing           gold.anomalies has no row of them
  duplicated        rows of gold.anomalies beyond one a vector
"""


@click.command(epilog=ACCOUNTS)
@click.option("--since", type=DAY, metavar="DAY", help="Only what was ingested on this day (UTC) and later.")
@click.option("--plot", "picture", type=FILE, metavar="FILE.png", help="Also draw it, by bronze batch.")
@click.option(
    "--gold",
    is_flag=True,
    help="Print the accounts of gold and anomalies only. csv and json print one account: with --gold that of gold, else that of events.",
)
@format_option
@click.pass_obj
def command(obj: dict[str, Any], since: datetime | None, picture: Path | None, gold: bool, format: str) -> int:
    """Account for every event, by its identity and from the tables themselves; safe beside a running pipeline.

    Exit code 1: one of the accounts has something missing, duplicated, orphaned or a count mismatch. The first ten identities or
    windows follow the tables. Exit code 1 too where files of the tables are gone, cut or changed; then these are listed.

    \b
    Example:
      tidemark ledger --since 2026-01-05 --plot artifacts/ledger.png
    """
    from orchestration.audit.reconciliation.account import COLUMNS, by_day
    from orchestration.audit.reconciliation.anomaly_account import COLUMNS as OF_ANOMALIES
    from orchestration.audit.reconciliation.gold_account import COLUMNS as OF_GOLD
    from orchestration.storage.delta import each_table_opened_once

    if gold and picture is not None:
        raise click.UsageError("--plot draws the account of events; leave --gold out")
    start = since.date() if since else None
    with each_table_opened_once():
        batches, wrong = ([], []) if gold else account_of(obj["conf"], start)
        of_gold, of_anomalies, wrong_gold = ([], [], []) if wrong and not batches else accounts_of_gold(obj["conf"], start)
    if not gold:
        show(by_day(batches), format, COLUMNS)
        show_wrong(wrong, format)
    if gold or (of_gold and format == "table"):
        show(of_gold, format, OF_GOLD)
    if of_anomalies and format == "table":
        show(of_anomalies, format, OF_ANOMALIES)
    show_wrong(wrong_gold, format)
    if picture is not None and (batches or not wrong):
        from orchestration.serving.plots.account import plot

        click.echo(plot(batches, picture), err=True)
    return 1 if wrong or wrong_gold else 0


def account_of(conf: Path, since: date | None) -> "tuple[Rows, Rows]":
    """The account by batch, and what is wrong."""
    from rich.console import Console

    from orchestration.audit.reconciliation.account import account, open_tables
    from orchestration.audit.reconciliation.discrepancies import damaged, discrepancies, seal_violations, twice
    from orchestration.engine.lake import Lake
    from orchestration.storage.payload_formats import payload_formats
    from orchestration.storage.seals import damaged_files, damaged_log

    lake = Lake.open(conf)
    with Console(stderr=True).status("accounting"):
        if files := seal_violations(lake, damaged_log):
            return [], files
        tables = open_tables(lake)
        if files := damaged(tables) or seal_violations(lake, partial(damaged_files, since=since)):
            return [], files
        result = account(tables, since)
        return result.batches, [*discrepancies(tables, result, payload_formats(lake.conf)), *twice(lake)]


def accounts_of_gold(conf: Path, since: date | None) -> "tuple[Rows, Rows, Rows]":
    """The account by group and metric, that of anomalies by group, and what is wrong in them; none before the first snapshot."""
    from orchestration.audit.reconciliation.anomaly_account import anomaly_account
    from orchestration.audit.reconciliation.gold_account import WRONG, gold_account, gold_discrepancies, open_gold_tables
    from orchestration.engine.lake import Lake
    from orchestration.storage.kept_confs import running_conf
    from orchestration.storage.snapshots import find_snapshot

    lake = Lake(running_conf(Lake.open(conf).conf))
    if (snapshot := find_snapshot(lake.conf.lake)) is None:
        return [], [], []
    tables = open_gold_tables(lake, snapshot, since)
    rows = gold_account(lake, tables) if tables else []
    is_wrong = any(row[wrong] for row in rows for wrong in WRONG)  # else the windows need not be counted once more
    of_anomalies, wrong_vectors = anomaly_account(lake, snapshot, since)
    return rows, of_anomalies, [*(gold_discrepancies(tables) if tables and is_wrong else ()), *wrong_vectors]


def show_wrong(wrong: "Rows", format: str) -> None:
    """Events or windows of gold: beside the table for people, and as sentences on stderr where stdout is for programs."""
    from orchestration.audit.reconciliation.discrepancies import COLUMNS
    from orchestration.audit.reconciliation.gold_account import WRONG_WINDOW

    columns = COLUMNS if wrong and "payload" in wrong[0] else WRONG_WINDOW
    if wrong and format == "table":
        show(wrong, format, columns)
    for row in wrong if format != "table" else ():
        if "payload" in row:
            identity = " ".join(f"{name} {row[name]}" for name in COLUMNS[:3] if row[name] is not None)
            sentence = f"{identity}: {row['wrong']}  {plain(row['payload']) or ''}".rstrip()
        else:
            sentence = f"gold window {' '.join(str(plain(row[name])) for name in WRONG_WINDOW[:-1])}: {row['wrong']}"
        click.echo(visible(sentence), err=True)
