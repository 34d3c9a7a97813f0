"""A conf that `tidemark up` does not take up, and why: in the journal, and in `up/refused.json` for the list of what is wrong."""

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from orchestration.conf.changes import place_of
from orchestration.conf.load import read_conf
from orchestration.conf.model import Conf
from orchestration.errors import ConfError, TidemarkError
from orchestration.storage.confs import held_back
from orchestration.storage.tables import LakeStore
from orchestration.supervisor.service_state import RefusedConf, refused_conf
from orchestration.utc import to_iso

GOES_ON = "all goes on as before"
MISTAKE = re.compile(r"(?P<file>.+?):(?P<line>\d+): (?P<text>.*)")


class Refusal:
    """The verdict on the conf that is written now, beside the conf that runs."""

    def __init__(self, folder: Path, write: Callable[[str, str], None]) -> None:
        """`write`: writes a line to the journal, with the name of the part."""
        self._folder, self._write = folder, write
        self._sentence = ""

    def read_conf(self, running: Conf) -> Conf | None:
        """Read the conf; None where it has mistakes, of which the first is noted."""
        try:
            return read_conf(self._folder)
        except ConfError as error:
            first = MISTAKE.match(str(error))
            file, line, sentence = (first["file"], int(first["line"]), first["text"]) if first else (str(self._folder), 1, str(error))
            self._refuse(running, file, line, sentence, "check")
            mistakes = str(error).replace("\n", "; ")
            self._write("up", f"conf has changed and has mistakes; {GOES_ON}: {mistakes}")
            return None

    def is_refused(self, conf: Conf, running: Conf) -> bool:
        """Whether the lake cannot go on with a conf; asked again and again, and said once."""
        if conf.lake != running.lake:
            self._tell(running, ("pipeline", "lake"), "conf names another lake now", "down && tidemark up --detach")
            return True
        try:
            held = held_back(LakeStore(conf))
        except TidemarkError:  # a damaged checkpoint: streams say so, and stop
            return False
        if held:
            self._tell(running, held[0].path, "; ".join(one.sentence for one in held), "replay")
        return bool(held)

    def lift(self, running: Conf) -> None:
        """Forget it: the conf that is written is the one that runs."""
        self._sentence = ""
        refused_conf(running.lake).remove()

    def _tell(self, running: Conf, path: tuple[str, ...], sentence: str, command: str) -> None:
        if sentence != self._sentence:
            file, line = place_of(self._folder, path)
            self._refuse(running, str(file), line, sentence, command)
            fix = f"put it back, or use `tidemark {command}`"
            self._write("up", f"conf has changed, and the lake cannot go on with it; {GOES_ON}: {file}:{line}: {sentence}; {fix}")

    def _refuse(self, running: Conf, file: str, line: int, sentence: str, command: str) -> None:
        self._sentence = sentence
        refused = RefusedConf(file, line, sentence, f"tidemark {command}", to_iso(datetime.now(UTC)))
        with suppress(OSError):  # a full disk; the journal has it
            refused_conf(running.lake).write(refused)
