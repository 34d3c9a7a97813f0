"""`senml`: a pack of SenML in JSON (RFC 8428), whose records get the base values before them, and absolute times."""

from typing import Any

from silver.decoders.exact import number_of, total
from silver.decoders.json_text import json_of
from silver.decoders.message import Message
from silver.records import UnreadableError

RELATIVE_BELOW, VERSION, NUMBERS = 2**28, 10, (int, float)
"""Times below 2^28 seconds are relative to now, which is the arrival."""
VALUES = ("v", "vb", "vs", "vd")
BASE = {"bn", "bt", "bu", "bv", "bs", "bver"}


def senml(content: Any, message: Message) -> list[Any]:
    """A record each with `n` (its whole name), `u`, `v` (the number, text or switch), `s` (the sum) and `t` (seconds since 1970); also with
    `bn` and `name`, the two parts of `n`, and all else that it has."""
    records, base, resolved = json_of(content), dict[str, Any](), []
    if not isinstance(records, list):
        raise UnreadableError("a pack is a list")
    now = None if message.arrived_micros is None else message.arrived_micros / 1_000_000
    for at, written in enumerate(records):
        record = written
        try:
            if not isinstance(record, dict):
                raise UnreadableError("it is no object")
            if not BASE.isdisjoint(record):
                base |= {name: record[name] for name in BASE if name in record}
                record = {name: value for name, value in record.items() if name not in BASE}
            resolved.append(_resolved(record, base, now))
        except UnreadableError as error:
            raise UnreadableError(error.reason, f"record {at + 1}") from None
    return resolved


def _resolved(record: dict[str, Any], base: dict[str, Any], now: float | None) -> dict[str, Any]:
    if not isinstance(version := base.get("bver", VERSION), int) or version > VERSION:
        raise UnreadableError(f"its version is {version!r}, and at most {VERSION} is read")
    if "_" in (last := "".join([label[-1:] for label in record])):
        raise UnreadableError(f"it has {[*record][last.index('_')][:50]!r}, which must be understood and is not")
    base_name, name = base.get("bn", ""), record.get("n", "")
    if not isinstance(base_name, str) or not isinstance(name, str) or not base_name + name:
        raise UnreadableError("it has no name")
    value = next((record[label] for label in VALUES if label in record), None)
    if "v" in record or (value is None and "bv" in base and "s" not in record):
        value = _sum(record.get("v", 0), base.get("bv", 0))
    summed = _sum(record.get("s", 0), base.get("bs", 0)) if "s" in record or "bs" in base else None
    time = _sum(record.get("t", 0), base.get("bt", 0))
    if time < RELATIVE_BELOW:
        time = None if now is None else _sum(now, time)
    names = {"bn": base_name, "name": name, "n": base_name + name}
    return {**record, **names, "u": record.get("u", base.get("bu")), "v": value, "s": summed, "t": time}


def _sum(own: Any, base: Any) -> Any:
    """The sum of a value and its base value, with the digits that both are written in."""
    if type(own) not in NUMBERS or type(base) not in NUMBERS:
        raise UnreadableError("a value, a sum, a time or their base is no number")
    return own if not base else base if not own else total(number_of(own), number_of(base))
