"""What a soak does to a plant that runs. Each kind asserts that `up` says what has happened, and mends what does not mend itself."""

import json
import os
import random
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

import psutil

from orchestration.location import Location
from orchestration.service.process import session_of
from orchestration.storage.seals import Seal, number
from tests.services import rows, tidemark
from tests.soak.watch import Watch, lives

MB = 1024**2
STILL_SECONDS = 15.0
"""A part that was stopped for good stays so; one that is tried again begins within the first seconds."""
ANY = -1


@dataclass(frozen=True)
class Kind:
    """`seconds`: what it takes at least; it is left out where less is left. `restarts`: of parts while it lasts, ANY where it depends."""

    name: str
    disturb: Callable[[Watch, random.Random], None]
    seconds: float = 20.0
    restarts: Mapping[str, int] = field(default_factory=dict)


def order(draw: random.Random, *, has_own_disk: bool) -> Iterator[Kind]:
    """All kinds by turns, each turn in an order of its own; without a disk of the lake's own none that fills it."""
    kinds = [kind for kind in KINDS if has_own_disk or kind.name != "full disk"]
    while True:
        yield from draw.sample(kinds, len(kinds))


def _kill(part: str, watch: Watch, _: random.Random) -> None:
    watch.kill(part)
    watch.lists(part, "running", "it ended by SIGKILL")


def _kill_jvm(watch: Watch, _: random.Random) -> None:
    """What Python says then is an error of its own: which one, depends on what it was about."""
    jvm, before = watch.jvm(), [*session_of(watch.pid("streams"))]
    jvm.kill()
    watch.hears("streams: waiting: ")
    watch.hears("streams: running")
    assert not {process.pid for process in before} & {process.pid for process in watch.processes()}


def _kill_up(watch: Watch, draw: random.Random) -> None:
    """Its parts end by themselves; half of the time one of them cannot, and the next `up` ends it."""
    if draw.random() < 0.5:
        os.kill(watch.pid(draw.choice(["streams", "collector", "page"])), signal.SIGSTOP)
    watch.takes_over()


def _stop_sink(watch: Watch, _: random.Random) -> None:
    watch.plant.database.kill()
    watch.shows("^sink warehouse is down: .*the Postgres server was not reached, or the connection broke")
    (row,) = rows(watch.plant.conf_folder, "sinks")
    assert row["down_since"] is not None, row
    watch.plant.database.start()


def _hang_source(watch: Watch, _: random.Random) -> None:
    """The store is stopped: it takes connections and never answers."""
    store = watch.plant.store.process
    assert store is not None
    os.kill(store.pid, signal.SIGSTOP)
    try:
        watch.shows("^source bucket is down: .*(cannot read bucket|has not answered)")
        down = {row["source"]: row["state"] for row in rows(watch.plant.conf_folder, "status", "sources")}
        assert down == {"plant": "up", "web": "up", "bucket": "down"}, down
    finally:
        os.kill(store.pid, signal.SIGCONT)


def _hang_streams(watch: Watch, draw: random.Random) -> None:
    """Python or its JVM is stopped, and continued when `up` has said that the streams hang."""
    stopped = psutil.Process(watch.pid("streams")) if draw.random() < 0.5 else watch.jvm()
    stopped.suspend()
    try:
        watch.hears("streams: hangs: it has said nothing for ")
        watch.lists("streams", "hangs", "it has said nothing for ")
        watch.shows("^streams hangs: it has said nothing for ")
    finally:
        stopped.resume()
    watch.hears("streams: running")


def _hang_streams_for_ever(watch: Watch, draw: random.Random) -> None:
    stopped = psutil.Process(watch.pid("streams")) if draw.random() < 0.5 else watch.jvm()
    stopped.suspend()
    watch.hears("streams: hangs: it has said nothing for ")
    watch.hears("streams: waiting: it said nothing for ", seconds=400.0)
    watch.hears("streams: running")
    watch.lists("streams", "running", "it said nothing for ")


def _fill_disk(watch: Watch, draw: random.Random) -> None:
    """Nothing is left, or so little that nothing is started: then a part that is killed waits."""
    disk, is_full = watch.plant.disk, draw.random() < 0.5
    disk.leave(0 if is_full else 32 * MB)
    part = "streams" if is_full else "collector"
    try:
        if not is_full:
            watch.up.kill(part)
        watch.shows(f"^{part} is waiting: the disk of the lake is full; it starts when there is room")
        watch.lists(part, "waiting", "the disk of the lake is full")
        doctor = json.loads(tidemark(watch.plant.conf_folder, "doctor", "--format", "json").stdout)
        verdicts = {finding["what"]: finding["verdict"] for finding in doctor}
        assert (verdicts["lake disk"], verdicts[f"part {part}"]) == ("bad", "warning"), doctor
    finally:
        disk.restore()
    watch.hears(f"{part}: running")


KINDS = (
    *(Kind(f"{part} killed", partial(_kill, part), restarts={part: 1}) for part in ("streams", "collector", "page")),
    Kind("JVM killed", _kill_jvm, restarts={"streams": 1}),
    Kind("up killed", _kill_up, seconds=40.0),
    Kind("sink down", _stop_sink),
    Kind("source hangs", _hang_source, seconds=200.0),
    Kind("streams hang", _hang_streams, seconds=60.0),
    Kind("streams hang for ever", _hang_streams_for_ever, seconds=300.0, restarts={"streams": 1}),
    Kind("full disk", _fill_disk, seconds=60.0, restarts={"streams": ANY, "collector": ANY}),
)


def damage_checkpoint(watch: Watch, *, by_replay: bool) -> None:
    """Half of a file of offsets is gone when the streams start again: they are stopped for good, and go on when it is mended.

    `by_replay`: by `tidemark replay`, as the message says; otherwise the file is restored, as it says too.
    """
    seal = Seal(Location(watch.plant.lake / "checkpoints" / "silver.readings"))
    file = max((seal.folder / name for name in seal.marks if name.startswith("offsets/")), key=lambda file: number(file.name))
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])
    watch.up.kill("streams")
    message = "the checkpoint of silver.readings is damaged: "
    watch.hears(f"streams: stopped: {message}")
    watch.shows(f"^streams is stopped: {message}")
    watch.lists("streams", "stopped", message)
    before = watch.part("streams")
    time.sleep(STILL_SECONDS)
    assert watch.part("streams") == before
    assert "Restore the checkpoint, or run `tidemark replay`" in str(before.reason)
    assert "Once that is mended, save a file of the conf" in str(before.reason)
    if by_replay:
        replay = tidemark(watch.plant.conf_folder, "replay", "--yes")
        assert replay.returncode == 0, replay.stderr
    else:
        file.write_bytes(content)
    (watch.plant.conf_folder / "rules.yml").touch()
    watch.hears("streams: running")


def end(watch: Watch) -> None:
    """By `tidemark down`: exit code 0, and no process is left."""
    before = watch.processes()
    assert before
    down = tidemark(watch.plant.conf_folder, "down")
    assert (down.returncode, watch.up.process.wait()) == (0, 0), (down.stderr, watch.up.said[-2000:])
    assert not [process for process in before if lives(process)]
