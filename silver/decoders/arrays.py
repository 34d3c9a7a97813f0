"""`array`: a list on top, whose elements are objects."""

from typing import Any

from silver.decoders.json_text import json_of


def array(content: Any) -> list[Any]:
    """Each element; an object alone is a list of one."""
    value = json_of(content)
    return value if isinstance(value, list) else [value]
