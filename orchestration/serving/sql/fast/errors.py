"""What is wrong with a query: a sentence, its place, and the hint."""

from collections.abc import Iterable
from difflib import get_close_matches

from sqlglot import exp

from orchestration.serving.sql.refusal import RefusedError, pointed

ASK_SPARK = "ask Spark: leave out --engine fast"
TOO_LARGE = "the query is too large: split it"


class SqlError(Exception):
    """Something at a place of the query, in characters; `refusal` words it for people."""

    def __init__(self, sentence: str, node: exp.Expr | None = None, at: int | None = None) -> None:
        """The sentence begins in lower case and has no full stop. sqlglot knows places of names, literals and functions."""
        super().__init__(sentence)
        starts = [part.meta["start"] for part in node.walk() if "start" in part.meta] if node is not None else []
        self.at = min(starts, default=at)


def unsupported(what: str, node: exp.Expr | None, instead: str = "", at: int | None = None) -> SqlError:
    """Right in Spark's SQL perhaps, but not known to mean the same here."""
    remedy = f"{instead}, or {ASK_SPARK}" if instead else ASK_SPARK
    return SqlError(f"the fast engine does not answer {what} as Spark would; {remedy}", node, at)


def unknown(kind: str, name: str, names: Iterable[str], node: exp.Expr | None) -> SqlError:
    """There is none of that name; says which one is nearest."""
    folded = {each.lower(): each for each in names}
    nearest = get_close_matches(name.lower(), folded, n=1, cutoff=0.6)
    hint = f"; did you mean '{folded[nearest[0]]}'?" if nearest else ""
    return SqlError(f"there is no {kind} {name}{hint}", node)


def refusal(sentence: str, query: str, at: int | None = None) -> RefusedError:
    """Of a whole query, or with the line, the column (from 1) and a caret below the place."""
    ended = sentence if sentence.endswith("?") else f"{sentence}."
    return RefusedError(ended if at is None else f"{ended}\n{pointed(query, at)}")
