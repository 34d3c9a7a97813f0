"""`tidemark init`: a conf folder to start from."""

from pathlib import Path

import click

from orchestration.cli.option_types import PATH
from orchestration.conf.load import load, summary
from orchestration.conf.proposal import findings_of, proposal_of
from orchestration.conf.starter import write_proposal, write_starter
from orchestration.conf.transports import LandingFolder


@click.command()
@click.argument("folder", metavar="DIR", type=PATH)
@click.option("--from", "sample", metavar="FILE", type=PATH, help="A sample of your data: JSON lines or CSV, perhaps gzipped.")
def command(folder: Path, sample: Path | None) -> None:
    """Write a conf folder: the commented starter conf, or one proposed from a sample of your data.

    Of a sample the first 1,000 lines are read: fields, times, devices and metrics in it become a conf with comments that
    say what was found and what to confirm. Nothing is overwritten.

    \b
    Examples:
      tidemark init conf
      tidemark init plant/conf --from readings.csv.gz
    """
    if sample is None:
        write_starter(folder)
    else:
        proposal = proposal_of(sample)
        write_proposal(folder, proposal)
        for sentence in findings_of(proposal):
            click.echo(f"found: {sentence}", err=True)
    conf = load(folder)
    click.echo(f"{folder}: {summary(conf)}")
    landing = next(source.transport.path for source in conf.sources.values() if isinstance(source.transport, LandingFolder))
    click.echo(f"next: read the comments in {folder}, put files into {landing}, then", err=True)
    click.echo(f"  tidemark --conf {folder} check && tidemark --conf {folder} run --once", err=True)
