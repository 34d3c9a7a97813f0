"""The shell that `tidemark sql` is without a query: statements that end in a semicolon, and commands that begin with a backslash.

From a terminal it edits, completes and remembers; from a pipe or a file it reads statements, prints answers and ends at the first error.
"""

import sys
from collections.abc import Iterable

import click

from orchestration.cli.app import told
from orchestration.serving.sql.session import Session
from orchestration.serving.sql.shell_commands import LeaveError, command
from orchestration.serving.sql.shell_statements import split, statements

INTERRUPTED = 130


def shell(session: Session) -> int:
    """Read and answer until the end; the exit code."""
    if not sys.stdin.isatty():
        return script(session, sys.stdin)
    from orchestration.serving.sql.shell_prompt import prompts

    session.is_terminal = True
    click.echo("\\? lists the commands, \\d the tables; a statement ends with a semicolon, the shell with \\q or Ctrl-D.", err=True)
    for text in prompts(session):
        try:
            _do(session, text)
        except LeaveError:
            break
        except KeyboardInterrupt:
            click.echo("cancelled", err=True)
        except Exception as error:
            told(error)
    return 0


def script(session: Session, lines: Iterable[str]) -> int:
    """Statements and commands of a text, up to the first error; the exit code."""
    rest = ""
    try:
        for line in lines:
            if not rest.strip() and line.startswith("\\"):
                command(session, line.strip())
                continue
            found, rest = split(rest + line)
            for statement in found:
                session.answer(statement)
        for statement in statements(rest):
            session.answer(statement)
    except LeaveError:
        return 0
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except Exception as error:
        return told(error)
    return 0


def _do(session: Session, text: str) -> None:
    if text.lstrip().startswith("\\") or text.strip().rstrip(";") in {"exit", "quit"}:
        command(session, text.strip())
        return
    for statement in statements(text):
        session.answer(statement)
