"""Every channel of a conf: the one list that a new kind of channel is added to."""

from collections.abc import Mapping

from orchestration.conf.model import Conf
from orchestration.connectors.channels.channel import Channel


def channels(conf: Conf) -> Mapping[str, Channel]:
    """Make the channels of conf, by name. Nothing is connected, and no secret read, before the first call."""
    return {name: channel_of(conf, name) for name in conf.channels}


def channel_of(conf: Conf, name: str) -> Channel:
    """One of them. Its module is imported here: together they take half a second, and most lakes have few."""
    settings = conf.channels[name]
    if settings.webhook:
        from orchestration.connectors.channels.webhook import WebhookChannel

        return WebhookChannel(settings.webhook)
    if settings.kafka:
        from orchestration.connectors.channels.kafka import KafkaChannel

        return KafkaChannel(settings.kafka)
    if settings.alertmanager:
        from orchestration.connectors.channels.alertmanager import AlertmanagerChannel

        severities = {name: [alert.severity, *(step.severity for step in alert.escalate)] for name, alert in conf.alerts.items()}
        return AlertmanagerChannel(settings.alertmanager, severities)
    from orchestration.connectors.channels.apprise import AppriseChannel

    return AppriseChannel(str(settings.apprise))
