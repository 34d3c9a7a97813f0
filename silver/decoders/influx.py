"""`influx`: InfluxDB's line protocol, as Telegraf writes it; any number of lines in one message."""

import re
from typing import Any, Literal

from silver.decoders.json_text import text_of
from silver.decoders.message import Message
from silver.records import UnreadableError

NAME = r"(?:[^\\,= \n]++|\\.)++"
LINE = re.compile(
    rf"[ \t]*(?P<measurement>(?:[^\\, \n#]++|\\.)(?:[^\\, \n]++|\\.)*+)(?P<tags>(?:,{NAME}={NAME})*+) ++"
    rf'(?P<fields>{NAME}=(?:"(?:[^"\\]++|\\.)*+"|[^," \n]++)(?:,{NAME}=(?:"(?:[^"\\]++|\\.)*+"|[^," \n]++))*+)'
    r"(?: ++(?P<time>-?[0-9]{1,19}))?[ \r]*+(?:\n|\Z)",
    re.DOTALL,
)
NOTHING = re.compile(r"[ \t\r]*(?:#[^\n]*)?(?:\n|\Z)")
TAG = re.compile(rf",({NAME})=({NAME})")
FIELD = re.compile(rf'({NAME})=("(?:[^"\\]++|\\.)*+"|[^," \n]++),?', re.DOTALL)
FLOAT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
WHOLE = re.compile(r"(-?[0-9]{1,20})[iu]")
ESCAPED, ESCAPED_IN_TEXT = re.compile(r"\\([,= ])"), re.compile(r'\\(["\\])')
SWITCHES = dict.fromkeys(("t", "T", "true", "True", "TRUE"), True) | dict.fromkeys(("f", "F", "false", "False", "FALSE"), False)
NANOSECONDS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}


def influx(content: Any, message: Message, precision: Literal["s", "ms", "us", "ns"] = "ns") -> list[Any]:
    """An object a line with `measurement`, `tags`, `fields` and `time` in nanoseconds: that of the arrival where the line has none.

    `precision`: the unit in which lines have their time.
    """
    text, at, points = text_of(content), 0, []
    arrived, unit = message.arrived_micros and message.arrived_micros * 1_000, NANOSECONDS[precision]
    while at < len(text):
        if (nothing := NOTHING.match(text, at)) is not None:
            at = nothing.end()
            continue
        if (line := LINE.match(text, at)) is None:
            raise UnreadableError("it is no line protocol: measurement,tag=text field=value time", f"line {text.count(chr(10), 0, at) + 1}")
        measurement, tags, fields, time = line.groups()
        points.append(
            {
                "measurement": _plain(measurement),
                "tags": {_plain(name): _plain(value) for name, value in TAG.findall(tags)} if tags else {},
                "fields": {_plain(name): _value(value) for name, value in FIELD.findall(fields)},
                "time": int(time) * unit if time else arrived,
            }
        )
        at = line.end()
    return points


def _plain(name: str) -> str:
    return ESCAPED.sub(r"\1", name) if "\\" in name else name


def _value(text: str) -> Any:
    if FLOAT.fullmatch(text):
        return float(text)
    if text[0] == '"':
        return ESCAPED_IN_TEXT.sub(r"\1", text[1:-1])
    if whole := WHOLE.fullmatch(text):
        return int(whole[1])
    if (switch := SWITCHES.get(text)) is None:
        raise UnreadableError(f"{text[:20]!r} is no value of a field")
    return switch
