"""`tidemark serve`: the live page."""

from typing import Any

import click


@click.command(epilog="Example: tidemark serve --port 8643")
@click.option("--port", type=click.IntRange(0, 65535), help="Instead of `page.port` of pipeline.yml; 0: any free port.")
@click.option("--link", is_flag=True, help="Print the address of the page with its token, and end. No log has the token.")
@click.pass_obj
def command(obj: dict[str, Any], port: int | None, link: bool) -> None:
    """Serve the live page: the state of the pipeline, beside a run or without one; it only reads the lake. `tidemark up` runs it too.

    \b
    /               the flow graph with lags, the account of events, what is wrong
    /groups         how fresh groups are, their windows and vectors as charts
    /readings       the readings of one window, each with its raw event
    /devices        when each was seen, what became of what it sent
    /batches        how long batches take, and the steps of the newest
    /quarantine     what broke which rule, with payloads
    /quality        expectations over time, rows that fail, the release of a gate
    /runs           jobs by the clock, snapshots, generations, notes
    /sql            an editor over one snapshot
    /events         the live part of a view, as server-sent events
    /api/overview   the overview as JSON
    /metrics        for Prometheus
    """
    if link:
        from orchestration.conf.load import load
        from orchestration.web import server

        click.echo(server.link(load(obj["conf"]), port))
        return
    from orchestration.serving.sql.workers import warm_up

    warm_up()  # beside the imports of this process, which take a second
    from orchestration.conf.load import load
    from orchestration.web.server import serve

    serve(load(obj["conf"]), port, lambda line: click.echo(f"tidemark: {line}", err=True))
