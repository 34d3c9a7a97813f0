"""Words by which a sample is understood: names of fields by role, and texts that stand for a number or for no value."""

import math
import re

Scalar = str | int | float | bool

NAMES = {
    "time": """ts timestamp event_time time datetime date_time measured_at recorded_at observed_at at date t unix unixtime epoch utc clock
        last_changed last_updated created_at fecha datum zeit ms millis uptime""",
    "device": """device_id device deviceid dev_eui sensor_id sensor sensorid machine_id machine asset_id asset station_id station
        node_id node unit_id entity_id entity thing host serial serial_number mac gateway dev id name src""",
    "metric": """metric metric_name measurement measure parameter quantity variable signal channel tag tag_name tagname point
        property type kind name key m""",
    "value": "value val reading measured_value v number state",
    "unit": "unit units uom u unit_of_measurement units_abbreviation",
    "zone": "zone room area location site hall building floor line place",
    "time of day": "time time_of_day hour minute second hora uhrzeit heure millis milliseconds ms msec",
}
"""How fields of a role are called, the likeliest first."""
ALSO = {"device": re.compile(r"^(?!.*(message|msg|request|session|event|key|application)_id$)(.*_)?id$"), "unit": re.compile(r"_units?$")}
"""Other names of a role."""
UNKNOWN = 100
"""Rank of a name that is not among them."""
PLAIN_METRICS, PLAIN_DEVICES = NAMES["metric"].split().index("property"), NAMES["device"].split().index("id")
"""As many of those names are of a metric or device only; the others may be of anything."""
COUNTERS = re.compile(r"(.*_)?(id|port|cnt|count|counter|seq|sequence|index|idx|version|code|channel|nr|row|n)")
"""Names of whole numbers that count or name something."""
FLAGS = re.compile(
    r"(is_|.*_)?(valid|invalid|validity|status|status_code|flag|flags|qc|good|bad)|q|ok|is_ok|(?!(air|water|link)_).*quality"
)
"""Names of what a sender says about the quality of its values."""
RADIO = re.compile(r"(.*_)?(rssi|snr|lqi)")
NEGATIVE = re.compile("bad|invalid")
GOOD, NOT_BAD = ("true", "good", "ok", "valid", "192"), ("false", "0", "no")
"""What a flag says of a good value."""
SWITCHES = {"true": 1.0, "false": 0.0, "on": 1.0, "off": 0.0, "open": 1.0, "closed": 0.0, "yes": 1.0, "no": 0.0}
NOT_MEASURED = frozenset(
    ("unavailable", "unknown", "none", "null", "nan", "n/a", "na", "n.a.", "nil", "missing", "no data", "-", "--", "---")
)
DECIMAL_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+),\d+")


def rank(path: str, role: str) -> int:
    """Place of the last part of a path among the names of a role, or of its last two (device.id: device_id)."""
    names = NAMES[role].split()
    parts = [snake(part) for part in path.split(".")]
    other = UNKNOWN - 1 if role in ALSO and ALSO[role].search(parts[-1]) else UNKNOWN
    return min((names.index(name) for name in (parts[-1], "_".join(parts[-2:])) if name in names), default=other)


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


def is_word_for_none(value: Scalar) -> bool:
    return str(value).strip().lower() in NOT_MEASURED


def number_of(value: Scalar) -> float | None:
    """As the silver layer reads it; words of a switch too, which conf has to name."""
    text = str(value).strip().lower()
    return SWITCHES[text] if text in SWITCHES else float(text) if is_number(text) else None


def is_numeric(value: Scalar) -> bool:
    return number_of(value) is not None


def is_measurement(path: str, value: Scalar) -> bool:
    """A number that neither counts, nor names something, nor says how good others are."""
    number, name = number_of(value), snake(last(path))
    return number is not None and not (FLAGS.fullmatch(name) or (COUNTERS.fullmatch(name) and number.is_integer()))
