"""A view of the page: its address, and how it is read and shown."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from starlette.datastructures import QueryParams

from orchestration.web.queries import ViewRequest

LONGEST_ADDRESS, MOST_VALUES = 16_000, 20
"""Characters of the parameters of a view, as a metric may have a name of hundreds; and values of one parameter."""
SPAN = ("span", "from", "to")


@dataclass(frozen=True)
class View:
    """`template`: of its live part. `is_of_snapshot`: only a new snapshot changes it. `ages`: it changes with time alone.

    `asks`: it waits for queries, as do those of a snapshot. `params`: the parameters that it reads; its address has no others.
    """

    path: str
    title: str
    template: str
    read: Callable[[ViewRequest], Any]
    is_of_snapshot: bool = False
    ages: bool = False
    asks: bool = False
    is_in_menu: bool = True
    params: tuple[str, ...] = ()

    def params_text(self, parameters: QueryParams) -> str:
        """Return the parameters as an address has them; none if they are too long."""
        written = urlencode([(name, value) for name in self.params for value in parameters.getlist(name)[:MOST_VALUES] if value])
        return written if len(written) <= LONGEST_ADDRESS else ""
