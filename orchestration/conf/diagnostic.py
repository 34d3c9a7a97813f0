"""A mistake in conf: one line for people, with file, line, setting, value and a hint."""

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Diagnostic:
    """`file` as the user gave it; `line` from 1. `is_warning`: the conf can be used all the same."""

    file: str
    line: int
    text: str
    is_warning: bool = False

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {'warning: ' if self.is_warning else ''}{printable(self.text)}"


def printable(text: str) -> str:
    """One line without control characters: what a conf says may come from anywhere, and ends on a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
