"""The shell on a terminal: multi-line editing, colours, history; Tab completes commands, tables, columns of the tables in the text, SQL."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer

from orchestration.rendering import show_error, visible
from orchestration.serving.sql.completion import KEYWORDS, candidates, starting_with, word_before
from orchestration.serving.sql.session import Session
from orchestration.serving.sql.shell import COMMANDS, SCREEN_FORMATS, QuitError, is_command, run_command
from orchestration.serving.sql.sql_words import split, statements
from orchestration.stores.disk import host_state

PROMPT = "tidemark> "
CONTINUATION = "       -> "


def shell(session: Session) -> int:
    """Read and answer until \\q or Ctrl-D; returns the exit code."""
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


def prompts(session: Session) -> Iterator[str]:
    """Each entry, a command or statements that end in a semicolon, until Ctrl-D. Ctrl-C discards the entry."""
    keys = KeyBindings()

    @keys.add("enter", filter=Condition(lambda: is_complete(get_app().current_buffer.text)))
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    prompt: PromptSession[str] = PromptSession(
        history=FileHistory(str(history_file())),
        lexer=PygmentsLexer.from_filename("query.sql"),
        completer=SqlCompleter(session),
        complete_while_typing=False,
        multiline=True,
        key_bindings=keys,
        prompt_continuation=CONTINUATION,
    )
    while True:
        try:
            text = prompt.prompt(PROMPT)
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        if text.strip():
            yield text


def history_file() -> Path:
    """The file of earlier entries; readable for its owner only, because queries may hold private data."""
    folder = host_state()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = folder / "history"
    os.close(os.open(file, os.O_CREAT | os.O_APPEND, 0o600))
    file.chmod(0o600)
    return file


def is_complete(text: str) -> bool:
    """Whether Enter runs the entry: it is empty, a command, or its last statement ends in a semicolon."""
    if not text.strip() or is_command(text):
        return True
    complete, rest = split(text)
    return bool(complete) and not rest.strip()


class SqlCompleter(Completer):
    def __init__(self, session: Session) -> None:
        self._session = session

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """The likeliest first."""
        before = document.text_before_cursor
        word = word_before(before)
        for text in starting_with(word, self._candidates(document.text, before)):
            yield Completion(text, start_position=-len(word), display=visible(text))

    def _candidates(self, text: str, before: str) -> Iterable[str]:
        line = before.lstrip()
        if line.startswith("\\") and " " not in line:
            return COMMANDS
        if line.startswith("\\format"):
            return SCREEN_FORMATS
        try:
            return candidates(self._session.tables(), text, before)
        except Exception:  # a query over a lake that cannot be read reports why
            return KEYWORDS
