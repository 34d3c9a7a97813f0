"""The prompt of the shell: multi-line editing, colours, history, completion."""

import os
from collections.abc import Iterator
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer

from orchestration.serving.sql.session import Session
from orchestration.serving.sql.shell_completion import SqlCompleter
from orchestration.serving.sql.shell_statements import split

PROMPT = "tidemark> "
CONTINUATION = "       -> "


def prompts(session: Session) -> Iterator[str]:
    """Each entry, a command or statements that end in a semicolon, until Ctrl-D. Ctrl-C discards the entry."""
    prompt: PromptSession[str] = PromptSession(
        history=FileHistory(str(history_file())),
        lexer=PygmentsLexer.from_filename("query.sql"),
        completer=SqlCompleter(session),
        complete_while_typing=False,
        multiline=True,
        key_bindings=_keys(),
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
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    folder = state / "tidemark"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = folder / "history"
    os.close(os.open(file, os.O_CREAT | os.O_APPEND, 0o600))
    file.chmod(0o600)
    return file


def is_complete(text: str) -> bool:
    """Whether Enter runs the entry: it is empty, a command, or its last statement ends in a semicolon."""
    if not text.strip() or text.lstrip().startswith("\\") or text.strip() in {"exit", "quit"}:
        return True
    complete, rest = split(text)
    return bool(complete) and not rest.strip()


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter", filter=Condition(lambda: is_complete(get_app().current_buffer.text)))
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    return keys
