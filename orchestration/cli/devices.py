"""`tidemark devices`: load and list the device registry."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from expectations.wording import counted
from orchestration.cli.option_types import DAY, PATH
from orchestration.rendering import format_option, show


@click.group()
def command() -> None:
    """Load and list the device registry, which conf/devices.yml feeds as well.

    \b
    Example:
      tidemark devices load plant.csv && tidemark devices list
    """


@command.command()
@click.argument("file", type=PATH)
@click.option("--since", type=DAY, metavar="DAY", help="Devices also count from this day (UTC) on wherever they were not known.")
@click.pass_obj
def load(obj: dict[str, Any], file: Path, since: datetime | None) -> None:
    """Register the devices of FILE, a CSV with a header or JSON lines; those that changed count from 10 seconds on.

    With --since, a device counts for events ingested on that day and later, as far as it was not in the registry then. Its quarantined
    events of that time then pass `device_is_known`; `tidemark quarantine retry --rule device_is_known` re-admits them.
    What the registry recorded of a device stays as it is.

    \b
    Columns: device_id, and perhaps zone, groups (separated by semicolons) and label.
    Example:
      printf 'device_id,zone,groups\\noven-09,hall-2,kitchen;building\\n' > plant.csv
      tidemark devices load plant.csv
    """
    from orchestration.conf.load import load as load_conf
    from orchestration.storage.generations import active_generation
    from orchestration.storage.registry import load as load_devices
    from orchestration.storage.registry import load_since
    from orchestration.utc import aware
    from silver.policy import Unknown

    conf = load_conf(obj["conf"])
    if since is not None and conf.policy.unknown_device is not Unknown.QUARANTINE:
        raise click.UsageError("--since is for events in quarantine, but the policy lets unknown devices pass as unassigned; leave it out")
    count = load_devices(conf.lake, file, datetime.now(UTC), conf.groups)
    click.echo(f"new or changed: {counted(count, 'device')} of {file}" if count else f"the registry knows all of {file} already", err=True)
    if since is not None:
        mended = load_since(conf.lake, active_generation(conf.lake), file, aware(since))
        click.echo(f"{mended} of them count from {since:%Y-%m-%d} on where they were not known", err=True)


@command.command(name="list")
@format_option
@click.pass_obj
def list_(obj: dict[str, Any], format: str) -> None:
    """Print the newest version of each device; `is_known` is false for a device that left the conf. Where a device of
    Sparkplug B has reported its death, or its node, `down_since` says when.

    \b
    Example:
      tidemark devices list --format csv
    """
    from orchestration.conf.load import load as load_conf
    from orchestration.connectors.sources.births import devices_down
    from orchestration.storage.registry import current
    from silver.schema import DEVICES

    conf = load_conf(obj["conf"])
    down = devices_down(conf)
    rows = [row | {"down_since": down.get(row["device_id"])} for row in current(conf.lake)] if down else current(conf.lake)
    show(rows, format, [*DEVICES.names, "down_since"] if down else DEVICES.names)
