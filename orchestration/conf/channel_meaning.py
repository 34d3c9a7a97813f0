"""Check channels of alerts.yml: options of Kafka without a secret, and alerts that do not silence each other."""

from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

from gold.alerts.spec import AlertSettings
from orchestration.conf.channel_settings import ChannelSettings
from orchestration.conf.kafka_options import OF_SINK, check_options
from orchestration.conf.structure import Finding


def check_channels(channels: Mapping[str, ChannelSettings], alerts: Mapping[str, AlertSettings]) -> Iterator[Finding]:
    for name, channel in channels.items():
        if channel.kafka:
            yield from check_options(("channels", name, "kafka", "options"), channel.kafka.options, OF_SINK)
    try:
        TopologicalSorter({name: alert.inhibited_by or () for name, alert in alerts.items()}).prepare()
    except CycleError as error:
        first, *others = error.args[1]
        problem = f"leads back to itself by {' and '.join(others) or first}; none of them would ever be told. Take one out"
        yield Finding.of(("alerts", first, "inhibited_by"), problem)
