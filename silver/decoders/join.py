"""`join`: one text of several fields, for names that take more than one to tell apart, such as host and interface."""

from typing import Any

from silver.decoders.json_text import object_of


def join(content: Any, into: str, fields: list[str], separator: str = ".") -> list[Any]:
    """The object with the member `into`: its fields, by path, in this order; those that are absent, null or no scalar are left out."""
    members = object_of(content)
    values = [value for path in fields if isinstance(value := _value(members, path), str | int | float)]
    return [{**members, into: separator.join(map(_text, values))}] if values else [members]


def _value(members: Any, path: str) -> Any:
    for name in path.split("."):
        members = members.get(name) if isinstance(members, dict) else None
    return members


def _text(value: str | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
