"""`lines`: several documents in one message, one a line."""

from typing import Any

from silver.decoders.json_text import text_of


def lines(content: Any) -> list[Any]:
    """Each line that is not blank; a carriage return before a line feed belongs to the line end."""
    return [line for line in text_of(content).split("\n") if line.strip()]
