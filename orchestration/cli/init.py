"""`tidemark init`: a conf folder to start from."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from orchestration.cli.option_types import PATH
from orchestration.conf.load import load, summary
from orchestration.conf.model import Conf
from orchestration.conf.platforms import conf_of, platform_keys, platform_of
from orchestration.conf.proposal import proposal_of
from orchestration.conf.starter import examples, findings_of, land, starter_sources, write_conf, write_proposal, write_starter
from orchestration.conf.transport_settings import Collected, LandingFolder
from orchestration.errors import ConfError
from orchestration.rendering import visible

if TYPE_CHECKING:
    from orchestration.jobs.platform_sample import PlatformConf


@click.command()
@click.argument("folder", metavar="DIR", type=PATH)
@click.option("--from", "sample", metavar="FILE", type=PATH, help="A sample of your data: JSON lines or CSV, perhaps gzipped.")
@click.option("--source", type=click.Choice([*starter_sources()]), help="How events come; a starter conf for that.")
@click.option("--platform", type=click.Choice([*platform_keys()]), help="Whose messages come; a conf that reads them, with its tests.")
@click.option("--example", type=click.Choice([*examples()]), help="Also write an example of flows.yml or alerts.yml.")
@click.option("--copy", "is_copied", is_flag=True, help="Copy the sample into the landing folder, so that the first run has data.")
def command(  # noqa: PLR0917
    folder: Path, sample: Path | None, source: str | None, platform: str | None, example: str | None, is_copied: bool
) -> None:
    """Write a conf folder: the commented starter conf, that of a platform, or one proposed from a sample of your data.

    It reads the first 1,000 lines of the sample, and writes what it found as a conf: fields, times, devices and metrics. Messages of a
    known platform are recognised. Comments say what to confirm. Nothing is overwritten.

    \b
    Examples:
      tidemark init conf
      tidemark init plant/conf --from readings.csv.gz --copy && tidemark --conf plant/conf up
      tidemark init fleet/conf --source kafka
      tidemark init house/conf --platform zigbee2mqtt
      tidemark init conf --example sessions
    """
    _check_options(sample, source, platform, example, is_copied)
    proposed = None
    if sample is not None:
        from orchestration.audit.conf_tests.from_sample import write_first_test

        proposed = _write_proposed(folder, sample, platform)
    elif platform is not None:
        write_conf(folder, conf_of(platform_of(platform)))
    else:
        write_starter(folder, source, example)
    conf = load(folder)
    if sample is not None:
        click.echo(f"preview: {visible(str(proposed.preview) if proposed else _previewed(conf, sample))}", err=True)
        if path := write_first_test(conf, sample, proposed.topic if proposed else None):
            click.echo(f"test: {path} has what comes of the first messages; read it, then `tidemark --conf {folder} test`", err=True)
    if sample is not None and is_copied:
        click.echo(f"copied: {land(conf, sample)}", err=True)
    click.echo(f"{folder}: {summary(conf)}")
    click.echo(f"next: {_first_step(folder, conf)}, then", err=True)
    command = f"tidemark --conf {folder}"
    click.echo(f"  {command} run --once    # all that waits, through all layers", err=True)
    click.echo(f"  {command} up            # for ever, with a live page at http://127.0.0.1:{conf.page.port}/", err=True)


def _check_options(sample: Path | None, source: str | None, platform: str | None, example: str | None, is_copied: bool) -> None:
    if source and (sample or platform):
        raise click.UsageError(f"--{'from' if sample else 'platform'} and --source both say how events come; name one of them")
    if example and (sample or platform):
        option = "--from" if sample else "--platform"
        raise click.UsageError(f"--example needs the metrics of the starter conf, but {option} has others; give only one of the two")
    if is_copied and sample is None:
        raise click.UsageError("--copy is for a sample: name it with --from")


def _write_proposed(folder: Path, sample: Path, platform: str | None) -> "PlatformConf | None":
    """Write the conf of the platform that a sample is of, and return it; else, None, the usual proposal."""
    from orchestration.jobs.platform_sample import platform_conf

    proposed = platform_conf(sample, platform)
    if proposed is not None:
        write_conf(folder, proposed.texts)
        for sentence in proposed.findings:
            click.echo(f"found: {sentence}", err=True)
        return proposed
    if platform is not None:
        raise ConfError(f"nothing of {sample} would be a reading by the conf of {platform}; leave --platform out to have one proposed")
    proposal = proposal_of(sample)
    write_proposal(folder, proposal)
    for sentence in findings_of(proposal):
        click.echo(f"found: {sentence}", err=True)
    return None


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
