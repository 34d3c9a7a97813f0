"""Statements that end in a semicolon, and commands that begin with a backslash: `tidemark sql` for a script; see also shell_prompt."""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from expectations.wording import hint
from orchestration.errors import ConfError
from orchestration.rendering import show, show_error, visible
from orchestration.serving.sql.output import page
from orchestration.serving.sql.session import Session
from orchestration.serving.sql.sql_words import split, statements
from orchestration.utc import from_iso

INTERRUPTED = 130
NEWEST = "newest"
SCREEN_FORMATS = ("table", "csv", "json")
ALIASES = {"exit": "\\q", "quit": "\\q", "\\h": "\\?"}


class QuitError(Exception):
    """Ends the shell; raised by \\q."""


def script(session: Session, lines: Iterable[str]) -> int:
    """Run the statements and commands of a text up to the first error; returns the exit code."""
    rest = ""
    try:
        for line in lines:
            if not rest.strip() and line.startswith("\\"):
                run_command(session, line)
                continue
            complete, rest = split(rest + line)
            for statement in complete:
                session.answer(statement)
        for statement in statements(rest):
            session.answer(statement)
    except QuitError:
        return 0
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except Exception as error:
        return show_error(error)
    return 0


def is_command(text: str) -> bool:
    return text.lstrip().startswith("\\") or text.strip().rstrip(";") in ALIASES


def run_command(session: Session, line: str) -> None:
    """Run one command; ConfError if there is none of that name."""
    name, _, argument = line.strip().rstrip(";").strip().partition(" ")
    name = ALIASES.get(name, name)
    if name not in COMMANDS:
        raise ConfError(f"there is no command {name}; " + hint(name, COMMANDS, "\\? lists them"))
    COMMANDS[name][0](session, argument.strip())


def _list_tables(session: Session, argument: str) -> None:
    tables = session.tables()
    if not argument:
        rows = [(name, *tables.version_and_rows(name)) for name in sorted(tables.views)]
        _show(session, ("table", "version", "rows in files"), rows)
        return
    name = tables.table(argument)
    if name is None:
        raise ConfError(f"there is no table {argument}; " + hint(argument, tables.views, "\\d lists them"))
    _show(session, ("column", "type"), tables.columns(name))


def _show(session: Session, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    cells = [dict(zip(columns, row, strict=True)) for row in rows]
    page(lambda: show(cells, session.format, columns), is_wide=session.format == "table")


def _snapshot(session: Session, argument: str) -> None:
    if argument not in ("", NEWEST) and not argument.isdecimal():
        raise ConfError("\\snapshot takes the id of a snapshot, such as \\snapshot 12, or newest; ops.snapshots lists the ids")
    if argument:
        _select(session, None if argument == NEWEST else int(argument), None)
    else:
        _select(session, session.snapshot_id, session.at)


def _at(session: Session, argument: str) -> None:
    try:
        instant = from_iso(argument)
    except ValueError:
        raise ConfError("\\at takes an instant in UTC, such as \\at 2026-01-05T12:00:00Z; \\snapshot newest undoes it") from None
    _select(session, None, instant.astimezone(UTC))


def _select(session: Session, snapshot_id: int | None, at: datetime | None) -> None:
    """Switch to a snapshot and show it; if it does not exist, keep the current one and raise."""
    before = session.snapshot_id, session.at
    session.snapshot_id, session.at = snapshot_id, at
    try:
        snapshot = session.snapshot()
    except Exception:
        session.snapshot_id, session.at = before
        raise
    suffix = ", the newest" if (snapshot_id, at) == (None, None) else ""
    click.echo("there is no snapshot yet: tables are read as they are" if snapshot is None else f"{snapshot}{suffix}", err=True)
    session.shown_snapshot = None if snapshot is None else snapshot.snapshot_id


def _timing(session: Session, argument: str) -> None:
    session.is_timing = not session.is_timing
    click.echo(f"timing is {'on' if session.is_timing else 'off'}", err=True)


def _format(session: Session, argument: str) -> None:
    if argument not in SCREEN_FORMATS:
        raise ConfError(f"\\format takes one of {', '.join(SCREEN_FORMATS)}; for parquet use \\o answer.parquet")
    session.format = argument


def _output(session: Session, argument: str) -> None:
    session.output = Path(argument).expanduser() if argument else None
    session.format_by_suffix = True
    where = f"to {session.output}, which it replaces" if argument else "to the screen"
    click.echo(visible(f"the next answer goes {where}"), err=True)


def _help(session: Session, argument: str) -> None:
    width = max(len(usage) for _, usage, _ in COMMANDS.values())
    lines = [f"  {usage:<{width}}  {meaning}" for _, usage, meaning in COMMANDS.values()]
    page(lambda: click.echo("\n".join(lines)), is_wide=False)


def _quit(session: Session, argument: str) -> None:
    raise QuitError


COMMANDS: dict[str, tuple[Callable[[Session, str], None], str, str]] = {
    "\\d": (_list_tables, "\\d [TABLE]", "list tables with their versions and rows, or the columns of one table"),
    "\\snapshot": (_snapshot, "\\snapshot [ID|newest]", "query this snapshot, or the newest again; without an id: show the current one"),
    "\\at": (_at, "\\at TIME", "query the newest snapshot at an instant, UTC"),
    "\\format": (_format, "\\format table|csv|json", "how answers are shown"),
    "\\o": (_output, "\\o [FILE]", "write the next answer to a file; .csv, .json and .parquet set the format"),
    "\\timing": (_timing, "\\timing", "turn the display of query times on or off"),
    "\\?": (_help, "\\?", "show this list"),
    "\\q": (_quit, "\\q", "quit, as Ctrl-D does; Ctrl-C cancels a query"),
}
"""Commands by name: function, usage, meaning."""
