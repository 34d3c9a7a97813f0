"""The prompt of the shell: multi-line editing, colours, history; Tab completes commands, tables, columns of the tables in the text, SQL."""

import os
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import duckdb
from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer

from orchestration.rendering import visible
from orchestration.serving.sql.session import Session
from orchestration.serving.sql.shell import COMMANDS, SCREEN_FORMATS, is_command
from orchestration.serving.sql.shell_names import SnapshotTables
from orchestration.serving.sql.sql_words import split, words

PROMPT = "tidemark> "
CONTINUATION = "       -> "
WORD = re.compile(r'[\\\w."?]+$')
PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
BEFORE_TABLE = re.compile(r'(?:\b(?:from|join|table|describe|summarize)|,)\s+[\w."]*$|^\s*\\d\s+\S*$', re.IGNORECASE)
KEYWORDS = """
select distinct from where group by having order by all limit offset with recursive as join left join right join full join cross join asof
join positional join anti join semi join lateral on using union all union by name intersect except exclude replace columns( pivot unpivot
case when then else end and or not in between like ilike is null is not null asc desc nulls first nulls last over partition by qualify
window filter sample describe summarize explain show all tables count(*) sum( avg( min( max( median( quantile_cont( round( date_trunc(
time_bucket( coalesce( cast( try_cast( unnest( list_transform( lambda interval timestamptz date
""".split()  # noqa: SIM905  a list of ninety lines says no more


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
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    folder = state / "tidemark"
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
    """Completes the word before the cursor."""

    def __init__(self, session: Session) -> None:
        """Reads the tables at the first completion."""
        self._session = session

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """The likeliest first."""
        before = document.text_before_cursor
        match = WORD.search(before)
        word = match[0] if match else ""
        for text in dict.fromkeys(self._candidates(document.text, before, word)):
            if text.lower().startswith((word.lower(), word.lower().replace('"', ""))):
                yield Completion(text, start_position=-len(word), display=visible(text))

    def _candidates(self, text: str, before: str, word: str) -> Iterable[str]:
        line = before.lstrip()
        if line.startswith("\\") and " " not in line:
            return COMMANDS
        if line.startswith("\\format"):
            return SCREEN_FORMATS
        try:
            tables = self._session.tables()
            names = [".".join(map(quote_name, name.split(".", 1))) for name in sorted(tables.views)]
            if BEFORE_TABLE.search(before):
                return names
            return [*columns(tables, text, word), *names, *dict.fromkeys(KEYWORDS)]
        except Exception:  # a query over a lake that cannot be read reports why
            return dict.fromkeys(KEYWORDS)


def columns(tables: SnapshotTables, text: str, word: str) -> Iterator[str]:
    """Columns of the tables in the text; with their alias or table name in front if the word has one."""
    qualifier = word.rpartition(".")[0]
    for alias, table in tables_in(tables, text):
        if qualifier and qualifier.lower() not in {alias.lower(), table.lower(), table.split(".", 1)[1].lower()}:
            continue
        for column, _ in tables.columns(table):
            yield f"{qualifier}.{quote_name(column)}" if qualifier else quote_name(column)


def tables_in(tables: SnapshotTables, text: str) -> Iterator[tuple[str, str]]:
    """Alias, or an empty text, and SQL name of each table in the text."""
    listed = [word for word in words(text) if word.kind != "comment"]
    for place, word in enumerate(listed[:-2]):
        table = tables.table(f"{word.name}.{listed[place + 2].name}") if word.name and listed[place + 1].text == "." else None
        if table is not None:
            following = [word.name for word in listed[place + 3 : place + 5] if word.text.lower() != "as"]
            yield (following[0] if following else ""), table


def quote_name(name: str) -> str:
    """The name as SQL needs it, in quotes if it is no plain word, or a word of SQL such as `at`."""
    return name if PLAIN.fullmatch(name) and name.lower() not in _reserved() else '"' + name.replace('"', '""') + '"'


@cache
def _reserved() -> frozenset[str]:
    kinds = "('reserved', 'type_function')"
    with duckdb.connect() as connection:
        return frozenset(word for word, _ in connection.execute(f"from duckdb_keywords() where keyword_category in {kinds}").fetchall())
