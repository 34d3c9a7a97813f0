"""The state of a shell between two queries; Ctrl-C cancels a running one. `tidemark sql` with a query needs this module only."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from orchestration.errors import TidemarkError
from orchestration.rendering import visible
from orchestration.serving.sql.answer import Answer, Engine, Limits, Question
from orchestration.serving.sql.output import FORMATS, page, require_place, write

if TYPE_CHECKING:
    from orchestration.serving.sql.completion import SnapshotTables
    from orchestration.storage.snapshot import Snapshot
    from orchestration.storage.views import Plant

GRACE_SECONDS = 10.0
"""How long to wait until an engine has ended a query that was cancelled or whose time is over: some functions of DuckDB never look."""


@dataclass
class Session:
    """The state of the shell between statements. `snapshot_id`, `at`: as in a Question.

    `output`: the file of the next answer. Its suffix names the format if `format_by_suffix` is set or `format` is table.
    """

    engine: Engine
    plant: "Plant"
    snapshot_id: int | None = None
    at: datetime | None = None
    format: str = "table"
    is_terminal: bool = False
    is_timing: bool = True
    output: Path | None = None
    format_by_suffix: bool = False
    shown_snapshot: int | None = field(default=None, init=False)
    _tables: "SnapshotTables | None" = field(default=None, init=False)

    def tables(self) -> "SnapshotTables":
        """Tables and columns of the snapshot of the next query, and the marts that a query over marts would read."""
        from orchestration.serving.sql.completion import SnapshotTables
        from orchestration.storage.marts import snapshot_for

        snapshot = self.snapshot()
        try:
            marts_snapshot = snapshot_for(self.plant.lake, "marts.", self.snapshot_id, self.at)
        except TidemarkError:  # there are no marts
            marts_snapshot = None
        if self._tables is None or (self._tables.snapshot, self._tables.marts_snapshot) != (snapshot, marts_snapshot):
            self._tables = SnapshotTables(self.plant, snapshot, marts_snapshot)
        return self._tables

    def snapshot(self) -> "Snapshot | None":
        from orchestration.storage.marts import snapshot_for

        return snapshot_for(self.plant.lake, "", self.snapshot_id, self.at)

    def answer(self, query: str) -> None:
        """Run the query and show its answer. TidemarkError if it fails, KeyboardInterrupt if it was cancelled."""
        require_place(self.format, self.output)
        began = time.monotonic()
        answer = interruptible(lambda: self.engine.ask(Question(query, self.snapshot_id, self.at)), self.engine.cancel)
        seconds = time.monotonic() - began
        snapshot = answer.snapshot
        if snapshot is not None and snapshot.snapshot_id != self.shown_snapshot:
            click.echo(str(snapshot), err=True)
            self.shown_snapshot = snapshot.snapshot_id
        self._show(answer)
        if self.is_terminal and self.is_timing:
            rows = answer.rows.num_rows
            click.echo(f"{rows:,} row{'' if rows == 1 else 's'} in {seconds:.2f} s", err=True)

    def _show(self, answer: Answer) -> None:
        if self.output is None:
            page(lambda: write(answer, self.format), is_wide=self.format == "table")
        else:
            output, self.output = self.output, None
            suffix = output.suffix.removeprefix(".")
            is_by_suffix = suffix in FORMATS and (self.format_by_suffix or self.format == "table")
            write(answer, suffix if is_by_suffix else self.format, output)
            click.echo(visible(f"written to {output}"), err=True)


def interruptible(ask: Callable[[], Answer], cancel: Callable[[], object], seconds: float = Limits().seconds + GRACE_SECONDS) -> Answer:
    """The result of `ask`. Ctrl-C calls `cancel`, waits until the engine has ended the query, and raises KeyboardInterrupt.

    TidemarkError where there is none after so many seconds; the query is left alone then.
    """
    end = time.monotonic() + seconds
    answer: Future[Answer] = Future()

    def work() -> None:
        try:
            answer.set_result(ask())
        except BaseException as error:
            answer.set_exception(error)

    try:
        threading.Thread(target=work, daemon=True).start()
        while not wait([answer], 0.1).done:
            if time.monotonic() > end:
                raise TidemarkError("the query has not ended within its time limit; leave with \\q, which ends it.")
    except KeyboardInterrupt:
        cancel()
        wait([answer], GRACE_SECONDS)
        raise
    return answer.result()
