"""Statements of a text: a semicolon ends one, unless a string, a name in quotes or a comment holds it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestration.serving.sql.sql_words import split, statements, words

HOLDING = ["'a;b'", "'it''s; '", "'\\;'", '"a;b"', '";""; "', "$$ ; $$", "$x$ ; $x$", "e'\\'; '", "/* ; */", "/* /* ; */ ; */", "-- ;\n"]
"""Pieces of a statement with a semicolon inside that ends nothing."""
PIECES = [*HOLDING, "select", " ", "\n", "1", "from t", "a.b", "''", '""', "/**/", "\\", "ß", "-", "/", "*", "\u00a0"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select 1", ["select 1"]),
        ("select 1; select 2;\n", ["select 1", "select 2"]),
        (" ; ;\n;", []),
        ("-- nothing\n/* at all */", []),
        ("select 1 -- one; not two\n; select 2 /* ; */ ", ["select 1 -- one; not two", "select 2 /* ; */"]),
        ("select 'a; b' as \"c;d\" ; select 'it''s; '", ["select 'a; b' as \"c;d\"", "select 'it''s; '"]),
        ("select '\\'; select 2", ["select '\\'", "select 2"]),
        ("select e'\\'; '; select 2", ["select e'\\'; '", "select 2"]),
        ("select $$ ; $$; select 2", ["select $$ ; $$", "select 2"]),
        ("select 1 /* /* ; */ ; */; select 2", ["select 1 /* /* ; */ ; */", "select 2"]),
        ("select 'ß\u00a0;'; select \u00e9", ["select 'ß\u00a0;'", "select \u00e9"]),
        ("select 'open; select 2; ", ["select 'open; select 2;"]),
        ("select 1 /* open; select 2;", ["select 1 /* open; select 2;"]),
        ("", []),
    ],
)
def test_a_semicolon_ends_a_statement_where_it_stands_by_itself(text: str, expected: list[str]) -> None:
    assert statements(text) == expected


@given(st.lists(st.lists(st.sampled_from(PIECES), min_size=1, max_size=6), max_size=6))
def test_statements_put_together_come_apart_again(made: list[list[str]]) -> None:
    # With a space between them, pieces do not become something else together.
    texts = [" ".join(pieces) + "\n" for pieces in made]
    expected = [text.strip() for text in texts if any(word.kind != "comment" for word in words(text))]
    assert statements(";".join(texts)) == expected


@given(st.text(alphabet="abc;'\"`\\-/*\n r1$éß€\u00a0\ud800(){}"))
def test_every_word_is_at_its_place_and_between_words_is_only_space(text: str) -> None:
    end = 0
    for word in words(text):
        assert not text[end : word.at].strip("\u00a0 \n")
        end = word.at + len(word.text)
    assert not text[end:].strip("\u00a0 \n")
    complete, rest = split(text)
    assert all(statement in text for statement in complete)
    assert text.endswith(rest)


@given(st.text(alphabet="ab;'\"`\\-/*\n", max_size=30), st.text(alphabet="ab;'\"`\\-/*\n", max_size=30))
def test_what_was_ended_stays_so_whatever_comes_behind(text: str, more: str) -> None:
    complete, _ = split(text + ";")
    if len(complete) > len(split(text)[0]) and split(text + ";")[1] == "":
        assert split(text + ";" + more)[0][: len(complete)] == complete
