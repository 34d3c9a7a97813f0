"""All mistakes of all files of a conf folder: first how each file is built, then what the files mean together."""

from pathlib import Path
from typing import Any

from orchestration.conf.document import read_document
from orchestration.conf.meaning import Written, check_meaning
from orchestration.conf.mistake import Mistake
from orchestration.conf.structure import check_structure

FILES = ("pipeline", "sources", "metrics", "devices", "groups", "rules")


def checked(folder: Path) -> tuple[dict[str, dict[str, Any]], list[Mistake]]:
    """Settings by file name without its ending (to be used only if there are no mistakes), and mistakes by file and line."""
    if not folder.is_dir():
        return {}, [Mistake(str(folder), 1, "is not a folder; name the conf folder with --conf, or write one with `tidemark init DIR`")]
    mistakes: list[Mistake] = []
    written: dict[str, Written] = {}
    for name in FILES:
        document, unreadable = read_document(folder / f"{name}.yml")
        mistakes += unreadable
        if document is not None:
            sound, malformed = check_structure(name, document)
            mistakes += malformed
            written[name] = Written(document, sound)
    mistakes += check_meaning(folder, written)
    return {name: w.sound for name, w in written.items()}, sorted(set(mistakes))
