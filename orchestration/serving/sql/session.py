"""What is between two questions of a person: what to ask, how to show it; and a question that Ctrl-C ends.

`tidemark sql` with a query needs this only, not the shell.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import click

from orchestration.errors import TidemarkError
from orchestration.rendering import visible
from orchestration.serving.sql.answer import Answer, Engine, Question
from orchestration.serving.sql.output import FORMATS, require_place, write
from orchestration.serving.sql.shell_screen import shown

if TYPE_CHECKING:
    from orchestration.conf.model import Conf
    from orchestration.serving.sql.shell_names import Names
    from orchestration.storage.snapshot import Snapshot

GRACE_SECONDS = 10.0
"""For an engine to end a query that was cancelled."""


@dataclass
class Session:
    """What the shell knows between statements. `snapshot_id`, `at`: what to ask, as in a Question.

    `output`: where the next answer goes; in the format that its suffix names, where `goes_by_suffix` or `format` is table.
    """

    engine: Engine
    load: "Callable[[], Conf]"
    snapshot_id: int | None = None
    at: datetime | None = None
    format: str = "table"
    is_terminal: bool = False
    is_timing: bool = True
    output: Path | None = None
    goes_by_suffix: bool = False
    told_snapshot: int | None = field(default=None, init=False)
    _names: "Names | None" = field(default=None, init=False)

    @cached_property
    def conf(self) -> "Conf":
        """Loaded when first needed: a query alone needs none."""
        return self.load()

    def names(self) -> "Names":
        """Tables and columns of the snapshot that would be asked now, and marts of that which a query of marts would ask."""
        from orchestration.serving.sql.shell_names import Names
        from orchestration.storage.marts import snapshot_for

        snapshot = self.snapshot()
        try:
            of_marts = snapshot_for(self.conf.lake, "marts.", self.snapshot_id, self.at)
        except TidemarkError:  # there are none
            of_marts = None
        if self._names is None or (self._names.snapshot, self._names.of_marts) != (snapshot, of_marts):
            self._names = Names(self.conf, snapshot, of_marts)
        return self._names

    def snapshot(self) -> "Snapshot | None":
        """The one that would be asked now."""
        from orchestration.storage.marts import snapshot_for

        return snapshot_for(self.conf.lake, "", self.snapshot_id, self.at)

    def answer(self, query: str) -> None:
        """Ask, and show. TidemarkError where there is no answer; KeyboardInterrupt where it was cancelled."""
        require_place(self.format, self.output)
        began = time.monotonic()
        answer = interruptible(lambda: self.engine.ask(Question(query, self.snapshot_id, self.at)), self.engine.cancel)
        seconds = time.monotonic() - began
        self._tell_snapshot(answer.snapshot)
        self._show(answer)
        if self.is_terminal and self.is_timing:
            rows = answer.rows.num_rows
            click.echo(f"{rows:,} row{'' if rows == 1 else 's'} in {seconds:.2f} s", err=True)

    def _tell_snapshot(self, snapshot: "Snapshot | None") -> None:
        if snapshot is not None and snapshot.snapshot_id != self.told_snapshot:
            click.echo(str(snapshot), err=True)
            self.told_snapshot = snapshot.snapshot_id

    def _show(self, answer: Answer) -> None:
        if self.output is None:
            shown(lambda: write(answer, self.format), is_wide=self.format == "table")
        else:
            output, self.output = self.output, None
            suffix = output.suffix.removeprefix(".")
            is_by_suffix = suffix in FORMATS and (self.goes_by_suffix or self.format == "table")
            write(answer, suffix if is_by_suffix else self.format, output)
            click.echo(visible(f"written to {output}"), err=True)


def interruptible(ask: Callable[[], Answer], cancel: Callable[[], object]) -> Answer:
    """What `ask` gives, while Ctrl-C is heard: it cancels, waits for the engine to let go, and raises KeyboardInterrupt."""
    found: list[Answer] = []
    failed: list[BaseException] = []
    ended = threading.Event()  # Thread.join would take a running thread for ended after an interrupt (CPython 3.11, measured)

    def work() -> None:
        try:
            found.append(ask())
        except BaseException as error:
            failed.append(error)
        finally:
            ended.set()

    try:
        threading.Thread(target=work, daemon=True).start()
        while not ended.wait(0.1):
            pass
    except KeyboardInterrupt:
        cancel()
        ended.wait(GRACE_SECONDS)
        raise
    if failed:
        raise failed[0]
    return found[0]
