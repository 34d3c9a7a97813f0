"""Payloads that nobody should send, for all shapes: good ones, each changed at random, and lists of what is known to be hard to read."""

import json
import random
from collections.abc import Collection, Iterator

from tests.orchestration.audit.verify.hostile_shapes import GOOD, HEADERS, NO_JSON, SHAPES

Payload = tuple[str, bytes, str | None]
"""Source, payload, header."""


def _apart(texts: str) -> list[str]:
    return texts.split("|")


VALUES = _apart(
    '1|1.50|1e3|1E7|-0|-0.0|00|007|0x10|1.|.5|1d|"1d"|"1f"|"1e5d"|"0x1p3"|"0X1.8P1"|1e400|-1e400|"1e400"|1e-400|NaN|-NaN|"NaN"|'
    '"+NaN"|"-NaN"|"nan"|"+nan"|Infinity|-Infinity|+Infinity|+INF|-INF|INF|"inf"|"-INF"|" infinity "|true|false|"TRUE"|"tRue"|'
    r'" true"|"yes"|null|""|" "|"\t"|" 7 "|"\t7\n"|"\u00a07"|"\u00007"|"7\u0000"|"\u0661"|"\uff11"|"1_0"|"1,5"|"1.5dd"|'
    r'"--1"|"+1"|"+.5"|"5."|".5"|"1e"|"e1"|[]|[1]|{}|{"a":1}|[[]]|123456789012345678901234567890|"\ud800"|"\ud83d\ude00"|'
    r'"\ude00\ud83d"|9007199254740993|"9007199254740993"|2.5e0|0.1|700|-60|[1,"a",null,true,1.50,{"x":[1e7],"x":"\n\u0001"}]|"'
)
"""Values of JSON, as they are written."""
TIMES = [
    *(f"2026-01-01T00:30:45.{'123456789'[:n]}Z" for n in range(10)),
    *(f"2026-01-01T00:30:45{zone}" for zone in _apart("+02|+0200|+02:00|-2:00|+14:00|+18:00|+18:01|-19:00|+02:60|+1:2|+02:00:30")),
    *(f"2026-01-01T00:30:45{zone}" for zone in _apart(" +02:00| Z| UTC|UTC| UTC+2| Europe/Brussels| CET")),
    *_apart(
        "2026-01-01T12:30|2026-01-01 12:30|2026-01-01T12:30Z|2026-01-01T12:30:45|2026-01-01t12:30:45Z|2026-01-01T12:30:45z|"
        "2026-01-01T24:00:00|2025-12-31T24:00|2025-12-31T23:59:60Z|2026-02-30T00:00|2024-02-29T00:00:00Z|2026-02-29T00:00:00Z|"
        "0000-01-01T00:00:00Z|0001-01-01T00:00:00Z|9999-12-31T23:59:59.999999Z|9999-12-31T23:59:59-14:00|10000-01-01T00:00:00Z|"
        "0000-12-31T23:59:59.999999Z|0001-01-01T00:00:00+01:00|0001-01-01T00:00:00-01:00|0000-01-01T00:00:00+18:00|"
        "9999-12-31T23:59:59-01:00|9999-12-31T23:59:59+01:00|9999-12-31T23:59:59.9999999Z|0001-01-01T00:10:00|9999-12-31T23:59:59|"
        "+2026-01-01T00:30|-2026-01-01T00:30| 2026-01-01T00:30:45|2026-01-01T00:30:45 |2026-01-01T00:30:45Z\t|2026-01-01      |"
        "2026-01-01T12     |2026-01-5T1:2:3.000|2026-01-01T12:3:45Z|2026-01-01T12:30:45,5Z|\u0662026-01-01T12:30:45|"
        "2026-01-01T12:30:45\u221202:00|1969-12-31T23:59:59.9999999Z|2026-W01-1T12:30:00|2026-001T12:30:00Z|2026|12:30:00||"
        "01-01-2026 00:00:00.1|01-01-2026 00:00:00.|01-01-2026 00:00:00|1-1-2026 00:00:00.1|31-02-2026 00:00:00.1|01-01-2026 24:00:00.0|"
        "01-01-26 00:00:00.1|01-01-2026 00:00:00.1234|01-01-2026 00:00:00.12 |12:30 01-01-2026|01-01-0001 00:00:00.0|"
        "31-12-0000 23:59:59.9|31-12-9999 23:59:59.9|00:00 01-01-0001|00:20 01-01-0001|23:59 31-12-9999|Jan 1, 0001 12:00 AM +01:00|"
        "Jan 1, 0001 12:00 AM Z|Dec 31, 9999 11:59 PM -01:00|Dec 31, 9999 11:59 PM Z|12:30 1-1-2026|02:30 29-03-2026|02:30 26-10-2025|"
        "jan 1, 2026 01:30 pm Z|Jan 1, 2026 13:30 PM Z|Jan 1, 2026 00:30 AM +02:00|JAN 12, 2026 12:30 PM -05:30|"
        "January 1, 2026 01:30 PM Z|Jan 1, 2026 01:30 PM z|Jan 1, 2026 01:30 PM +02|Jan 1, 2026 01:30 PM|1767225601|1767225601.5|-1|-0.3|"
        "-0.0000004|0.5|1e9|1767225601d|253402300799|253402300800|253402300799.9999|253402300799.99999999|-62135596800|-62135596801|"
        "-62135596800000|-62135596800001000000|253402300799999|253402300800000|253402300799999999|253402300800000000|4503599627370497.5|"
        "1767225601000|1767225601000000|0.0000005|1.0000005| 1767225601 |NaN|Infinity|99999999999999999999"
    ),
]
NAMES = [
    *("oven", " oven ", "oven\t", "nobody", "", " ", "\u00a0oven", "\ud800oven", "ov\u00e9n", "o" * 300, "fridge", "room", "ghost"),
    *("' or 1=1 --", "%s%n", "${env:HOME}", "../../etc", "\x1b[31m", "\u202eoven", "\U0001f600"),
]
WHOLE = [
    *_apart('| |\t|null|5|"x"|""|[]|[{}]|{}| {} |{}{}|{},{}|{}],[{}|{}],"x":[{}|1],"event":[{}|{} //x'),
    *_apart("\ufeff{}|{}\ufeff|\xa0{}|{}\x0b"),
    *_apart('/**/{}|{|}|{"a"}|{"a":}|{"a":1,}|{a:1}|{"a":1 2}'),
    *("{'a':1}", "x" * 2000),
    *(f'{{"z":{"[" * depth}{"]" * depth}}}' for depth in (50, 150, 400)),
    *(f'{{"z":{"9" * digits}}}' for digits in (999, 1000, 1001)),
    *(f'{{"z":1.{"9" * digits}}}' for digits in (998, 999, 1000)),
    *(f'{{"z":"{text}"}}' for text in ("\\q", "a\tb", "a\x00b", "a\x7fb", "\\ud800", "\\u12", '\\"', "\u2028")),
    *('{"d":5,"at":1,"v":{"t":1}}', '{"d":{"id":"oven"},"d":5,"v":{"t":1}}', '{"d":{"id":"oven"},"d":{"x":1},"v":{"t":1}}'),
    *('{"d":{"id":"oven"},"v":{"t":1},"v":[]}', '{"v":"x","d":{"id":"oven"}}', '{"d":{"id":"oven"},"v":{"t":" ","h":"  7 "}}'),
    *(f'{{"device":"oven","data":{{"list":{lists}}}}}' for lists in _apart('[]|null|5|""|{}|[null]|[5]|[[]]|[{"n":"x"},5]')),
    *('{"device":"a","data":{"list":[{"n":"temperature","v":1,"t":1}],"list":5}}', '{"list":[{"a":" ","b":" 7 ","t":1},{},null]}'),
]
LINES = _apart(
    'oven,t|,,,,|"ov,en",t,1,2,3|"o""v",t,1,2,3|o"v"e,t,1,2,3|ab"c,d"e,t,1,2|"a"b,t,1,2,3|"oven,t,1,2,3|o"v,t,1,2,3|oven,t,1,2,3"|'
    'oven,t,1,2,3\r|\ufeffoven,t,1,2,3|\x00oven\x00,t,1,2,3|oven\\,t,1,2,3|"  oven  ",t," 1 ",2,3|"oven"  ,t,1,2,3|'
    '\toven\t,\tt\t,1,2,3|\xa0oven,t,1,2,3|"oven"",t,1,2,3|"oven""",t,1,2,3|""oven"",t,1,2,3|oven;t;temperature;1|'
    "'o;v';t;temperature;1|'o''v';t;temperature;1|o'v';t;temperature;1|oven;t;temperature;'1' |#oven,t,1,2,3"
)
"""Lines of CSV."""
ALPHABET = "\"',;:{}[]\\ \t\r\x0009-+.eEdZT/\ufeff"
BROKEN_UTF8 = [
    letters.encode("latin-1")
    for letters in _apart("\xff|\xed\xa0\x80|\xc0\xaf|\xe2\x82|\xf4\x90\x80\x80|\xf0\x9f\x98\x80|\xf0\x90\x28|\xf8\x88\x80\x80\x80")
]


def payloads(seed: int, mutations: int, sources: Collection[str] = SHAPES.keys()) -> Iterator[Payload]:
    """All lists, for every one of these shapes that they can meet, and so many random changes of good payloads for each shape."""
    chance = random.Random(seed)
    for source, shape in SHAPES.items():
        if source not in sources:
            continue
        headers = HEADERS.get(source, [None])
        more = _csv_payloads(source) if shape.format == "csv" else [*WHOLE, *VALUES] if source in NO_JSON else _json_payloads(source)
        texts = [*GOOD[source], *more, *([*LINES, "", "  ", "\t"] if shape.format == "csv" else [])]
        for text in texts:
            yield source, _encoded(text, shape.encoding), headers[0]
        for _ in range(mutations):
            payload = _encoded(chance.choice(texts[: len(texts) // 4] or texts), shape.encoding)
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
