"""What a reader of payloads makes of them: rows, of which each declared field can be asked."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

Values: TypeAlias = pa.Array | Sequence[Any]
"""Of a field, one a row, null where it is absent: texts of Arrow, or what stands in JSON."""


@dataclass(frozen=True)
class Rows:
    """One row an event, or one an element of its list. An event that cannot be read has one row, in which every field is absent.

    `values`: of a field. `event_at`: which event a row is of, from 0; `element_at`: its place in the list. Of each event: `is_readable`;
    and `elements`, how many there are: 1 where no list is declared, null where there is none.
    """

    values: Callable[[str], Values]
    event_at: pa.Array
    element_at: pa.Array
    is_readable: pa.Array
    elements: pa.Array


def one_an_event(values: Callable[[str], Values], is_readable: pa.Array) -> Rows:
    """Rows where no list is declared."""
    first, one = (pa.array(np.full(len(is_readable), n, np.int32)) for n in (0, 1))
    return Rows(values, pa.array(np.arange(len(is_readable), dtype=np.int32)), first, is_readable, one)
