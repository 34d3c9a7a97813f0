"""Ask nodes of Sparkplug B for a birth: those that send data without one in this connection, or of which a message is missing."""

import time
from dataclasses import dataclass, field

from orchestration.connectors.sparkplug_nodes import NAMESPACE, Nodes, address_of
from silver.decoders.sparkplug_b import Payload, payload_of
from silver.records import UnreadableError

PAUSE_SECONDS = 10.0
"""At least so long between two requests to a node."""
BOOLEAN = 11


@dataclass
class Rebirths:
    """Made anew for each connection: while there is none, a broker keeps no births, which come with QoS 0."""

    _nodes: Nodes = field(default_factory=lambda: Nodes(is_strict=True))
    _asked: dict[str, float] = field(default_factory=dict)

    def command(self, topic: str, content: bytes, now: float) -> str | None:
        """Take the next message; the topic for a request if its node should be asked. `now`: seconds of a clock that is never put back."""
        if not content or (address := address_of(topic)) is None:
            return None
        try:
            self._nodes.read(address, payload_of(content), "", 0)
        except UnreadableError:
            return None
        if not self._nodes.lacks_birth(address) or now < self._asked.get(address.node, now - PAUSE_SECONDS) + PAUSE_SECONDS:
            return None
        self._asked[address.node] = now
        group, _, node = address.node.partition("/")
        return f"{NAMESPACE}/{group}/NCMD/{node}"


def rebirth_request() -> bytes:
    """The payload that asks a node for its births."""
    payload = Payload(timestamp=time.time_ns() // 1_000_000)
    payload.metrics.add(name="Node Control/Rebirth", datatype=BOOLEAN, boolean_value=True)
    content: bytes = payload.SerializeToString()
    return content
