"""`by_key`: an object whose keys are names, such as {"t1": {"v": 21.5}, "t2": {"v": 22}}, becomes an object a name with `key`."""

import re
from typing import Any

from silver.decoders.json_text import check_spread, object_of


def by_key(content: Any, match: str | None = None) -> list[Any]:
    """An object for each key with `key` and the members of its value, or `value` where that is no object.

    `match`: a regular expression; only keys that it fits in whole are names, and the other members stay beside each.
    """
    members = object_of(content)
    names = {key: None for key in members if match is None or re.fullmatch(match, key)}
    others = {key: value for key, value in members.items() if key not in names}
    check_spread(len(names), others)
    return [{**others, **_members(members[name]), "key": name} for name in names] or [others]


def _members(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {"value": value}
