"""Options of Kafka, of a source or a sink: they are harmless, and hold no secret."""

import re
from collections.abc import Iterator, Mapping

from expectations.settings import Problem
from expectations.wording import hint
from orchestration.secrets import REFERENCE

SECRETS = frozenset(
    {
        *("sasl.password", "sasl.oauthbearer.client.secret", "sasl.oauthbearer.config", "sasl.oauthbearer.assertion.private.key.pem"),
        *("sasl.oauthbearer.assertion.private.key.passphrase", "ssl.key.pem", "ssl.key.password", "ssl.keystore.password"),
    }
)
CONNECTION = SECRETS | frozenset(
    {
        *("client.id", "client.rack", "client.dns.lookup", "broker.address.family", "broker.address.ttl"),
        *("security.protocol", "sasl.mechanism", "sasl.mechanisms", "sasl.username"),
        *("sasl.kerberos.service.name", "sasl.kerberos.principal", "sasl.kerberos.keytab"),
        *("sasl.oauthbearer.method", "sasl.oauthbearer.client.id", "sasl.oauthbearer.scope", "sasl.oauthbearer.extensions"),
        *("sasl.oauthbearer.token.endpoint.url", "https.ca.location", "https.ca.pem"),
        *("ssl.ca.location", "ssl.ca.pem", "ssl.certificate.location", "ssl.certificate.pem", "ssl.key.location", "ssl.crl.location"),
        *("ssl.keystore.location", "ssl.cipher.suites", "ssl.curves.list", "ssl.sigalgs.list"),
        *("ssl.endpoint.identification.algorithm", "enable.ssl.certificate.verification"),
        *("socket.timeout.ms", "socket.connection.setup.timeout.ms", "socket.keepalive.enable", "connections.max.idle.ms"),
        *("reconnect.backoff.ms", "reconnect.backoff.max.ms", "metadata.max.age.ms", "topic.metadata.refresh.interval.ms"),
    }
)
OF_SOURCE = CONNECTION | {
    *("group.id", "fetch.max.bytes", "fetch.message.max.bytes", "max.partition.fetch.bytes", "receive.message.max.bytes"),
    *("queued.max.messages.kbytes", "queued.min.messages"),
}
OF_SINK = CONNECTION | {
    *("compression.type", "compression.level", "linger.ms", "batch.size", "message.max.bytes", "message.timeout.ms"),
    *("transaction.timeout.ms", "queue.buffering.max.messages", "queue.buffering.max.kbytes"),
}
"""Settings of librdkafka. Not among them: settings that run a command or load code (sasl.kerberos.kinit.cmd, plugin.library.paths), and
settings that decide which messages are read, such as isolation.level."""
OF_EVENT_HUBS = ("sasl.username", "$ConnectionString")
"""A name, and no reference."""
AS_REFERENCE = "write ${env:NAME} or ${file:PATH}"


def problems_of_options(options: Mapping[str, str], allowed: frozenset[str]) -> Iterator[Problem]:
    """The values are not repeated: one may be a secret in the wrong place."""
    for name, value in options.items():
        if name not in allowed:
            otherwise = "what may be set is how to connect, such as security.protocol, sasl.username or ssl.ca.location"
            yield Problem(("options", name), f"is no option that may be set; {hint(name, allowed, otherwise)}")
        elif re.fullmatch(REFERENCE, value) or (name, value) == OF_EVENT_HUBS:
            continue
        elif name in SECRETS:
            yield Problem(("options", name), f"is a secret, which must not stand in a file of the conf; {AS_REFERENCE}")
        elif "$" in value:
            yield Problem(("options", name), f"holds a $ that names nothing; {AS_REFERENCE} and nothing beside it")
