"""`tidemark sql`: ask the lake."""

from typing import Any

import click

from orchestration.cli.rows import format_option, show


@click.command(epilog="""Example: tidemark sql "select metric, count(*) as n from silver.readings group by metric" """)
@click.argument("query")
@format_option
@click.pass_obj
def command(obj: dict[str, Any], query: str, format: str) -> None:
    """Answer a query over bronze.events, silver.readings, silver.quarantine, gold.<group>_aggregates and gold.<group>_vectors."""
    from orchestration.lake import Lake

    # Arrow keeps an instant an instant. Rows of PySpark hold the local time of this machine, without a zone.
    answer = Lake.open(obj["conf"]).sql(query).toArrow()
    show(answer.to_pylist(maps_as_pydicts="lossy"), format, list(dict.fromkeys(answer.column_names)))
