"""Words of a query in Spark's SQL: strings, names, numbers, signs, and where each begins.

Strings are '..' and ".." with backslash escapes or doubled quotes, names may stand in backticks, comments are `--` to the end of the line
(a backslash before it goes on with the next one) and /* */, which nest.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

WORDS = re.compile(
    r"""
    (?P<space>\s+)
    | (?P<comment>--(?:\\\n|[^\r\n])*)
    | (?P<bracketed>/\*)
    | (?P<raw>[rR](?:'[^']*'|"[^"]*"))
    | (?P<string>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
    | (?P<quoted>`(?:[^`]|``)*`)
    | (?P<unclosed>['"`].*)
    | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?:BD|[LDbdl])?(?![A-Za-z0-9_]))
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<sign><=>|<>|!=|==|<=|>=|\|\||::|[-+*/%=<>(),.;!\[\]])
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
BRACKET = re.compile(r"/\*|\*/")
ESCAPE = re.compile(r"\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})|\\([0-3][0-7]{2})|\\(.)", re.DOTALL)
SHORT = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}


@dataclass(frozen=True)
class Token:
    """A word at its place. `kind`: space, comment, hint, string, raw, quoted, unclosed, number, name, sign, other; end behind the last."""

    kind: str
    text: str
    at: int

    @property
    def word(self) -> str:
        """A name or sign as the grammar knows it; of anything else nothing."""
        return self.text.lower() if self.kind in {"name", "sign"} else ""


def tokens(text: str) -> Iterator[Token]:
    """All of them; joined again they are the text, whatever it is. A quote or comment that is not closed goes on to the end."""
    at = 0
    while at < len(text):
        found = WORDS.match(text, at)
        assert found is not None and found.lastgroup is not None  # `other` takes whatever there is
        kind, end = found.lastgroup, found.end()
        if kind == "bracketed":
            kind, end = _comment(text, at)
        yield Token(kind, text[at:end], at)
        at = end


def meaningful(text: str) -> list[Token]:
    """Without spaces and comments, and with an end."""
    return [token for token in tokens(text) if token.kind not in {"space", "comment"}] + [Token("end", "", len(text))]


def content(token: Token) -> str:
    """What a string says, or the name in backticks; ValueError for an escape that stands for no character."""
    if token.kind == "quoted":
        return token.text[1:-1].replace("``", "`")
    if token.kind == "raw":
        return token.text[2:-1]
    quote, inside = token.text[0], token.text[1:-1]
    # Doubled quotes are taken first, so that a backslash before one keeps its meaning.
    parts = re.findall(rf"(?:[^{quote}\\]|\\.)+|{quote}{quote}", inside, re.DOTALL)
    text = "".join(quote if part == quote * 2 else ESCAPE.sub(_unescaped, part) for part in parts)
    return text.encode("utf-16", "surrogatepass").decode("utf-16")  # two halves of a character become one


def _unescaped(escape: re.Match[str]) -> str:
    code = escape[1] or escape[2]
    if code:
        return chr(int(code, 16))
    if escape[3]:
        return chr(int(escape[3], 8))
    return SHORT.get(escape[4], escape[4])


def _comment(text: str, at: int) -> tuple[str, int]:
    """Kind and end of what begins with /* there."""
    depth = 0
    for bracket in BRACKET.finditer(text, at):
        depth += 1 if bracket[0] == "/*" else -1
        if depth == 0:
            return "hint" if text.startswith("/*+", at) else "comment", bracket.end()
    return "unclosed", len(text)
