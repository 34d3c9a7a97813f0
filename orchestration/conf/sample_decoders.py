"""Decoders by which the messages of a sample become objects, where they are neither plain JSON objects nor CSV."""

import json
import re
from base64 import b64decode
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from orchestration.conf.instants import is_epoch
from orchestration.conf.vocabulary import UNKNOWN, is_measurement, number_of, rank
from orchestration.errors import ConfError
from silver.decoders.message import Message
from silver.records import UnreadableError
from silver.spec import Origin, PayloadFormat, Time

NO_NAME = "a name that no header has"
SENML = re.compile(r'(?=.*"(bn|bt)"\s*:)(?=.*"(n|e)"\s*:)(?=.*"(v|vb|vs|vd|e)"\s*:)', re.DOTALL)
LINE_PROTOCOL = re.compile(r"[^\s,\"]+(,\w+=(\\.|[^\\,\s])+)* \w+=\S.*")
TOPIC = re.compile(r"[^\W\d][^\s{}\"',;]*/[^\s{}\"',;]*[ \t](\{.*|[^\t;,]*)")
"""A line of topic and payload, as MQTT clients print messages."""
MOST, DEEPEST = 0.8, 10
Decoders = tuple[str | dict[str, str], ...]


def decoders_of(file: Path, lines: Sequence[str]) -> Decoders:
    """Name the decoders of the messages; none for JSON objects and CSV. ConfError where the lines are messages with their topics."""
    if _is_share(lines, TOPIC.fullmatch):
        raise ConfError(
            f"{file} has lines of a topic and a payload; keep the payloads alone, and begin with `tidemark init DIR --source mqtt`, whose"
            " comments say how names come from the topic"
        )
    if SENML.match("\n".join(lines)):
        return ("senml",)
    if all(line.lstrip().startswith("[{") for line in lines):
        return ("array",)
    if 2 * sum(map(bool, map(LINE_PROTOCOL.fullmatch, lines))) >= len(lines):
        return ("influx",)
    if _is_share(lines, lambda line: number_of(line) is not None):
        return ("text",)
    return _decoders_of_objects([event for line in lines if (event := object_of(line)) is not None])


def objects_in(file: Path, decode: Decoders, lines: Sequence[str]) -> Iterator[str]:
    """Yield the objects of lines that can be decoded, as JSON; ConfError where there is none."""
    from silver.decoders.chain import decoder_of, objects_of

    made, count = decoder_of(PayloadFormat("json", Origin(constant="x"), Time(NO_NAME), decode=decode), frozenset()), 0
    for line in lines:
        with suppress(UnreadableError):
            for members in objects_of(made, Message(line.encode())):
                count += 1
                yield json.dumps(members)
    if not count:
        raise ConfError(
            f"{file} looks like a kind of {decode[0]} that is not read; have it written as RFC 8428 or InfluxDB have it, or as JSON"
        )


def object_of(line: str) -> dict[str, Any] | None:
    """The JSON object of a line; None where it is none."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None


def _decoders_of_objects(events: Sequence[dict[str, Any]]) -> Decoders:
    if _is_share(events, lambda event: isinstance(event.get("resourceMetrics"), list)):
        return ("otlp",)
    if _is_by_key(events):
        return ("by_key",)
    if _is_share(events, _is_in_columns):
        return ("columns",)
    inner = dict.fromkeys(path for event in events for path in _lists_in_lists(event))
    if path := next((path for path in inner if _is_share(events, lambda event, path=path: path in _lists_in_lists(event))), None):
        return ({"flatten": path},)
    names = dict.fromkeys(name for event in events for name, value in event.items() if isinstance(value, str))
    coded = [name for name in names if "." not in name and _is_share(events, lambda event, name=name: _holds_json(event.get(name)))]
    return ({"base64": coded[0]},) if coded else ()


def _is_by_key(events: Sequence[dict[str, Any]]) -> bool:
    """Whether the keys of events are names of devices, or of metrics: several, and each has an object or a list of objects with a time."""
    values = [value for event in events for value in event.values()]
    return len({name for event in events for name in event}) > 1 and all(map(_is_with_time, values)) and all(events)


def _is_with_time(value: Any) -> bool:
    elements = value if isinstance(value, list) else [value]
    return bool(elements) and all(isinstance(one, dict) and any(rank(name, "time") < UNKNOWN for name in one) for one in elements)


def _is_in_columns(event: dict[str, Any]) -> bool:
    """Whether it has lists of equal length beside each other, and one of them is called after a time."""
    lists = {name: value for name, value in event.items() if isinstance(value, list)}
    are_plain = not any(isinstance(one, dict | list) for values in lists.values() for one in values)
    return len(lists) > 1 == len({*map(len, lists.values())}) and are_plain and any(rank(name, "time") < UNKNOWN for name in lists)


def _lists_in_lists(value: Any, path: tuple[str, ...] = (), is_inside: bool = False) -> set[str]:
    """The paths of lists that measure something, in elements of a list that do not."""
    if isinstance(value, dict) and len(path) < DEEPEST:
        below = (_lists_in_lists(inner, (*path, name), is_inside) for name, inner in value.items() if "." not in name)
        return {list_path for paths in below for list_path in paths}
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        return set()
    does_measure = any(is_measurement(name, inner) and not is_epoch(inner) for one in value for name, inner in one.items())
    if is_inside or does_measure:
        return {".".join(path)} if is_inside and does_measure else set()
    return set().union(*(_lists_in_lists(one, path, is_inside=True) for one in value))


def _holds_json(value: Any) -> bool:
    try:
        return isinstance(value, str) and isinstance(json.loads(b64decode(value, validate=True)), dict)
    except (ValueError, RecursionError):
        return False


def _is_share(items: Sequence[Any], test: Any) -> bool:
    return bool(items) and sum(bool(test(item)) for item in items) >= MOST * len(items)
