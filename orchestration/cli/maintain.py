"""`tidemark maintain`: few large files, and none that nobody can ask for."""

import threading
from datetime import UTC, datetime
from typing import Any

import click

from expectations.wording import counted
from orchestration.jobs.maintenance import expired_snapshots
from orchestration.rendering import format_option, show


@click.command()
@click.option("--dry-run", is_flag=True, help="Only say what there is to do; safe beside a running pipeline.")
@format_option
@click.pass_obj
def command(obj: dict[str, Any], dry_run: bool, format: str) -> int | None:
    """Compact small files. Remove expired snapshots, and the files and log entries that only they needed. No answer changes.

    `tidemark run` does it by itself, every maintenance.every_seconds of pipeline.yml; snapshots are kept for maintenance.retain_seconds.
    Files that a stream has yet to read are kept.

    \b
    files        files of the table before
    compacted    small files, whose rows are written anew into large ones
    removed      files deleted from the disk; a compacted file is deleted once no snapshot needs it
    freed_bytes  size of the deleted files
    log_entries  deleted entries of the table's log

    \b
    Example:
      tidemark maintain --dry-run
    """
    from orchestration.engine.lake import Lake
    from orchestration.engine.queries import WriteBarrier
    from orchestration.jobs.gold.snapshots import take_snapshot
    from orchestration.jobs.maintenance import COLUMNS, maintain, maintenance_tasks
    from orchestration.storage.commit import fence
    from orchestration.storage.lease import sole_writer
    from orchestration.storage.sealing import sealed_tables
    from orchestration.storage.snapshots import all_snapshots

    lake, now = Lake.open(obj["conf"]), datetime.now(UTC)
    taken = all_snapshots(lake.conf.lake)
    click.echo(f"expired: {counted(len(expired_snapshots(lake, taken, now)), 'snapshot')}", err=True)
    if dry_run:
        show([task.as_row() for task in maintenance_tasks(lake, taken, now)], format, COLUMNS)
        return None
    with sole_writer(lake.conf.lake):
        fence(sealed_tables(lake).values())
        show(list(maintain(lake, now, WriteBarrier(threading.Event()).hold)), format, COLUMNS)
        take_snapshot(lake, now)  # queries then read the large files
    return None
