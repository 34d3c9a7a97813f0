"""Patterns of LIKE and regular expressions of Java, as DataFusion's engine understands them."""

import re

from orchestration.query.fast.telling import AmissError, differs

LIKE = re.compile(r"(?:[^\\]|\\[%_\\])*", re.DOTALL)
LINE_END = r"\n\r\u{85}\u{2028}\u{2029}"
PARTS = re.compile(
    r"""
    (?P<plain>[A-Za-z0-9_ \-,:;/@#%&=~!"'<>]|[^\x00-\x7f])
    | (?P<escaped>\\[.\\*+?()\[\]{}|^$/\-])
    | (?P<kind>\\[dDwWsS])
    | (?P<any>\.)
    | (?P<set>\[\^?(?:[A-Za-z0-9_ .,:;/@%=~!"'<>()*+?$]|\\[.\\\[\]\-dws]|[A-Za-z0-9]-[A-Za-z0-9])+\])
    | (?P<group>\((?!\?)|\(\?:|\)|\|)
    | (?P<begin>\^)
    | (?P<end>\$)
    | (?P<repeat>(?:[*+?]|\{[0-9]{1,3}(?:,(?:[0-9]{1,3})?)?\})\??(?![*+?{]))
    """,
    re.VERBOSE,
)
KINDS = {"d": "0-9", "w": "0-9A-Za-z_", "s": r" \t\n\x0B\f\r"}
"""In Java these are of ASCII only."""


def like_pattern(pattern: str, at: int) -> str:
    r"""The same pattern, in which a backslash stands before %, _ or itself; Spark refuses any other."""
    if not LIKE.fullmatch(pattern):
        raise AmissError(r"in a pattern of LIKE a backslash stands before %, _ or \ only", at)
    return pattern


def regular_expression(pattern: str, at: int) -> str:
    """What finds the same in texts."""
    out, place = "", 0
    while place < len(pattern):
        found = PARTS.match(pattern, place)
        if found is None or (found.lastgroup == "end" and found.end() != len(pattern)):
            raise differs(f"the regular expression from {pattern[place : place + 10]!r} on", at, "use LIKE")
        out, place = out + _part(found.lastgroup or "", found[0]), found.end()
    try:
        re.compile(pattern)
    except re.error:
        raise differs(f"the regular expression {pattern!r}", at, "use LIKE") from None
    return out


def _part(kind: str, part: str) -> str:
    match kind:
        case "any":
            return f"[^{LINE_END}]"
        case "end":  # of the text, or before the line end that ends it
            return rf"(?:\r\n|[{LINE_END}])?\z"
        case "begin":
            return r"\A"
        case "kind":
            return f"[{'^' if part[1].isupper() else ''}{KINDS[part[1].lower()]}]"
        case "set":
            return re.sub(r"\\([dws])", lambda found: KINDS[found[1]], part)
        case _:
            return part
