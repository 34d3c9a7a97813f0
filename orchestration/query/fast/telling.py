"""What is wrong with a query, told with its place and the way out."""

from collections.abc import Iterable
from difflib import get_close_matches

from orchestration.serving.sql.refusal import RefusedError, pointed

ASK_SPARK = "ask Spark: leave out --engine fast"


class AmissError(Exception):
    """Something at a place of the query, in characters; told to people by `refusal`."""

    def __init__(self, sentence: str, at: int) -> None:
        """The sentence begins in lower case and has no full stop."""
        super().__init__(sentence)
        self.at = at


def differs(what: str, at: int, instead: str = "") -> AmissError:
    """Right in Spark's SQL perhaps, but not known to mean the same here."""
    remedy = f"{instead}, or {ASK_SPARK}" if instead else ASK_SPARK
    return AmissError(f"the fast engine does not answer {what} as Spark would; {remedy}", at)


def unknown(kind: str, name: str, known: Iterable[str], at: int) -> AmissError:
    """There is none of that name; says which one is nearest."""
    folded = {each.lower(): each for each in known}
    nearest = get_close_matches(name.lower(), folded, n=1, cutoff=0.6)
    hint = f"; did you mean '{folded[nearest[0]]}'?" if nearest else ""
    return AmissError(f"there is no {kind} {name}{hint}", at)


def refusal(sentence: str, query: str, at: int | None) -> RefusedError:
    """Of a whole query, or with the line, the column (from 1) and a caret below the place."""
    return RefusedError(f"{sentence}." if at is None else f"{sentence}.\n{pointed(query, at)}")
