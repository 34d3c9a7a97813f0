"""JSON and CSV payloads: what is readable, and what their members are."""

import csv
import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestration.audit.verify.csv_payload import row_reader
from orchestration.audit.verify.json_payload import UnreadableError, as_text, read_object
from orchestration.audit.verify.records import Level
from silver.spec import Origin, PayloadFormat, Time

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=10,
)
CELLS = st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n")), min_size=3, max_size=3)


def readable(text: str) -> bool:
    try:
        read_object(text)
    except UnreadableError:
        return False
    return True


@given(st.dictionaries(TEXT, JSON))
def test_what_json_writes_is_read_back(members: dict[str, Any]) -> None:
    assert read_object(json.dumps(members)) == members


@given(st.text())
def test_any_text_is_readable_or_not_and_never_an_error(text: str) -> None:
    readable(text)
    readable('{"a":' + text + "}")


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "null", "5", "[]", "[{}]", "{}{}", "{},{}", '{}],"x":[{}', "{} //x", "\ufeff{}", "\u00a0{}", "{", '{"a":1,}', "{'a':1}"),
        *("{a:1}", '{"a":01}', '{"a":.5}', '{"a":1.}', '{"a":+1}', '{"a":0x1}', '{"a":nan}', '{"a":INF}', '{"a":"\t"}', '{"a":"\\q"}'),
        *('{"a":' + "9" * 1001 + "}", '{"a":1.' + "9" * 1000 + "}", '{"' + "k" * 50_001 + '":1}', '{"a":' + "[" * 998 + "]" * 998 + "}"),
    ],
)
def test_what_is_no_single_object_is_unreadable(text: str) -> None:
    assert not readable(text)


@pytest.mark.parametrize(
    "text",
    [
        *("{}", "\t{} \r", '{"a":NaN}', '{"a":+INF}', '{"a":"+INF","b":-INF}', '{"a":"\x7f"}', '{"a":' + "9" * 1000 + "}"),
        *('{"a":1.' + "9" * 999 + "}", '{"' + "k" * 50_000 + '":1}', '{"a":' + "[" * 997 + "]" * 997 + "}", '{"a":"' + "[" * 5000 + '"}'),
    ],
)
def test_what_is_hard_to_read_and_still_an_object_is_read(text: str) -> None:
    assert readable(text)


def test_hostile_brackets_and_quotes_take_linear_time() -> None:
    assert not readable('{"a":' * 100_000)
    assert not readable("[" * 200 + '"' + '\\"' * 500_000)


def test_the_last_of_a_repeated_name_counts() -> None:
    assert read_object('{"a":1,"b":0,"a":2}')["a"] == 2


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ('{"d":{"id":1}}', True),
        ('{"d":null,"l":null}', True),
        ("{}", True),
        ('{"l":[{"x":1},null]}', True),
        ('{"d":5}', True),
        ('{"l":[{},5]}', True),
        ('{"l":[{"in":[]}]}', True),
        ('{"l":{}}', False),
        ('{"l":[],"l":5}', False),
        ('{"o":5}', False),
    ],
)
def test_a_declared_list_must_be_one(text: str, fits: bool) -> None:
    level = Level({"d": Level({}), "l": Level({"in": Level({})}, is_list=True), "o": Level({"l": Level({}, is_list=True)})})
    if fits:
        level.record_of(read_object(text))
    else:
        with pytest.raises(UnreadableError):
            level.record_of(read_object(text))


@pytest.mark.parametrize(
    ("member", "text"),
    [
        *(("null", None), ('" x "', " x "), ("1.50", "1.5"), ("1e7", "1.0E7"), ("-0", "0"), ("true", "true"), ("NaN", '"NaN"')),
        *(
            ('"\\ud800"', "?"),
            ('"\\ud83d\\ude00"', "\U0001f600"),
            ("[1, 2.50 ]", "[1,2.5]"),
            ('{"a":1,"a":"\\u001f"}', '{"a":1,"a":"\\u001F"}'),
        ),
    ],
)
def test_a_member_that_is_a_name_is_text(member: str, text: str | None) -> None:
    assert as_text(read_object(f'{{"m":{member}}}')["m"]) == text


def of_columns(*columns: str, **more: Any) -> PayloadFormat:
    return PayloadFormat("csv", Origin(field="a"), Time("b"), metrics={"c": "c"}, columns=columns, **more)


@given(CELLS.filter(lambda cells: cells[1] != "b"))
def test_what_csv_writes_is_read_back(cells: list[str]) -> None:
    """But a row whose time is the name of its column: that is a header."""
    line = io.StringIO()
    csv.writer(line, quoting=csv.QUOTE_ALL).writerow(cells)
    assert row_reader(of_columns("a", "b", "c"))(line.getvalue().rstrip("\r\n"), None) == dict(
        zip("abc", (c or None for c in cells), strict=True)
    )


@given(st.text())
def test_any_line_is_a_row_or_none(line: str) -> None:
    found = row_reader(of_columns("a", "b", "c"))(line, None)
    assert not found or set(found) == {"a", "b", "c"}


def test_a_blank_line_and_a_header_that_comes_again_are_rows_without_values() -> None:
    read = row_reader(of_columns("a", "b", "c"))
    assert [read(line, None) for line in ("", " \t\r", "\ufeff", "a,b,c", '"a", "b" ,c')] == [{}] * 5


@pytest.mark.parametrize("line", ["1,2", "1,2,3,4", '1"2,3"4,5', '"1"2,3,4', '"1,2,3', '1",2,3', '"1"",2,3'])
def test_a_line_with_too_few_or_many_values_or_a_quote_out_of_place_is_unreadable(line: str) -> None:
    assert row_reader(of_columns("a", "b", "c"))(line, None) is None


def test_quotes_blanks_and_byte_order_marks_go_away() -> None:
    assert row_reader(of_columns("a", "b", "c"))('\ufeff "x,""y"" " , 2\r,\t ', None) == {"a": 'x,"y" ', "b": "2", "c": None}


def test_names_come_from_the_header_of_the_file_and_the_first_value_may_have_none() -> None:
    read = row_reader(of_columns(has_header=True))
    assert read("1,2", "b,a") == {"b": "1", "a": "2"}
    assert read("9,1,2", ',"b" ,a') == {"b": "1", "a": "2"}
    assert read("9,1,2", "b,a") is read("1,2", ",b,a") is None
    assert read("1,2", None) is None
    assert (read("1,2,3", "b,x,x") or {})["b"] == "1"
    assert read("1,2,3", "b,a,b") is None


def test_declared_columns_have_a_number_before_them_where_the_header_of_the_file_says_so() -> None:
    read = row_reader(of_columns("b", "a", has_header=True))
    assert read("9,1,2", ",x,y") == {"b": "1", "a": "2"}
    assert read("1,2", ",x,y") is read("9,1,2", "x,y") is read("9,1,2", ",x") is read("9,1,2", None) is None
    assert read("1,2", "a title") == read("1,2", None) == {"b": "1", "a": "2"}


def test_a_separator_at_the_end_of_a_row_does_not_shift_it_and_a_header_has_its_longest_length() -> None:
    read = row_reader(of_columns(has_header=True))
    assert read("1,2,", "b,a") is None
    assert read('1,2,""', "b,a") is None
    assert read("1,2,", "b,a,") == {"b": "1", "a": "2"}
    header, row = (",".join(f"{letter}{n}" for n in range(5_000)) for letter in "nv")
    assert read(row, header) == {f"n{n}": f"v{n}" for n in range(5_000)}
    assert read(f"{row},v", f"{header},{'n' * 65_536}") is None
    assert read(header, header) == {}
