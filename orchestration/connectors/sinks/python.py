"""Rows to a function in Python, one Arrow table a batch: at least once.

    def receive(rows: pyarrow.Table, batch: Batch) -> None: ...

A batch that is repeated has the same `batch.number` and the same rows. An error that the function raises means that the sink is down.
"""

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa

from orchestration.connectors.sinks.sink import Batch, Sink
from orchestration.errors import TidemarkError


class PythonSink(Sink):
    """`function`: module:function. The module is imported when there are rows, also from the folder that the conf folder is in."""

    is_ordered = True

    def __init__(self, folder: Path, function: str) -> None:
        self._folder, self._function = folder, function

    def write(self, batch: Batch, rows: Iterator[pa.Table]) -> bool:
        """One call; none where nothing is new."""
        whole = pa.concat_tables([batch.schema.empty_table(), *rows])
        if len(whole) or batch.is_complete:
            function = self._imported()
            try:
                function(whole, batch)
            except Exception as error:
                raise TidemarkError(f"{self._function} raised {type(error).__name__}.") from error
        return True

    def _imported(self) -> Callable[[pa.Table, Batch], object]:
        module, _, name = self._function.partition(":")
        if (beside := str(self._folder.parent)) not in sys.path:
            sys.path.append(beside)
        try:
            function: Callable[[pa.Table, Batch], object] = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            where = f"in {beside}, or where Python finds modules"
            raise TidemarkError(f"there is no function {self._function}; write it {where}, or correct pipeline.yml.") from None
        return function
