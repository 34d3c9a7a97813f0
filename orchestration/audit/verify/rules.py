"""Rules as DuckDB evaluates them: those that hold for every reading, written anew from what they promise, and those of conf/rules.yml."""

from orchestration.audit.verify.conditions import evaluated
from orchestration.audit.verify.store import READINGS
from orchestration.conf.model import Conf
from silver.spec import Policy, Unknown


def broken_rules(conf: Conf) -> str:
    """SQL for the list of names of the rules that a row breaks."""
    conditions = _built_in(conf.policy) | {rule.name: f"not is_measured or {evaluated(rule.holds, READINGS)}" for rule in conf.rules}
    named = (f"case when coalesce({holds}, false) then null else '{name}' end" for name, holds in conditions.items())
    return f"list_filter([{', '.join(named)}], lambda name: name is not null)"


def _built_in(policy: Policy) -> dict[str, str]:
    """Each holds for a row whose payload it cannot ask, so that a row names causes and not their consequences."""
    of_measured = {
        "device_is_present": "device_id is not null",
        "metric_is_present": "metric is not null",
        "event_time_is_valid": "event_time is not null",
        "local_time_is_unique": "is_local_time_unique",
        "event_time_is_not_too_old": f"event_time is null or event_time + to_seconds({policy.max_age_seconds}) >= ingested_at",
        "event_time_is_not_in_the_future": f"event_time is null or event_time <= ingested_at + to_seconds({policy.max_future_seconds})",
        "value_is_a_number": "metric is null or not is_unit_known or coalesce(isfinite(value), false)",
        "value_is_in_range": "value is null or isnan(value) or (coalesce(value >= minimum, true) and coalesce(value <= maximum, true))",
        "unit_is_known": "is_unit_known",
        "device_is_known": "device_id is null or is_device_known",
        "metric_is_known": "metric is null or is_metric_known",
    }
    unasked = {
        "device_is_known": policy.unknown_device is Unknown.UNASSIGNED,
        "metric_is_known": policy.unknown_metric is Unknown.UNASSIGNED,
    }
    return {
        "payload_is_small_enough": "is_small",
        "payload_is_utf8": "is_utf8",
        "payload_is_readable": "is_readable or not is_small",
        "something_is_measured": "is_measured or not (is_readable and is_utf8)",
        **{name: f"not is_measured or ({holds})" for name, holds in of_measured.items() if not unasked.get(name)},
    }
