"""Patterns of times, as conf writes them: each becomes one regular expression, whose groups are the fields of a time.

The letters are those of Spark: yyyy-MM-dd HH:mm:ss. Nothing here needs Arrow, so `tidemark check` asks the function that silver uses.
"""

import re
from collections.abc import Sequence
from functools import cache

ISO = (
    r"(?P<year>[0-9]{4})-(?:(?P<month>[0-9]{2})-(?P<day>[0-9]{2})|W(?P<week>[0-9]{2})-(?P<weekday>[1-7])|(?P<day_of_year>[0-9]{3}))[ Tt]"
    r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:[.,](?P<fraction>[0-9]+))?)?"
    r"(?: ?(?P<zone>[Zz]|UTC|GMT|[+-][0-9]{2}(?::?[0-9]{2})?))?"
)
"""A day and a minute are required; digits of a fraction beyond the sixth are cut off."""
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
FULL_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
NUMBERS = {"M": "month", "d": "day", "H": "hour", "h": "half", "m": "minute", "s": "second"}
ZONES = {"x": "[+-][0-9]{2}(?:[0-9]{2})?", "xx": "[+-][0-9]{4}", "xxx": "[+-][0-9]{2}:[0-9]{2}"}
ZONES |= {letters.upper(): f"Z|{offset}" for letters, offset in ZONES.items()} | dict.fromkeys(("Z", "ZZ", "ZZZ"), ZONES["xx"])
ZONES |= {"z": r"[+-][0-9]{2}:[0-9]{2}(?::[0-9]{2})?|[A-Za-z]+(?:[/_+-][A-Za-z0-9]+)*"}
GROUPS = {letter: f"(?P<{name}>[0-9]{{1,2}})" for letter, name in NUMBERS.items()}
GROUPS |= {letter * 2: f"(?P<{name}>[0-9]{{2}})" for letter, name in NUMBERS.items()}
GROUPS |= {letters: f"(?P<zone>{zone})" for letters, zone in ZONES.items()}
GROUPS |= {"MMM": f"(?P<name>{'|'.join(MONTHS)})", "MMMM": f"(?P<name>{FULL_MONTHS})", "a": r"(?P<noon>[AP](?:\.?M\.?)?)"}
GROUPS |= {"y": "(?P<year>-?[0-9]{1,4})", "yy": "(?P<short>[0-9]{2})"}
GROUPS |= {"D": "(?P<day_of_year>[0-9]{1,3})", "DDD": "(?P<day_of_year>[0-9]{3})"}
TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|.", re.DOTALL)
BEFORE_FRACTION = re.compile(r".*[.,s]['\[]*", re.DOTALL)
"""The letters before a fraction of a second; elsewhere S is a whole number of its own, such as 5 for 0.005 s by SSS."""
NUMBER, OF_ANY_LENGTH = re.compile(r"MM?|([ydDHhmsS])\1*"), re.compile(r"[yMdDHhms]|SS+")
REMEDY = "write for example yyyy-MM-dd HH:mm:ss, where MM is the month and mm are minutes"
HINTS = {"D": "write dd for the day of the month, DDD for that of the year", "Y": "write yyyy-MM-dd", "T": "write 'T' with its quotes"}


@cache
def time_expression(pattern: str) -> str:
    """The regular expression of Arrow for a pattern, or for `iso`. ValueError says what is wrong, as the second half of a sentence."""
    if pattern == "iso":
        return rf"\A{ISO}\z"
    tokens = [*TOKEN.finditer(pattern)]
    if problem := _problem([token[0] for token in tokens], [token[0] for token in tokens if token[2]]):
        raise ValueError(problem)
    expression = "".join(map(_part, tokens))
    try:
        re.compile(expression)
    except re.error:
        raise ValueError("has a bracket without its partner; close it") from None
    return rf"(?is)\A{expression}\z"


def _part(token: re.Match[str]) -> str:
    if token[2] == "S" and not BEFORE_FRACTION.fullmatch(token.string, 0, token.start()):
        return f"(?P<parts_{len(token[0])}>[0-9]{{1,{len(token[0])}}})"
    if token[2]:
        return _group(token[0])
    literal = token[0] if token[1] is None else token[1].replace("''", "'") or "'"
    return {"[": "(?:", "]": ")?"}.get(token[0]) or re.escape(literal)


def _group(letters: str) -> str:
    of_width = {"y": f"(?P<year>-?[0-9]{{{len(letters)}}})", "S": f"(?P<fraction>[0-9]{{1,{len(letters)}}})"}
    return GROUPS.get(letters) or of_width.get(letters[0], "")


def _problem(tokens: Sequence[str], runs: Sequence[str]) -> str | None:
    """`runs`: the tokens that are letters."""
    letters = "".join(run[0] for run in runs)
    kinds = letters.translate(str.maketrans("hxXZ", "Hzzz"))
    if "'" in tokens:
        return "opens a quote ' that nothing closes; close it"
    if odd := next((run for run in runs if not _group(run)), None):
        return f"has {odd}, which is not read; {HINTS.get(odd[0], 'use y M d D H h m s S a z x X Z, and put other letters into quotes')}"
    if twice := next((at for at, kind in enumerate(kinds) if kind in kinds[:at]), None):
        return f"has {runs[kinds.index(kinds[twice])]} and {runs[twice]}, of which one is enough; {REMEDY}"
    if "D" in letters and set("Md") & set(letters):
        return f"has the day of the year (D) beside M or d; {REMEDY}"
    if missing := [
        name for name, letters_of_field in (("year", "y"), ("month", "MD"), ("day", "dD")) if not set(letters_of_field) & set(letters)
    ]:
        return f"has no {' and no '.join(missing)}; {REMEDY}"
    return _problem_of_digits(tokens)


def _problem_of_digits(tokens: Sequence[str]) -> str | None:
    """Two numbers of any length with nothing but digits between them: 111 by `dM` is 1 November and 11 January."""
    before = None
    for token in tokens:
        if token not in {"[", "]"} and not NUMBER.fullmatch(token):
            before = None
        elif OF_ANY_LENGTH.fullmatch(token):
            if before:
                return f"does not say where {before} ends and {token} begins; write both with a fixed width (dd, not d), or divide them"
            before = token
    return None
