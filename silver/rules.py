"""Rules that hold for every reading, whatever the conf adds. Positive: each says what a good measurement is.

A rule that needs a readable payload holds for an unreadable one, and a rule on a value for a missing one,
so that a quarantined row names causes and not their consequences.
A row that breaks `something_is_measured` breaks no other rule: a healthy device has sent something else than a measurement.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from expectations.rule import Kind, Rule
from silver.policy import Policy, Unknown
from silver.schema import SOMETHING_IS_MEASURED

READING = {
    **dict.fromkeys(("device_id", "metric"), Kind.TEXT),
    "event_time": Kind.TIMESTAMP,
    "value": Kind.NUMBER,
    **dict.fromkeys(("unit", "aggregation"), Kind.TEXT),
    "step_seconds": Kind.NUMBER,
    "zone": Kind.TEXT,
    "groups": Kind.TEXTS,
    "attributes": Kind.ATTRIBUTES,
    "source": Kind.TEXT,
    "ingested_at": Kind.TIMESTAMP,
    **dict.fromkeys(("bronze_batch", "bronze_row", "part", "parts"), Kind.NUMBER),
}
"""Columns of silver.readings, for conditions. A test compares them: Arrow, which has them, takes longer to load than all else of a conf."""


def rules_of(policy: Policy, declared: Sequence[Rule], ahead_seconds: Mapping[str, int] = MappingProxyType({})) -> dict[str, str]:
    """The built-in rules under this policy, then those of conf/rules.yml, by name, in DuckDB's SQL, which ends in an error for no row.

    `ahead_seconds`: by source, where it has a bound of its own.
    """
    most_ahead = _by_source(ahead_seconds, policy.max_future_seconds)
    asked_of_measured = {
        "device_is_present": "device_id is not null",
        "metric_is_present": "metric is not null",
        "event_time_is_valid": "event_time is not null",
        "local_time_is_unique": "is_local_time_unique",
        # A clock that was never set shows 1970, or the start of an epoch of its own; its readings would open windows there.
        "event_time_is_not_too_old": f"event_time is null or event_time >= ingested_at - to_seconds({policy.max_age_seconds})",
        # An event time from a broken clock would push the watermark ahead and turn every later good row away.
        "event_time_is_not_in_the_future": f"event_time is null or event_time <= ingested_at + to_seconds({most_ahead})",
        "value_is_a_number": "metric is null or not is_unit_known or isfinite(value)",
        "value_is_in_range": "value is null or isnan(value) or value between coalesce(minimum, value) and coalesce(maximum, value)",
        "unit_is_known": "is_unit_known",
        "device_is_known": "device_id is null or is_device_known",
        "metric_is_known": "metric is null or is_metric_known",
    } | dict(map(_declared, declared))
    if policy.unknown_device is Unknown.UNASSIGNED:
        del asked_of_measured["device_is_known"]
    if policy.unknown_metric is Unknown.UNASSIGNED:
        del asked_of_measured["metric_is_known"]
    return {
        "payload_is_small_enough": f"payload_bytes <= {policy.max_payload_bytes}",
        "payload_is_utf8": "is_utf8",
        "payload_is_readable": f"is_readable or payload_bytes > {policy.max_payload_bytes}",
        SOMETHING_IS_MEASURED: "is_measured or not is_readable or not is_utf8",
        **{name: f"not is_measured or ({holds})" for name, holds in asked_of_measured.items()},
    }


def _by_source(numbers: Mapping[str, int], otherwise: int) -> str:
    cases = "".join(f" when '{name}' then {number}" for name, number in sorted(numbers.items()))
    return f"case source{cases} else {otherwise} end" if cases else str(otherwise)


def _declared(rule: Rule) -> tuple[str, str]:
    from expectations.condition import condition  # here: who only wants names, as SQL does, need not load a parser

    return rule.name, condition(rule.holds, READING).sql


BUILT_IN = tuple(rules_of(Policy(lateness_seconds=0, max_future_seconds=0, max_payload_bytes=1), ()))
"""Names of all of them: under this policy none is left out."""
