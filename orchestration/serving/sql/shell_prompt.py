"""The prompt of the shell: editing over several lines, colours, history, completion."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer

from orchestration.serving.sql.shell_completion import Completion
from orchestration.serving.sql.shell_statements import split

if TYPE_CHECKING:
    from orchestration.serving.sql.session import Session

PROMPT = "tidemark> "
MORE = "       -> "


def prompts(session: "Session") -> Iterator[str]:
    """What is entered, each a command or statements that end in a semicolon, until Ctrl-D. Ctrl-C throws the entry away."""
    prompt: PromptSession[str] = PromptSession(
        history=FileHistory(str(history_file())),
        lexer=PygmentsLexer.from_filename("query.sql"),
        completer=Completion(session),
        complete_while_typing=False,
        multiline=True,
        key_bindings=_keys(),
        prompt_continuation=MORE,
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
    """Where what was entered is kept; for its owner only, as queries may tell what is nobody else's business."""
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    folder = state / "tidemark"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = folder / "history"
    os.close(os.open(file, os.O_CREAT | os.O_APPEND, 0o600))
    file.chmod(0o600)
    return file


def is_complete(text: str) -> bool:
    """Whether Enter answers it: nothing, a command, or statements of which the last has its semicolon."""
    if not text.strip() or text.lstrip().startswith("\\") or text.strip() in {"exit", "quit"}:
        return True
    found, rest = split(text)
    return bool(found) and not rest.strip()


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter", filter=Condition(lambda: is_complete(get_app().current_buffer.text)))
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    return keys
