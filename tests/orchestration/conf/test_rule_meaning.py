"""`tidemark check` sees what a rule cannot compute, before a run meets it."""

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from orchestration.conf.load import load
from orchestration.quality.store import kind_of
from silver.rules import READING
from silver.schema import READINGS

RULE = "metric <> 'door_open' or value in (0, 1)"
REFUSED = {
    "valu >= 0": "uses 'valu', which is not a column (column 1); did you mean 'value'?",
    "'a' in grups": "uses 'grups', which is not a column (column 8); did you mean 'groups'?",
    "data.value > 0": "uses 'data.value', which is not a column (column 1); there are device_id, ",
    "value": "is neither true nor false, but a number; compare it, for example value >= 0",
    "upper(zone)": "is neither true nor false, but a text; ",
    "value >": "cannot be read (column 7): something is missing there, or does not belong there; ",
    "value > 0;": "contains a comment or a semicolon (column 10); ",
    "zone > 3": "compares text (zone) with number (3) (column 1); write try_cast(zone as double)",
    "avg(value) > 3": "uses more than one row, which conditions do not have (column 1); ",
}
TAKEN = (
    *("VALUE > 1 and metric in ('a', 'b')", "event_time >= timestamp '2020-01-01 00:00:00'", "true", "'kitchen' in groups"),
    *("date_part('hour', event_time) between 6 and 20", "attributes['quality'] = 'true'", "try_cast(zone as double) > 3"),
)


@pytest.mark.parametrize("predicate", REFUSED)
def test_a_rule_that_cannot_be_computed_is_named_with_file_and_line(
    predicate: str, folder: Path, mistakes_after: Callable[..., list[str]]
) -> None:
    (mistake,) = mistakes_after(("rules", RULE, f'"{predicate}"'))
    assert mistake.startswith(f"conf/rules.yml:8: door_is_open_or_closed.holds {REFUSED[predicate]}")


def test_all_other_rules_are_taken(folder: Path) -> None:
    rules = "\n".join(f'  r{n}: {{holds: "{predicate}"}}' for n, predicate in enumerate(TAKEN))
    (folder / "rules.yml").write_text(f"rules:\n{rules}\n")
    assert [rule.holds for rule in load(folder).rules] == [*TAKEN]


def test_rules_may_ask_for_each_column_of_a_reading_by_its_type() -> None:
    with duckdb.connect() as store:
        declared = store.from_arrow(READINGS.empty_table())
        assert {name: kind_of(str(kind)) for name, kind in zip(declared.columns, declared.types, strict=True)} == READING


@pytest.mark.parametrize(
    ("predicate", "is_warned"),
    [
        ("attributes['quality'] = 'true'", True),
        ("source <> 'plant' or attributes['quality'] = 'true'", False),
        ("coalesce(attributes['quality'], 'true') = 'true'", False),
        ("attributes['quality'] is null or attributes['quality'] = 'true'", False),
    ],
)
def test_a_rule_that_asks_for_what_a_source_does_not_have_is_a_warning(predicate: str, is_warned: bool, folder: Path) -> None:
    (folder / "rules.yml").write_text(f'rules:\n  good: {{holds: "{predicate}"}}\n')
    expected = (
        "rules.yml:2: warning: good.holds uses attributes['quality'], which source plant does not have: all of its measurements would"
        " be quarantined; begin it with: source <> 'plant' or ..., or declare the attribute of the source"
    )
    assert [warning.partition("/")[2] or warning for warning in load(folder).warnings if "quality" in warning] == [expected] * is_warned
