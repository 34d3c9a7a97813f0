"""A mistake in conf: one line for people, that says where, what and the way out."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

MAX_COMPARED = 2_000
"""Names that a misspelt one is compared with; comparing takes about 10 us each, and there may be many devices."""


@dataclass(frozen=True, order=True)
class Mistake:
    """`file` as the user gave it; `line` from 1."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {printable(self.text)}"


def printable(text: str) -> str:
    """One line without control characters: what a conf says may come from anywhere, and ends on a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def shown(value: object) -> str:
    """A value as part of a sentence: texts in quotes; long ones are cut."""
    text = "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    short = text if len(text) <= 60 else f"{text[:57]}..."
    return f"'{short}'" if isinstance(value, str) else short


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` was probably meant to be."""
    return next(iter(difflib.get_close_matches(name[:100], list(islice(known, MAX_COMPARED)), n=1, cutoff=0.6)), None)


def way_out(name: str, known: Iterable[str], otherwise: str) -> str:
    """The nearest known name, else another way out."""
    meant = nearest(name, known)
    return f"did you mean '{meant}'?" if meant else otherwise
