"""Plants that are disturbed: a small conf, files that land one by one, and `tidemark` as real processes in groups of their own."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from orchestration.conf.starter import write_starter
from orchestration.connectors.simulator.landing import Landing, in_order
from orchestration.connectors.simulator.plan import DEFAULT_START, Odds, plan
from orchestration.engine import writing
from orchestration.engine.lake import Lake
from orchestration.storage import retention
from tests.chaos import far_side
from tests.object_store import Store, client_at
from tests.s3_proxy import Proxy
from tests.store_lakes import ENVIRONMENT, move_to_store

TASKS_WRITE = "TIDEMARK_TESTS_TASKS_WRITE"
"""Variable of the environment: the processes of a plant write by Spark what they otherwise write without it."""
ORPHANS_ARE_OLD = "TIDEMARK_TESTS_ORPHANS_ARE_OLD"
"""Variable: a file that no commit names is removed however young it is."""
SHOWS_ITS_THREADS = "import faulthandler, os, signal; faulthandler.register(signal.SIGUSR1, os.dup(2))"
OBEYS = "from tests.chaos.plants import obey; obey()"
TIDEMARK = [sys.executable, "-c", f"{SHOWS_ITS_THREADS}; {OBEYS}; from orchestration.cli.app import main; main()", "--conf"]
SECONDS = 900
"""Longer than any run, also on two slow cores beside another test: one that still goes on hangs."""
ODDS = Odds(late=0.03, duplicate=0.03, malformed=0.02, future=0.01, offline=0.01)
EVENTS_A_FILE = 300
UNREADABLE = b"{" + b" " * 600_000 + b"\n"
"""Ends every file. Two of them are more than a batch may take, so each file is a bronze batch, in every run the same."""

GROUPS = """
groups:
  kitchen:
    metrics: [temperature, humidity, power, door_open]
    stream: plant
    lateness_seconds: 60
    idle_close_seconds: 86400
    vector: {entity: device, features: [temperature, humidity, power, door_open], max_fill_seconds: 3600}
  building:
    metrics: [temperature, vibration, power]
    stream: plant
    lateness_seconds: 60
    idle_close_seconds: 86400
    vector: {entity: group, features: [oven-01.temperature, press-01.vibration, press-01.power], max_fill_seconds: 3600}
"""
FLOWS = """
flows:
  heating: {sessions: {metric: power, gap_seconds: 120}}
  answered: {join: {left: vibration, right: power, from_seconds: -60, until_seconds: 60, by: zone, keep: full, left_when: value > 3}}
  oven_state:
    states:
      metric: power
      initial: idle
      transitions:
        - {from: idle, to: busy, when: value > 1000}
        - {from: busy, to: idle, when: value < 900}
        - {from: busy, to: stuck, after_seconds: 900}
  silent: {silence: {after_seconds: 120}}
  rise: {counter: {metric: power, every_seconds: 300}}
"""
ALERTS = """
alerts:
  hot: {reading: temperature, when: value > 200, recover_when: value < 180, for_seconds: 60}
  shaken: {window: vibration, group: building, when: value > 3}
  few: {count: {metric: power, every_seconds: 300}, when: readings < 5}
"""
DEVICES = """
devices:
  oven-01: {groups: [kitchen, building]}
  fridge-01: {groups: [kitchen, building]}
  press-01: {groups: [building]}
  pump-01: {groups: [building]}
"""


class Plant:
    """A folder with `conf`, `landing` and `lake`."""

    def __init__(self, folder: Path, tidemark: Sequence[str] = TIDEMARK, store: Store | Proxy | None = None) -> None:
        """Make it; nothing has landed. `tidemark`: the command line, up to the conf folder. `store`: has its lake, or is before it."""
        self.folder, self.lake, self._tidemark = folder, folder / "lake", tidemark
        self.proxy = store if isinstance(store, Proxy) else None
        self._environment: dict[str, str] = {}
        write_starter(folder / "conf")
        pipeline = folder / "conf" / "pipeline.yml"
        pipeline.write_text(pipeline.read_text().replace("max_batch_bytes: 268435456", "max_batch_bytes: 1048576"))
        (folder / "conf" / "groups.yml").write_text(GROUPS)
        (folder / "conf" / "devices.yml").write_text(DEVICES)
        (folder / "conf" / "flows.yml").write_text(FLOWS)
        (folder / "conf" / "alerts.yml").write_text(ALERTS)
        for name in ("landing", "lake"):
            (folder / name).mkdir()
        if store is not None:
            client_at(store.endpoint).create_bucket(Bucket=(bucket := f"plant-{uuid4().hex[:8]}"))
            move_to_store(folder / "conf", store.endpoint, bucket)
            os.environ |= ENVIRONMENT

    @classmethod
    def opened_at(cls, folder: Path) -> "Plant":
        """One that was made there, or copied to there."""
        plant = cls.__new__(cls)
        plant.folder, plant.lake, plant._tidemark, plant._environment, plant.proxy = folder, folder / "lake", TIDEMARK, {}, None
        return plant

    def add_sink(self) -> None:
        """Readings to a target that refuses some of them."""
        pipeline = self.folder / "conf" / "pipeline.yml"
        pipeline.write_text(pipeline.read_text().replace("sinks: {}", f"sinks: {json.dumps(far_side.declare(self.folder))}"))

    def let_tasks_write(self, *, all_of_it: bool) -> None:
        """Whether tasks of Spark write rows too that are so few that the process would."""
        self._environment = {TASKS_WRITE: "1"} if all_of_it else {}

    def land(self, files: Sequence[Path]) -> None:
        """Put files of another folder in the landing folder."""
        for file in files:
            os.link(file, self.folder / "landing" / file.name)

    def leave_orphans(self) -> Mapping[str, str]:
        """Data files of writers that died two days ago: no commit names them. Returns variables of the process that is to see them so."""
        two_days_ago = time.time() - 2 * 86_400
        for number in range(2):
            orphan = self.opened().table_path("silver.readings") / f"part-orphan-{number}.parquet"
            orphan.write(b"half")
            if orphan.store.is_disk:
                os.utime(orphan.local, (two_days_ago, two_days_ago))
        return {} if orphan.store.is_disk else {ORPHANS_ARE_OLD: "1"}  # a store tells by itself when an object came

    def opened(self) -> Lake:
        """The lake as the product knows it."""
        return Lake.open(self.folder / "conf")

    @contextmanager
    def running(self, *command: str, **environment: str) -> Iterator["subprocess.Popen[bytes]"]:
        """A process group of its own; what is left of it in the end is killed, and waited for."""
        # What a killed Spark leaves behind goes away with the folder.
        surroundings = os.environ | {"SPARK_LOCAL_DIRS": str(self.folder / "scratch"), "XDG_STATE_HOME": str(self.folder / "state")}
        surroundings |= self._environment | environment
        call = [*self._tidemark, str(self.folder / "conf"), *command]
        with (self.folder / "run.log").open("ab") as log:
            process = subprocess.Popen(call, stdout=subprocess.PIPE, stderr=log, env=surroundings, start_new_session=True)
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()  # the JVM has the same stdout: at its end nobody of the group writes any more

    def exit_code(self, *command: str, **environment: str) -> int:
        """Of a command that nobody disturbs."""
        with self.running(*command, **environment) as process:
            try:
                process.communicate(timeout=SECONDS)
            except subprocess.TimeoutExpired as hangs:
                raise AssertionError(f"{command} hangs\n{threads_of(process)}\n{self.log_end()}") from hangs
            return process.returncode

    def refused(self) -> str:
        """What a run says that may not begin."""
        second = subprocess.run([*self._tidemark, str(self.folder / "conf"), "run", "--once"], capture_output=True, text=True, check=False)
        assert (second.returncode, second.stdout) == (3, ""), second
        return second.stderr

    def log(self) -> str:
        """What its processes said."""
        return (self.folder / "run.log").read_text(errors="replace")

    def log_end(self) -> str:
        return self.log()[-3000:]


def obey() -> None:
    """What a process of a plant does first, before others import the constant."""
    if TASKS_WRITE in os.environ:
        writing.FEW_BYTES = -1
    if ORPHANS_ARE_OLD in os.environ:
        retention.ORPHANED_SECONDS = 0.0


def threads_of(process: "subprocess.Popen[bytes]") -> str:
    """What the JVM of a process group does, as it tells on its stdout; Python tells on stderr. Ends the group."""
    os.kill(process.pid, signal.SIGUSR1)
    for jvm in Path("/proc").glob("[0-9]*/comm"):
        with suppress(OSError):
            pid = int(jvm.parent.name)
            if jvm.read_text() == "java\n" and os.getpgid(pid) == process.pid:
                os.kill(pid, signal.SIGQUIT)
    time.sleep(5)
    os.killpg(process.pid, signal.SIGKILL)
    return process.communicate()[0].decode(errors="replace")


def events(folder: Path, files: int, seed: int) -> list[Path]:
    """Files in order of arrival, with rows that are late, doubled, unreadable and of the future."""
    declared = Plant(folder / "declared").opened().conf
    made = plan(
        declared,
        list(declared.devices.values()),
        events=files * EVENTS_A_FILE,
        seed=seed,
        start=DEFAULT_START,
        interval_seconds=300,
        shape="long",
        odds=ODDS,
    )
    in_order(made, Landing(folder / "events", made), files, lambda _: None)
    landed = sorted((folder / "events").glob("*.jsonl"))
    for n, file in enumerate(landed):
        with file.open("ab") as stream:
            stream.write(UNREADABLE)
        os.utime(file, (1_700_000_000 + n, 1_700_000_000 + n))  # long settled, and in this order
    return landed
