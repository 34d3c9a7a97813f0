"""The first test of a proposed conf: the first messages of its sample, and what comes of them."""

from pathlib import Path
from typing import Any

import yaml

from orchestration.audit.conf_tests.files import FOLDER, read_tests
from orchestration.audit.conf_tests.update import update_file
from orchestration.conf.model import Conf, Source
from orchestration.conf.platforms import messages_of
from orchestration.conf.sample import lines_of
from orchestration.conf.transport_settings import LandingFolder
from orchestration.errors import ConfError

MOST_LINES, MOST_LETTERS = 12, 10_000


def write_first_test(conf: Conf, sample: Path, topic: str | None) -> Path | None:
    """Write a file of tests, and return its path; None where lines are too long, or too odd, for people to read. `topic`: of messages that
    name none."""
    (source,) = conf.sources.values()
    read = [line for line in lines_of(sample)[0] if line.strip()]
    lines = read[:MOST_LINES]
    while sum(map(len, lines)) > MOST_LETTERS:
        lines.pop()
    if len(lines) < min(2, len(read)) or any(len(line.splitlines()) > 1 for line in lines):
        return None
    test = {"name": f"the first messages of {sample.name} are read so; confirm each", "given": _given(source, sample, lines, topic)}
    path = conf.folder / FOLDER / f"{source.name}.yml"
    path.parent.mkdir(exist_ok=True)
    text = yaml.dump({"tests": [test]}, Dumper=_Block, sort_keys=False, allow_unicode=True, width=10_000)
    path.write_text(f"# yaml-language-server: $schema=../schema/tests.json\n{text}", encoding="utf-8")
    try:
        (file,) = read_tests(conf.folder, [path])
        update_file(conf, file)
    except ConfError:  # a name of a file, or a letter, that no file of conf may have
        path.unlink()
        return None
    return path


def _given(source: Source, sample: Path, lines: list[str], topic: str | None) -> list[dict[str, Any]]:
    if isinstance(source.transport, LandingFolder):
        return [{"file_name": sample.name.removesuffix(".gz"), "payload": "".join(f"{line}\n" for line in lines)}]
    messages = [{"topic": own or topic, "payload": payload} for own, payload in messages_of(lines)]
    if source.payload_format.time.arrival:
        return [{"arrival": f"2026-01-05T12:00:{second:02}Z"} | message for second, message in enumerate(messages)]
    return messages


class _Block(yaml.SafeDumper):
    """Writes texts of several lines as they are."""


_Block.add_representer(
    str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)
)
