"""One look after the other at the words of a query, and what is common to all that reads them."""

from collections.abc import Callable

from orchestration.query.fast.syntax import Query
from orchestration.query.fast.telling import ASK_SPARK, AmissError
from orchestration.query.fast.tokens import Token, content, meaningful

RESERVED = frozenset(
    """
    all and anti any as asc between by case cast cluster cross desc distinct distribute div else end escape except exists extract false
    fetch filter for from full group having ilike in inner intersect interval into is join lateral left like limit minus natural not null
    offset on or order over partition pivot qualify regexp right rlike rows select semi set some sort table tablesample then true union
    unpivot using values when where window with
    """.split()  # noqa: SIM905  a list of seventy lines says no more
)
"""Not names unless in backticks. Spark is more lenient; that some of them stand for names there would make a query mean something else."""


class Reader:
    """The words of a query from a place on. `read_query` reads a query in parentheses."""

    def __init__(self, text: str, read_query: "Callable[[Reader], Query]") -> None:
        """At the first word."""
        self.words = meaningful(text)
        self.place = 0
        self.read_query = read_query

    @property
    def next(self) -> Token:
        """The word that comes."""
        return self.words[self.place]

    def after(self, count: int = 1) -> Token:
        """The word that comes after that."""
        return self.words[min(self.place + count, len(self.words) - 1)]

    def move(self) -> Token:
        """Go over it."""
        token = self.next
        self.place += token.kind != "end"
        return token

    def comes(self, *phrase: str) -> bool:
        """Whether these words come."""
        return all(self.after(count).word == word for count, word in enumerate(phrase))

    def take(self, *phrase: str) -> bool:
        """Go over these words if they come."""
        found = self.comes(*phrase)
        self.place += len(phrase) if found else 0
        return found

    def need(self, *phrase: str) -> None:
        """Go over these words, which must come."""
        if not self.take(*phrase):
            raise self.lost(f"{' '.join(phrase)!r} was expected")

    def name(self) -> str:
        """A name, which must come."""
        if not self.is_name():
            raise self.lost("a name was expected")
        token = self.move()
        return content(token) if token.kind == "quoted" else token.text

    def is_name(self) -> bool:
        """Whether a name comes."""
        return self.next.kind == "quoted" or (self.next.kind == "name" and self.next.word not in RESERVED)

    def string(self) -> str:
        """What a string says, which must come."""
        if self.next.kind not in {"string", "raw"}:
            raise self.lost("a string was expected")
        token = self.move()
        try:
            return content(token)
        except ValueError:
            raise AmissError("an escape in this string stands for no character", token.at) from None

    def number(self) -> int:
        """A whole number, which must come."""
        if not self.next.text.isascii() or not self.next.text.isdigit():
            raise self.lost("a whole number was expected")
        return int(self.move().text)

    def lost(self, reason: str = "") -> AmissError:
        """What comes is not understood."""
        token = self.next
        match token.kind:
            case "end":
                what = "the query ends here"
            case "unclosed":
                what = "what begins here is not closed"
            case _:
                what = f"{token.text[:40]!r} is not understood here"
        because = f", {reason}" if reason else ""
        return AmissError(f"{what}{because}; if Spark understands it, {ASK_SPARK}", token.at)
