"""What is no condition is refused with its place, and with what to write instead."""

import pytest

from expectations.condition import condition
from expectations.terms import ConditionError
from tests.expectations.test_condition import COLUMNS, answers

REFUSED = {
    "rand() > 0.5": "calls 'rand', which conditions do not have (column 1); ask for columns alone",
    "now() > event_time": "calls 'now', which conditions do not have (column 1); ask for columns alone; ingested_at is when the event came",
    "uuid() = 'a'": "calls 'uuid', which conditions do not have (column 1); ask for columns alone",
    "event_time < current_timestamp": "uses the current time, which conditions do not have; ask for columns alone",
    "value > (select 1)": "uses a subquery, which conditions do not have (column 17); write what is true of one row",
    "value in (select 1)": "uses a subquery, which conditions do not have (column 18); write what is true of one row",
    "avg(value) > 3": "uses more than one row, which conditions do not have (column 1); write what is true of one row",
    "lag(value) over () > 3": "uses more than one row, which conditions do not have (column 1); write what is true of one row",
    "value > 1; drop table x": "contains a comment or a semicolon (column 10); write a comment behind a # in the YAML instead",
    "value > 1 -- hot": "contains a comment or a semicolon (column 9); write a comment behind a # in the YAML instead",
    "value >": "cannot be read (column 7): something is missing there, or does not belong there",
    "unit = 'W": "cannot be read; look for a quote that is not closed",
    "value > 0 really": "uses a name after an expression, which conditions do not have (column 1); put an operator",
    "valu > 1": "uses 'valu', which is not a column (column 1); did you mean 'value'?",
    "value > 1\n  and zoen = 'hall'": "uses 'zoen', which is not a column (line 2, column 7); did you mean 'zone'?",
    "reading.value > 1": "uses 'reading.value', which is not a column (column 1); there are value, other, count, ",
    "value": "is neither true nor false, but a number; compare it, for example value >= 0",
    "unit > 3": "compares text (unit) with number (3) (column 1); write try_cast(unit as double)",
    "value = '3'": "compares number (value) with text ('3') (column 1); write 3 without quotes",
    "event_time > '2026-01-01'": "compares timestamp (event_time) with text ('2026-01-01') (column 1); write timestamp '2026-01-01'",
    "value = null": "compares with null, which is never true (column 1); write value is null",
    "unit + 1 > 2": "has a text (unit) where a number belongs (column 1); write try_cast(unit as double)",
    "value and ok": "has a number (value) where a boolean belongs (column 1); compare it, for example value >= 0",
    "isnan(value)": "calls 'isnan', which conditions do not have (column 1); write value between -1e308 and 1e308, which is true of",
    "value < double('infinity')": "calls 'double', which conditions do not have (column 9); write try_cast(unit as double)",
    "unit rlike '^a'": "has an operator or flags of patterns (column 1); write regexp_matches(unit, 'pattern'), with (?i) for any case",
    "regexp_like(unit, 'a')": "calls 'regexp_like', which conditions do not have (column 1); write regexp_matches(unit, 'pattern')",
    "regexp_matches(unit, '(')": "has a pattern that is none (missing ): () (column 1); write it as RE2 does",
    "size(groups) > 0": "calls 'size', which conditions do not have (column 1); write length(groups)",
    "array_contains(groups, 'a')": "calls 'array_contains', which conditions do not have (column 1); write 'kitchen' in groups",
    "groups[1] = 'a'": "takes a part of a list of texts (groups) (column 1); write for example attributes['quality'], or 'kitchen' in",
    "concat(unit, 'a') = 'b'": "calls 'concat', which conditions do not have (column 1); compare the parts one by one",
    "unit || 'a' = 'b'": "uses joined texts, which conditions do not have (column 1); compare the parts one by one",
    "nvl2(unit, 1, 2) = 1": "calls 'nvl2', which conditions do not have (column 1); write case when .. then .. else .. end",
    "if(ok, 1, 2) = 1": "uses if, which conditions do not have (column 4); write case when .. then .. else .. end",
    "unix_timestamp(event_time) > 0": "calls 'unix_timestamp', which conditions do not have (column 1); write date_part('epoch', ",
    "hour(event_time) > 6": "calls 'hour', which conditions do not have (column 1); write date_part('hour', event_time)",
    "dayofweek(event_time) = 1": "calls 'dayofweek', which conditions do not have (column 1); write date_part('isodow', event_time)",
    "contains(unit, 'a')": "calls 'contains', which conditions do not have (column 1); write unit like '%part%'",
    "startswith(unit, 'a')": "calls 'startswith', which conditions do not have (column 1); write unit like 'start%'",
    "event_time > ingested_at - interval 1 hour": "has a timestamp (ingested_at) where a number belongs (column 14); write date_part(",
    "cast(value as int) = 1": "casts to int (column 6); there are double, text, boolean, timestamp; floor and round make whole numbers",
    "cast(event_time as double) > 1": "casts timestamp (event_time) to number (column 6); write date_part('epoch', event_time)",
    "timestamp '2026-02-30' < event_time": "has the timestamp '2026-02-30', which is none (column 11); write for example timestamp ",
    "unit like zone": "computes the pattern of like (column 11); write the pattern of like out",
    "unit like 'a\\'": "has a pattern that ends with a backslash (column 1); write two of them for one, as it escapes what follows",
    "unit ilike 'a%'": "uses ilike, which conditions do not have (column 1); write lower(unit) like 'part%'",
    "unit like 'a!%' escape '!'": "uses an escape of like, which conditions do not have (column 1); write a backslash",
    "date_part('eon', event_time) = 1": "uses the part 'eon' of a date (column 1); there are year, quarter, month, ",
    "substring(unit, 0) = 'a'": "takes the letters 0 (column 11); write the first one as a number from 1, and how many",
    "coalesce(value, 'none') = 1": "mixes number (value) with text ('none') (column 1); write none without quotes",
    "value is true": "asks whether something is true (column 1); write it alone, or coalesce(.., false)",
    "pow(value, 2) > 4": "calls 'pow', which conditions do not have (column 1); write value * value",
    "value // 2 = 1": "uses a division of whole numbers, which conditions do not have (column 1); write floor(a / b)",
    "md5(unit) = 'a'": "calls 'md5', which conditions do not have (column 1); see expectations/README.md for all that they have",
    "regexp_matchs(unit, 'a')": "calls 'regexp_matchs', which conditions do not have (column 1); did you mean 'regexp_matches'?",
    "1e999 > value": "has a number beyond 1.8e308 (column 1); write a smaller one",
    "attributes = 'a'": "compares a map of attributes (attributes) (column 1); write one of its texts: attributes['quality']",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_condition_is_refused_with_its_place_and_what_to_write(text: str) -> None:
    with pytest.raises(ConditionError) as refused:
        condition(text, COLUMNS)
    assert str(refused.value).startswith(REFUSED[text])


@pytest.mark.parametrize("text", ["(" * 900 + "value > 1" + ")" * 900, "value" + " % (1 + value" * 60 + ")" * 60 + " > 1"])
def test_what_is_nested_too_deeply_is_refused_and_not_computed(text: str) -> None:
    with pytest.raises(ConditionError, match="write several conditions"):
        condition(text, COLUMNS)


def test_five_hundred_alternatives_are_one_condition() -> None:
    text = " or ".join(f"value = {number}" for number in range(500))
    assert answers([text], [{"value": 499.0}]) == ([[True]], [[True]])


def test_a_condition_names_what_it_asks_for_in_order() -> None:
    asked = condition("zone is null or attributes['b'] = unit and VALUE > 1 and attributes['a'] = zone", COLUMNS)
    assert (asked.columns, asked.attributes, asked.considers_null) == (("zone", "attributes", "unit", "value"), ("b", "a"), True)
