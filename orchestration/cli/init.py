"""`tidemark init`: a conf folder to start from."""

from pathlib import Path

import click

from orchestration.cli.option_types import PATH
from orchestration.conf.load import load, summary
from orchestration.conf.model import Conf
from orchestration.conf.proposal import proposal_of
from orchestration.conf.starter import examples, findings_of, land, starter_sources, write_proposal, write_starter
from orchestration.conf.transport_settings import Collected, LandingFolder
from orchestration.rendering import visible


@click.command()
@click.argument("folder", metavar="DIR", type=PATH)
@click.option("--from", "sample", metavar="FILE", type=PATH, help="A sample of your data: JSON lines or CSV, perhaps gzipped.")
@click.option("--source", type=click.Choice([*starter_sources()]), help="How events come; a starter conf for that.")
@click.option("--example", type=click.Choice([*examples()]), help="Also write an example of flows.yml or alerts.yml.")
@click.option("--copy", "is_copied", is_flag=True, help="Copy the sample into the landing folder, so that the first run has data.")
def command(folder: Path, sample: Path | None, source: str | None, example: str | None, is_copied: bool) -> None:
    """Write a conf folder: the commented starter conf, or one proposed from a sample of your data.

    It reads the first 1,000 lines of the sample, and writes what it found as a conf: fields, times, devices and metrics. Comments say
    what to confirm. Nothing is overwritten.

    \b
    Examples:
      tidemark init conf
      tidemark init plant/conf --from readings.csv.gz --copy && tidemark --conf plant/conf up
      tidemark init fleet/conf --source kafka
      tidemark init conf --example sessions
    """
    if sample and source:
        raise click.UsageError("--from and --source both say how events come; name one of them")
    if sample and example:
        raise click.UsageError("--example needs the metrics of the starter conf, but --from proposes others; give only one of the two")
    if is_copied and sample is None:
        raise click.UsageError("--copy is for a sample: name it with --from")
    if sample is None:
        write_starter(folder, source, example)
    else:
        proposal = proposal_of(sample)
        write_proposal(folder, proposal)
        for sentence in findings_of(proposal):
            click.echo(f"found: {sentence}", err=True)
    conf = load(folder)
    if sample is not None:
        click.echo(f"preview: {visible(_previewed(conf, sample))}", err=True)
    if sample is not None and is_copied:
        click.echo(f"copied: {land(conf, sample)}", err=True)
    click.echo(f"{folder}: {summary(conf)}")
    click.echo(f"next: {_first_step(folder, conf)}, then", err=True)
    command = f"tidemark --conf {folder}"
    click.echo(f"  {command} run --once    # all that waits, through all layers", err=True)
    click.echo(f"  {command} up            # for ever, with a live page at http://127.0.0.1:{conf.page.port}/", err=True)


def _previewed(conf: Conf, sample: Path) -> str:
    from orchestration.connectors.sampling import sample_of_file
    from orchestration.jobs.preview import preview

    (source,) = conf.sources.values()
    return str(preview(conf, source.name, sample_of_file(source, sample)))


def _first_step(folder: Path, conf: Conf) -> str:
    transport = next(iter(conf.sources.values())).transport
    if isinstance(transport, LandingFolder):
        has_files = transport.path.is_dir() and any(transport.path.iterdir())
        return f"read the comments in {folder}" + ("" if has_files else f", put files into {transport.path}")
    if isinstance(transport, Collected):
        return f"read the comments in {folder}, start `tidemark --conf {folder} collect` in another terminal, send events"
    return f"set what the comments in {folder / 'sources.yml'} name"
