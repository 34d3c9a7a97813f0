"""`tidemark sql` without a query: a shell for statements that end in a semicolon, and commands that begin with a backslash.

On a terminal it has editing, completion and a history. From a pipe or a file it reads statements and ends at the first error.
"""

import sys
from collections.abc import Iterable

import click

from orchestration.rendering import show_error
from orchestration.serving.sql.session import Session
from orchestration.serving.sql.shell_commands import QuitError, is_command, run_command
from orchestration.serving.sql.shell_words import split, statements

INTERRUPTED = 130


def shell(session: Session) -> int:
    """Read and answer until the end of the input; returns the exit code."""
    if not sys.stdin.isatty():
        return script(session, sys.stdin)
    from orchestration.serving.sql.shell_prompt import prompts

    session.is_terminal = True
    click.echo("\\? lists the commands, \\d the tables; a statement ends with a semicolon, the shell with \\q or Ctrl-D.", err=True)
    for text in prompts(session):
        try:
            if is_command(text):
                run_command(session, text)
            else:
                for statement in statements(text):
                    session.answer(statement)
        except QuitError:
            break
        except KeyboardInterrupt:
            click.echo("cancelled", err=True)
        except Exception as error:
            show_error(error)
    return 0


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
