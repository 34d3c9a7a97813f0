"""`tidemark check` sees what a rule cannot compute, before a run meets it."""

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from orchestration.conf.load import load
from orchestration.conf.rule_meaning import READING
from silver.schema import READINGS

RULE = "metric <> 'door_open' or value in (0, 1)"
REFUSED = {
    "valu >= 0": "asks for 'valu', which a reading does not have; did you mean 'value'?",
    "size(filter(grups, g -> g = 'a')) > 0": "asks for 'grups', which a reading does not have; did you mean 'groups'?",
    "data.value > 0": "asks for 'data.value', which a reading does not have; ",
    "value": "is neither true nor false, but double; compare it, for example value >= 0",
    "lower(zone)": "is neither true nor false, but varchar; ",
    "soundex(zone) = 'a'": "'SOUNDEX(zone)' is more than quality checks can compute; write it with plainer functions",
    "cast(zone as int) > 3": "'CAST(zone AS INT)' is more than quality checks can compute; cast to double or date only, or use round",
    "1 / value > 0.5": "'1 / value' is more than quality checks can compute; divide by a number that is written out, or use try_divide",
    "value >": "cannot be read: 'value >' is no expression of Spark's SQL; look at line 1, character 7 of it",
    "value > 0 really": "is no condition; ",
    "value > 0;": "contains a comment or a semicolon; ",
    "zone > 3": "cannot be computed (Cannot compare values of type VARCHAR and type INTEGER_LITERAL",
    "device_id = 5": "cannot be computed (Could not convert string ",
    "value = 'abc'": "cannot be computed (Could not convert string 'abc' to DOUBLE); compare like with like, ",
    "zone rlike '('": "cannot be computed (missing ): (); ",
    "avg(value) > 3": "asks for more than one reading; ",
    "value > (select 1)": "asks for more than one reading; ",
    "regexp_extrac(zone, 'a') = 'b'": "calls 'regexp_extrac', which is no function of Spark; did you mean 'regexp_extract'?",
}
TAKEN = (
    *("VALUE > 1 and metric in ('a', 'b')", "event_time >= timestamp '2020-01-01 00:00:00'", "event_time >= '2020-01-01'", "true"),
    *("size(filter(groups, g -> g = 'kitchen')) > 0", "hour(event_time) between 6 and 20", "isnan(value) or value > 0"),
    *("element_at(groups, 1) = 'kitchen'", "attributes['quality'] = 'true'"),
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
        types = [str(kind).removesuffix(" WITH TIME ZONE") for kind in declared.types]
        store.execute(f"create table reading ({READING})")
        assert store.execute("describe reading").fetchall() == [
            (name, kind, "YES", None, None, None) for name, kind in zip(declared.columns, types, strict=True)
        ]


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
        "rules.yml:2: warning: good.holds asks for attributes['quality'], which source plant does not have: all of its measurements would"
        " be quarantined; begin it with: source <> 'plant' or ..., or declare the attribute of the source"
    )
    assert [warning.partition("/")[2] or warning for warning in load(folder).warnings if "quality" in warning] == [expected] * is_warned
