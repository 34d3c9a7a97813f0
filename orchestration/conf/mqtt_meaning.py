"""What `mqtt` of a source means: filters that a broker takes, and settings that belong together."""

from collections.abc import Iterator

from orchestration.conf.diagnostic import quoted
from orchestration.conf.document import Step
from orchestration.conf.structure import Finding
from orchestration.conf.transport_settings import MqttSettings

SHARED, MAX_PORT = "$share/", 65_535


def check_mqtt(path: tuple[Step, ...], mqtt: MqttSettings) -> Iterator[Finding]:
    """`path` leads to it."""
    for n, topic in enumerate(mqtt.topics):
        if problem := _problem_of_filter(topic):
            yield Finding.of((*path, "topics"), f"names {quoted(topic)}; {problem}", n)
    if mqtt.port > MAX_PORT:
        yield Finding.of((*path, "broker"), f"is {quoted(mqtt.broker)}; a port is at most {MAX_PORT}")
    if mqtt.password and not mqtt.username:
        yield Finding.of((*path, "password"), "is set without a username; name the user")
    if mqtt.shared_group and set(mqtt.shared_group) & set("/+#"):
        yield Finding.of((*path, "shared_group"), f"is {quoted(mqtt.shared_group)}; write a name without /, + and #")
    if mqtt.shared_group and not mqtt.client_id:
        yield Finding.of((*path, "shared_group"), "is set without a client_id; give each collector of the group one of its own")
    if mqtt.tls and bool(mqtt.tls.certificate) != bool(mqtt.tls.key):
        yield Finding.of((*path, "tls"), "has one of certificate and key; set both")


def levels_of(mqtt: MqttSettings) -> int | None:
    """How many levels the longest topic has; None where no filter bounds it."""
    if any(topic.endswith("#") for topic in mqtt.topics):
        return None
    return max(topic.count("/") + 1 for topic in mqtt.topics)


def _problem_of_filter(topic: str) -> str | None:
    *levels, last = topic.split("/")
    if topic.startswith(SHARED):
        return "write the filter alone, and the name of the group as shared_group"
    if (last != "#" and "#" in last) or any("#" in level for level in levels):
        return "# stands alone, as the last level"
    if any("+" in level and level != "+" for level in (*levels, last)):
        return "+ stands alone, as a whole level"
    return None
