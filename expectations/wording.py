"""Parts of sentences about a mistake: values in quotes, and hints at what was meant."""

import difflib
from collections.abc import Iterable
from itertools import islice

MAX_COMPARED = 2_000
"""Names that a misspelt one is compared with; comparing takes about 10 us each, and there may be many devices."""


def quoted(value: object) -> str:
    """A value as part of a sentence: texts in quotes; long ones are cut."""
    whole = int(value) if isinstance(value, float) and value.is_integer() else value
    text = "null" if value is None else str(value).lower() if isinstance(value, bool) else str(whole)
    short = text if len(text) <= 60 else f"{text[:57]}..."
    return f"'{short}'" if isinstance(value, str) else short


def nearest(name: str, names: Iterable[str], likeness: float = 0.6) -> str | None:
    """The one of `names` that `name` was probably meant to be."""
    return next(iter(difflib.get_close_matches(name[:100], list(islice(names, MAX_COMPARED)), n=1, cutoff=likeness)), None)


def hint(name: str, names: Iterable[str], otherwise: str, likeness: float = 0.6) -> str:
    """The nearest of `names`, else another hint."""
    meant = nearest(name, names, likeness)
    return f"did you mean '{meant}'?" if meant else otherwise


def counted(number: int, noun: str) -> str:
    """1 source, 2 sources, 2 batches, 2 entries. All plurals of numbers are made here."""
    stem, ending = (noun[:-1], "ies") if noun.endswith("y") else (noun, "es" if noun.endswith(("ch", "s", "x")) else "s")
    return f"{number:,} {noun if number == 1 else stem + ending}"
