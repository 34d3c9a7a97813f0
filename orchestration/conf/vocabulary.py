"""Words by which a sample is understood: names of fields by role, and texts that stand for a number or for no value."""

import math
import re
from collections.abc import Sequence
from importlib import resources
from typing import Any

import yaml

Scalar = str | int | float | bool

WORDS: dict[str, Any] = yaml.safe_load(resources.files("orchestration.conf").joinpath("proposed/vocabulary.yml").read_text("utf-8"))
NAMES = {role: names.split() for role, names in WORDS["names"].items()}
UNKNOWN = 100
"""Rank of a name that is not among them."""
PLAIN_METRICS, PLAIN_DEVICES = NAMES["metric"].index("property"), NAMES["device"].index("id")
"""Count of names that are of a metric or device only; the others may be of anything."""
MAX_WORDS_OF_A_FLAG = 10


def rank(path: str, role: str) -> int:
    """Place of the last part of a path among the names of a role, or of its last two (device.id: device_id); behind them all that of a
    name by a pattern, of which those that end with a name of several words, such as hub_device_id, come first."""
    parts = [snake(part) for part in path.split(".")]
    is_other = role in WORDS["patterns"] and is_called(path, role)
    is_near = is_other and any("_" in name and parts[-1].endswith(f"_{name}") for name in NAMES[role])
    other = UNKNOWN - is_other - is_near
    return min((NAMES[role].index(name) for name in (parts[-1], "_".join(parts[-2:])) if name in NAMES[role]), default=other)


def is_called(path: str, pattern: str) -> bool:
    """Whether the last part of a path is a name of that pattern."""
    return re.fullmatch(WORDS["patterns"][pattern], snake(last(path)) or last(path)) is not None


def is_of_transfer(path: str) -> bool:
    """Whether a field is in an object about how a message came."""
    return any(is_called(part, "transfer") for part in path.split(".")[:-1])


def unit_in(name: str) -> str | None:
    """The unit that a name ends with: in brackets, as in `Flow [m3/h]`, behind the last `_`, or as HOBO loggers write `Temp, °C (...)`."""
    if match := re.fullmatch(r".*, ([^,()]{1,8})(?: \([^()]*: [^()]*\))?", name):
        return match[1]
    if brackets := re.search(r"\S.*[\[(]\s*([^\[\]():]*[^\W\d][^\[\]():]*|%|°C|°F|℃|℉)\s*[\])]\s*$", name):
        return brackets[1].strip()
    splits = (re.split("[^a-z0-9]+", name.lower()), snake(name).split("_"))  # kWh is one word, and tempC are two
    ends = ("_".join(parts[-n:]) for parts in splits for n in (2, 1) if parts[n:])
    return next((WORDS["units"][end] for end in ends if end in WORDS["units"]), None)


def is_unit_of(unit: str, path: str) -> bool:
    """Whether a field of a unit is named after a field that is measured, perhaps in short: `TempUnit` after `Temperature`."""
    name, word = snake(last(path)), re.sub("_units?$", "", snake(last(unit)))
    is_short = min(len(name), len(word)) > 2 and (name.startswith(word) or word.startswith(name))
    return word != snake(last(unit)) and (name == word or is_short)


def is_id(values: Sequence[Scalar]) -> bool:
    """Whether texts look like ids, not numbers: all of one length, of digits with leading zeros or of hexadecimal ones."""
    texts = {value.strip() for value in values if isinstance(value, str)}
    are_ids = texts and all(re.fullmatch("[0-9]{4,}|[0-9A-Fa-f]{8,}", text) for text in texts)
    return bool(are_ids) and len(set(map(len, texts))) == 1 and any(text.startswith("0") or not text.isdecimal() for text in texts)


def last(path: str) -> str:
    return path.rsplit(".", 1)[-1]


def snake(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()).strip("_")


def is_number(text: str) -> bool:
    """Whether Spark's cast would read it; `nan` and `inf` are no measurements."""
    try:
        return "_" not in text and math.isfinite(float(text))
    except ValueError:
        return False


def is_no_value(value: Scalar) -> bool:
    return str(value).strip().lower() in WORDS["not_measured"]


def number_of(value: Scalar) -> float | None:
    """Read a number as the silver layer reads it; words of a switch too, which conf has to name."""
    text = str(value).strip().lower()
    return float(WORDS["switches"][text]) if text in WORDS["switches"] else float(text) if is_number(text) else None


def is_measurement(path: str, value: Scalar) -> bool:
    """A number that neither counts, nor names something, nor says how good others are."""
    number = number_of(value)
    return number is not None and not is_flag(path) and not (number.is_integer() and is_called(path, "counter"))


def is_flag(path: str, values: Sequence[Scalar] = ()) -> bool:
    """Whether it says how good values are, in a few words that a rule can name."""
    words = set(map(str, values))
    is_plain = len(words) <= MAX_WORDS_OF_A_FLAG and not any("'" in word or "\\" in word for word in words)
    return is_plain and (is_called(path, "flag") or is_called(path, "status"))
