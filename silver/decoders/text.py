"""`text`: the payload is the value itself, such as 21.5 or ON."""

from typing import Any

from silver.decoders.json_text import text_of


def text(content: Any) -> list[Any]:
    """`21.5` is {"value": "21.5"}."""
    return [{"value": text_of(content).strip()}]
