"""Commands of the shell, which begin with a backslash."""

from collections.abc import Callable
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

import click

from orchestration.errors import ConfError
from orchestration.rendering import show, visible
from orchestration.serving.sql.shell_screen import shown

if TYPE_CHECKING:
    from orchestration.serving.sql.session import Session

NEWEST = "newest"
SCREEN_FORMATS = ("table", "csv", "json")


class LeaveError(Exception):
    """\\q."""


def command(session: "Session", line: str) -> None:
    """Do what the line says; ConfError for what is no command."""
    name, _, argument = line.rstrip(";").strip().partition(" ")
    name = {"exit": "\\q", "quit": "\\q", "\\h": "\\?"}.get(name, name)
    if name not in COMMANDS:
        nearest = get_close_matches(name, COMMANDS, n=1, cutoff=0.5)
        hint = f"did you mean {nearest[0]}?" if nearest else "\\? lists them"
        raise ConfError(f"there is no command {name}; {hint}")
    COMMANDS[name][0](session, argument.strip())


def _tables(session: "Session", argument: str) -> None:
    if argument:
        _columns(session, argument)
        return
    names = session.names()
    rows = []
    for name in sorted(names.views):
        version, count = names.version_and_rows(name)
        rows.append({"table": name, "version": version, "rows in files": count})
    shown(lambda: show(rows, session.format, ["table", "version", "rows in files"]), is_wide=session.format == "table")


def _columns(session: "Session", argument: str) -> None:
    names = session.names()
    name = names.table(argument)
    if name is None:
        nearest = get_close_matches(argument, names.views, n=1, cutoff=0.5)
        raise ConfError(f"there is no table {argument}" + (f"; did you mean {nearest[0]}?" if nearest else "; \\d lists them"))
    rows = [{"column": column, "type": kind} for column, kind in names.columns(name)]
    shown(lambda: show(rows, session.format, ["column", "type"]), is_wide=session.format == "table")


def _snapshot(session: "Session", argument: str) -> None:
    if argument == NEWEST:
        session.snapshot_id = session.at = None
    elif argument:
        if not argument.isdecimal():
            raise ConfError("\\snapshot takes the id of a snapshot, such as \\snapshot 12, or newest; they are in ops.snapshots")
        _moved(session, int(argument), None)
    _tell(session)


def _at(session: "Session", argument: str) -> None:
    try:
        instant = datetime.fromisoformat(argument)
    except ValueError:
        raise ConfError("\\at takes an instant in UTC, such as \\at 2026-01-05T12:00:00Z; \\snapshot newest leaves it") from None
    _moved(session, None, (instant if instant.tzinfo else instant.replace(tzinfo=UTC)).astimezone(UTC))
    _tell(session)


def _moved(session: "Session", snapshot_id: int | None, at: datetime | None) -> None:
    """To another snapshot, if there is one."""
    before = session.snapshot_id, session.at
    session.snapshot_id, session.at = snapshot_id, at
    try:
        session.snapshot()
    except Exception:
        session.snapshot_id, session.at = before
        raise


def _tell(session: "Session") -> None:
    snapshot = session.snapshot()
    is_newest = (session.snapshot_id, session.at) == (None, None)
    how = ", the newest" if is_newest else ""
    click.echo("there is no snapshot yet: tables are read as they are" if snapshot is None else f"{snapshot}{how}", err=True)
    session.told_snapshot = None if snapshot is None else snapshot.snapshot_id


def _timing(session: "Session", argument: str) -> None:
    session.is_timing = not session.is_timing
    click.echo(f"timing is {'on' if session.is_timing else 'off'}", err=True)


def _format(session: "Session", argument: str) -> None:
    if argument not in SCREEN_FORMATS:
        raise ConfError(f"\\format takes one of {', '.join(SCREEN_FORMATS)}; for parquet say \\o answer.parquet")
    session.format = argument


def _output(session: "Session", argument: str) -> None:
    session.output = Path(argument).expanduser() if argument else None
    session.goes_by_suffix = True
    where = f"to {session.output}, which it replaces" if argument else "to the screen"
    click.echo(visible(f"the next answer goes {where}"), err=True)


def _help(session: "Session", argument: str) -> None:
    width = max(len(usage) for _, usage, _ in COMMANDS.values())
    lines = [f"  {usage:<{width}}  {meaning}" for _, usage, meaning in COMMANDS.values()]
    shown(lambda: click.echo("\n".join(lines)), is_wide=False)


def _leave(session: "Session", argument: str) -> None:
    raise LeaveError


COMMANDS: dict[str, tuple[Callable[["Session", str], None], str, str]] = {
    "\\d": (_tables, "\\d [TABLE]", "tables with their versions and rows, or the columns of one"),
    "\\snapshot": (_snapshot, "\\snapshot [ID|newest]", "ask this snapshot, or the newest again; without an id: which one is asked"),
    "\\at": (_at, "\\at TIME", "ask the newest snapshot at an instant, UTC"),
    "\\format": (_format, "\\format table|csv|json", "how answers are shown"),
    "\\o": (_output, "\\o [FILE]", "write the next answer to a file; one of .csv, .json or .parquet in that format"),
    "\\timing": (_timing, "\\timing", "show how long an answer took, or not"),
    "\\?": (_help, "\\?", "this list"),
    "\\q": (_leave, "\\q", "leave; so does Ctrl-D. Ctrl-C cancels a query"),
}
"""By name: what it does, how it is written, what it is for."""
