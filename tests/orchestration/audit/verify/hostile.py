"""Payloads that nobody should send, for all shapes: good ones, each changed at random, and lists of what is known to be hard to read."""

import json
import random
from collections.abc import Iterator

from tests.orchestration.audit.verify.hostile_lists import ALPHABET, BROKEN_UTF8, LINES, NAMES, TIMES, VALUES, WHOLE
from tests.orchestration.audit.verify.hostile_shapes import GOOD, HEADERS, SHAPES

Payload = tuple[str, bytes, str | None]
"""Source, payload, header."""


def payloads(seed: int, mutations: int) -> Iterator[Payload]:
    """All lists, for every shape that they can meet, and so many random changes of good payloads for each shape."""
    chance = random.Random(seed)
    for source, shape in SHAPES.items():
        headers = HEADERS.get(source, [None])
        known = [*GOOD[source], *(_json_payloads(source) if shape.format == "json" else [*_csv_payloads(source), *LINES, "", "  ", "\t"])]
        for text in known:
            yield source, _encoded(text, shape.encoding), headers[0]
        for _ in range(mutations):
            payload = _encoded(chance.choice(known[: len(known) // 4] or known), shape.encoding)
            for _ in range(chance.randint(1, 3)):
                payload = _changed(payload, chance)
            yield source, payload, chance.choice(headers)


def _encoded(text: str, encoding: str) -> bytes:
    return text.encode(encoding, "surrogatepass" if encoding.startswith("utf") else "replace")


def _json_payloads(source: str) -> Iterator[str]:
    for good in GOOD[source]:
        flat = json.loads(good)
        texts = [json.dumps(text) for text in TIMES] + VALUES
        for path in _leaves(flat):
            yield from (json.dumps(_with(flat, path, "@")).replace('"@"', text) for text in (texts if _is_time(path) else VALUES))
            yield from (json.dumps(_with(flat, path, name)) for name in NAMES if not _is_time(path))
        yield good.replace("{", '{"device":"x","d":7,"h":8,"list":0,', 1)
        yield good.replace("}", ',"device":null,"h":null,"v":[],"list":{}}', 1)
    yield from WHOLE


def _csv_payloads(source: str) -> Iterator[str]:
    separator = SHAPES[source].separator
    for good in GOOD[source]:
        cells = good.split(separator)
        for at in range(len(cells)):
            texts = [text.strip('"') for text in VALUES] + NAMES[:7] + (TIMES if at == 1 else [])
            quoted = ['"' + text.replace('"', '""') + '"' for text in texts]
            yield from (separator.join([*cells[:at], text, *cells[at + 1 :]]) for text in texts + quoted if "\ud800" not in text)


def _is_time(path: tuple[str | int, ...]) -> bool:
    return path[-1] in {"ts", "at", "t"} and path != ("v", "t")


def _leaves(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield (*path, key)
        yield from _leaves(member, (*path, key))


def _with(value: object, path: tuple[str | int, ...], leaf: object) -> object:
    if not path:
        return leaf
    if isinstance(value, dict):
        return {key: _with(member, path[1:], leaf) if key == path[0] else member for key, member in value.items()}
    assert isinstance(value, list)
    return [_with(member, path[1:], leaf) if key == path[0] else member for key, member in enumerate(value)]


def _changed(payload: bytes, chance: random.Random) -> bytes:
    at, end = sorted(chance.randrange(len(payload) + 1) for _ in range(2))
    short = min(end, at + chance.randint(1, 6))
    new = chance.choice(BROKEN_UTF8) if chance.random() < 0.1 else chance.choice(ALPHABET).encode()
    match chance.randrange(5):
        case 0:
            changed = payload[:at] + payload[short:]
        case 1:
            changed = payload[:at] + new + payload[at:]
        case 2:
            changed = payload[:at] + new + payload[short:]
        case 3:
            changed = payload[:short] + payload[at:]
        case _:
            changed = payload[:at] + payload[short:end] + payload[at:short] + payload[end:]
    return changed.replace(b"\n", b" ")
