"""Words and statements of a text, by DuckDB's tokenizer. A string, quoted name or comment that is not closed goes on to the end."""

import re
from collections.abc import Iterator
from typing import NamedTuple

import duckdb

NAMES = {"identifier", "keyword"}
SPACES = re.compile(r"[\u00a0\u1680\u180e\u2000-\u200d\u2028\u2029\u202f\u205f\u2060\u3000\ufeff]")
"""DuckDB's parser takes these for spaces, its tokenizer for letters."""


class Word(NamedTuple):
    """A word without the space behind it. `kind`: DuckDB's, such as identifier, string_const or comment; `at`: its first character."""

    kind: str
    text: str
    at: int

    @property
    def name(self) -> str:
        """The name or keyword without its quotes; empty for other words."""
        if self.kind not in NAMES:
            return ""
        quote = self.text[:1]
        return self.text[1:-1].replace(quote * 2, quote) if quote in {'"', "`"} else self.text


def words(text: str) -> Iterator[Word]:
    """All of them, in their order; between them is nothing but space."""
    encoded = SPACES.sub(" ", text).encode("utf-8", "replace")  # each stays one character, also half of a surrogate pair
    tokens = duckdb.tokenize(encoded.decode())
    starts = [start for start, _ in tokens]
    at = len(encoded[: min(starts, default=0)].decode())
    for (start, kind), end in zip(tokens, [*starts[1:], len(encoded)], strict=False):
        part = encoded[start:end].decode("utf-8", "replace")
        yield Word(kind.name, part.strip(), at)
        at += len(part)


def statements(text: str) -> list[str]:
    """Each statement, stripped and without its semicolon; comments alone are no statement."""
    complete, rest = split(text)
    return [*complete, *([rest.strip()] if _has_content(rest) else [])]


def split(text: str) -> tuple[list[str], str]:
    """Statements that end in a semicolon, and the text after the last one, which may be the beginning of another."""
    complete, start = [], 0
    for word in words(text):
        if word.text == ";" and word.kind == "operator":
            statement = text[start : word.at]
            if _has_content(statement):
                complete.append(statement.strip())
            start = word.at + 1
    return complete, text[start:]


def _has_content(text: str) -> bool:
    return any(word.kind != "comment" for word in words(text))
