"""Nodes of Sparkplug B: which birth names the metrics of a message, whether a message is missing, and which devices are down. Pure.

Messages of a node are to be given in the order in which they came.
"""

from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, NamedTuple

from silver.decoders.sparkplug_b import birth_text

NAMESPACE, LEVELS, SEQUENCE = "spBv1.0", (4, 5), 256
DATA = ("NDATA", "DDATA")
KINDS = ("NBIRTH", "DBIRTH", *DATA, "NDEATH", "DDEATH")
RECENT = 1_000
"""Messages of data by which one that comes again is known: so many may wait for an acknowledgement when a broker is killed."""


class Address(NamedTuple):
    """The levels of a topic. `node`: with its group; `device`: empty in messages of the node itself."""

    node: str
    kind: str
    device: str


def address_of(topic: str) -> Address | None:
    """None for all but births, data and deaths, such as commands."""
    space, _, rest = topic.partition("/")
    levels = rest.split("/")
    if space != NAMESPACE or len(levels) + 1 not in LEVELS or levels[1] not in KINDS:
        return None
    return Address(f"{levels[0]}/{levels[2]}", levels[1], levels[3] if len(levels) + 1 == LEVELS[1] else "")


@dataclass
class Node:
    """`seq`: of the newest message, once the birth of the node was seen; `bd_seq`: of its session. By device: `births`, ids of the births
    that name metrics; `waiting`, ids under which data wait for a birth; `down`, since when it is down, in milliseconds since 1970."""

    seq: int | None = None
    bd_seq: int | None = None
    births: dict[str, str] = field(default_factory=dict)
    waiting: dict[str, str] = field(default_factory=dict)
    down: dict[str, int] = field(default_factory=dict)


@dataclass
class Nodes:
    """`is_strict`: a message that is missing may have been a birth, so data wait until the next one. `texts`: births by id, and None for
    an id under which data wait. `answers`: the births that came for such ids. `recent`: by digest, the birth by which the newest data were
    read."""

    is_strict: bool
    nodes: dict[str, Node] = field(default_factory=dict)
    texts: dict[str, str | None] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)
    recent: dict[str, str | None] = field(default_factory=dict)

    def read(self, address: Address, payload: Any, position: str, arrived_ms: int) -> str | None:
        """Take the next message; the id of the birth by which its aliases are read, None if it needs none.

        Data that a broker sends again are read as the first time: their node may have a new session by now, with other aliases.
        """
        if address.kind not in DATA or not payload.timestamp:  # without a clock, alike messages may be two
            return self._read(address, payload, position, arrived_ms)
        digest = sha256(f"{address}".encode() + payload.SerializeToString(deterministic=True)).hexdigest()[:16]
        if digest not in self.recent:
            self.recent[digest] = self._read(address, payload, position, arrived_ms)
            if len(self.recent) > RECENT:
                del self.recent[next(iter(self.recent))]
        return self.recent[digest]

    def _read(self, address: Address, payload: Any, position: str, arrived_ms: int) -> str | None:
        node, (_, kind, device) = self.nodes.setdefault(address.node, Node()), address
        if kind == "NDEATH":
            self._die(node, _bd_seq(payload), arrived_ms)
            return None
        if kind == "NBIRTH":
            self._begin(node, payload)
        elif self._is_missing(node, payload) and self.is_strict:
            node.births.clear()
        if kind == "DDEATH":
            node.births.pop(device, None)
            node.waiting.pop(device, None)
            node.down[device] = payload.timestamp or arrived_ms
        elif kind.endswith("BIRTH"):
            self._bear(node, device, payload)
        elif any(metric.HasField("alias") and not metric.HasField("name") for metric in payload.metrics):
            return node.births.get(device) or self._wait(node, address, position)
        return None

    def lacks_birth(self, address: Address) -> bool:
        """Whether data of this device wait for a birth."""
        return address.device in self.nodes[address.node].waiting

    def _begin(self, node: Node, payload: Any) -> None:
        node.seq, node.bd_seq = payload.seq, _bd_seq(payload)
        node.births.clear()

    def _is_missing(self, node: Node, payload: Any) -> bool:
        if node.seq is None or not payload.HasField("seq"):
            return False
        before, node.seq = node.seq, payload.seq
        return payload.seq not in (before, (before + 1) % SEQUENCE)  # QoS 1 may bring one again

    def _bear(self, node: Node, device: str, payload: Any) -> None:
        text = birth_text(payload)
        birth = sha256(text.encode()).hexdigest()[:32]
        node.births[device], self.texts[birth] = birth, text
        node.down.pop(device, None)
        if (waiting := node.waiting.pop(device, None)) is not None:
            self.answers[waiting] = birth

    def _die(self, node: Node, bd_seq: int | None, arrived_ms: int) -> None:
        if None not in (bd_seq, node.bd_seq) and bd_seq != node.bd_seq:
            return  # the end of an earlier session, of which the broker heard late
        node.down |= dict.fromkeys(("", *node.births, *node.waiting), arrived_ms)
        node.births.clear()
        node.waiting.clear()

    def _wait(self, node: Node, address: Address, position: str) -> str:
        waiting = node.waiting.setdefault(address.device, f"{address.node}/{address.device} {position}")
        self.texts.setdefault(waiting, None)
        return waiting


def _bd_seq(payload: Any) -> int | None:
    """The number of the session; None in payloads that do not say it."""
    metric = next((metric for metric in payload.metrics if metric.name == "bdSeq"), None)
    return None if metric is None else metric.long_value or metric.int_value
