"""Every channel of a conf: the one list that a new kind of channel is added to."""

from collections.abc import Mapping

from orchestration.conf.channel_settings import ChannelSettings
from orchestration.conf.model import Conf
from orchestration.connectors.channels.channel import Channel


def channels(conf: Conf) -> Mapping[str, Channel]:
    """Make the channels of conf, by name. Nothing is connected, and no secret read, before the first call."""
    return {name: _channel(conf, settings) for name, settings in conf.channels.items()}


def _channel(conf: Conf, settings: ChannelSettings) -> Channel:
    """Imported when it is named: together they take half a second, and most lakes have few."""
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
