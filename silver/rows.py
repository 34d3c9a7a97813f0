"""What a reader of payloads makes of them: rows, of which each declared field can be asked."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

Values: TypeAlias = pa.Array | Sequence[Any]
"""Of a field, one a row, null where it is absent: texts of Arrow, or what stands in JSON."""


@dataclass(frozen=True)
class Rows:
    """One row an event, or one an element of its list. An event that cannot be read has one row, in which every field is absent.

    `is_readable`: of each event. `values`: of a field. Where there are lists, `event_at` says of which event a row is, from 0, `element_at`
    its place in the list, and `elements`, of each event, how many there are, null where there is no list.
    """

    is_readable: pa.Array
    values: Callable[[str], Values]
    event_at: pa.Array | None = None
    element_at: pa.Array | None = None
    elements: pa.Array | None = None
