"""What Tab offers: commands, tables, columns of the tables that the text names, words of SQL."""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from prompt_toolkit.completion import CompleteEvent, Completer
from prompt_toolkit.completion import Completion as Offer
from prompt_toolkit.document import Document

from orchestration.query.fast.tokens import content, tokens
from orchestration.rendering import visible
from orchestration.serving.sql.shell_commands import COMMANDS, SCREEN_FORMATS
from orchestration.serving.sql.shell_names import Names

if TYPE_CHECKING:
    from orchestration.serving.sql.session import Session

WORD = re.compile(r"[\\\w.`?]+$")
PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
TABLE_COMES = re.compile(r"(?:\b(?:from|join|table)|,)\s+[\w.`]*$|^\s*\\d\s+\S*$", re.IGNORECASE)
KEYWORDS = """
select distinct from where group by having order by limit offset with as join left join right join full join cross join on using union all
union intersect except lateral view explode case when then else end and or not in between like is null is not null asc desc nulls first
nulls last over partition by count(*) sum( avg( min( max( round( date_trunc( coalesce( cast( interval timestamp date
""".split()  # noqa: SIM905  a list of sixty lines says no more


class Completion(Completer):
    """Of what stands before the cursor."""

    def __init__(self, session: "Session") -> None:
        """Looks tables up when first asked."""
        self._session = session

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Offer]:
        """In the order in which they are likely."""
        before = document.text_before_cursor
        found = WORD.search(before)
        word = found[0] if found else ""
        for offer in dict.fromkeys(self._offers(document.text, before, word)):
            if offer.lower().startswith(word.lower().replace("`", "")) or offer.lower().startswith(word.lower()):
                yield Offer(offer, start_position=-len(word), display=visible(offer))

    def _offers(self, text: str, before: str, word: str) -> Iterable[str]:
        line = before.lstrip()
        if line.startswith("\\") and " " not in line:
            return COMMANDS
        if line.startswith("\\format"):
            return SCREEN_FORMATS
        try:
            names = self._session.names()
            tables = [".".join(map(quoted, name.split(".", 1))) for name in sorted(names.views)]
            if TABLE_COMES.search(before):
                return tables
            return [*columns(names, text, word), *tables, *dict.fromkeys(KEYWORDS)]
        except Exception:  # a lake that cannot be read is told when it is asked
            return dict.fromkeys(KEYWORDS)


def columns(names: Names, text: str, word: str) -> Iterator[str]:
    """Of the tables that the text names; with the alias or table before them where the word has one."""
    qualifier = word.rpartition(".")[0]
    for alias, table in mentioned(names, text):
        if qualifier and qualifier.lower() not in {alias.lower(), table.lower(), table.split(".", 1)[1].lower()}:
            continue
        for column, _ in names.columns(table):
            yield f"{qualifier}.{quoted(column)}" if qualifier else quoted(column)


def mentioned(names: Names, text: str) -> Iterator[tuple[str, str]]:
    """Alias, or nothing, and SQL name of each table that the text names."""
    words = [token for token in tokens(text) if token.kind not in {"space", "comment"}]
    for place, token in enumerate(words[:-2]):
        if words[place + 1].text == "." and token.kind in {"name", "quoted"} and words[place + 2].kind in {"name", "quoted"}:
            parts = [content(each) if each.kind == "quoted" else each.text for each in (token, words[place + 2])]
            table = names.table(".".join(parts))
            if table is not None:
                behind = [each for each in words[place + 3 : place + 5] if each.word != "as"]
                yield (behind[0].text if behind and behind[0].kind in {"name", "quoted"} else ""), table


def quoted(name: str) -> str:
    """As it has to be written."""
    return name if PLAIN.fullmatch(name) else "`" + name.replace("`", "``") + "`"
