"""`tidemark sql`: ask the lake."""

from datetime import UTC, datetime
from typing import Any

import click

from orchestration.cli.rows import format_option, show


@click.command(epilog="""Example: tidemark sql "select metric, count(*) as n from silver.readings group by metric" """)
@click.argument("query")
@click.option("--snapshot", type=int, help="Ask this snapshot; they are in ops.snapshots. Default: the newest.")
@click.option("--at", type=click.DateTime(["%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%SZ"]), help="Ask the newest one at this instant, UTC.")
@format_option
@click.pass_obj
def command(obj: dict[str, Any], query: str, snapshot: int | None, at: datetime | None, format: str) -> None:
    """Answer a query over one snapshot of the lake: bronze.events, silver.*, gold.<group>_aggregates and gold.<group>_vectors.

    These two show the newest revision of each row, gold.<group>_aggregates_history and ..._vectors_history all of them.
    """
    from orchestration.lake import Lake
    from orchestration.snapshots import chosen

    if snapshot is not None and at is not None:
        raise click.UsageError("give --snapshot or --at, not both")
    lake = Lake.open(obj["conf"])
    cut = chosen(lake.conf.lake, snapshot, at.replace(tzinfo=UTC) if at else None)
    # Arrow keeps an instant an instant. Rows of PySpark hold the local time of this machine, without a zone.
    answer = lake.sql(query, cut.snapshot_id if cut else None).toArrow()
    if cut:
        click.echo(f"snapshot {cut.snapshot_id} of {cut.at:%Y-%m-%dT%H:%M:%SZ}, bronze batches up to {cut.bronze_batch}", err=True)
    show(answer.to_pylist(maps_as_pydicts="lossy"), format, list(dict.fromkeys(answer.column_names)))
