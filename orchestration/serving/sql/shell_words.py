"""Words and statements of a text that may be half of a query: where strings, names and comments begin and end, whatever else it says.

Not sqlglot's tokenizer: it ends with an error at a quote that is still open, and a shell reads what is being typed.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

WORDS = re.compile(
    r"""
    (?P<space>\s+)
    | (?P<comment>--(?:\\\n|[^\r\n])*)
    | (?P<bracketed>/\*)
    | (?P<string>[rR](?:'[^']*'|"[^"]*")|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
    | (?P<quoted>`(?:[^`]|``)*`)
    | (?P<unclosed>['"`].*)
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
BRACKET = re.compile(r"/\*|\*/")


class Word(NamedTuple):
    """At its place. `kind`: space, comment, string, name, quoted (in backticks), unclosed, other (one character)."""

    kind: str
    text: str
    at: int

    @property
    def name(self) -> str:
        """What a name says; nothing of other words."""
        return self.text if self.kind == "name" else self.text[1:-1].replace("``", "`") if self.kind == "quoted" else ""


def words(text: str) -> Iterator[Word]:
    """All of them; joined again they are the text. A quote or comment that is not closed goes on to the end."""
    at = 0
    while at < len(text):
        match = WORDS.match(text, at)
        assert match is not None and match.lastgroup is not None  # `other` takes whatever there is
        kind, end = match.lastgroup, match.end()
        if kind == "bracketed":
            kind, end = _comment(text, at)
        yield Word(kind, text[at:end], at)
        at = end


def _comment(text: str, at: int) -> tuple[str, int]:
    """Kind and end of what begins with /* there; such comments nest."""
    depth = 0
    for bracket in BRACKET.finditer(text, at):
        depth += 1 if bracket[0] == "/*" else -1
        if depth == 0:
            return ("other" if text.startswith("/*+", at) else "comment"), bracket.end()
    return "unclosed", len(text)


def statements(text: str) -> list[str]:
    """Each statement, stripped and without its semicolon; comments alone are no statement."""
    complete, rest = split(text)
    return [*complete, *([rest.strip()] if _has_content(rest) else [])]


def split(text: str) -> tuple[list[str], str]:
    """Statements that end in a semicolon, and the text after the last one, which may be the beginning of another."""
    complete, start = [], 0
    for word in words(text):
        if word.kind == "other" and word.text == ";":
            statement = text[start : word.at]
            if _has_content(statement):
                complete.append(statement.strip())
            start = word.at + 1
    return complete, text[start:]


def _has_content(text: str) -> bool:
    return any(word.kind not in {"space", "comment"} for word in words(text))
