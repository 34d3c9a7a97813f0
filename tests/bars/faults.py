"""The faults that a plant is put to, one a line: how each begins and ends, and the problem that it has to be."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import yaml

from orchestration.location import Location
from orchestration.storage.delta import path_of, rows_of
from tests.bars.plant import Plant
from tests.services import tidemark
from tests.waiting import until

Step = Callable[[Plant], object]
GIB = 1024**3


@dataclass(frozen=True)
class Fault:
    """`subject`, `sentence`: of the problem, the latter as a pattern. `end`: what whoever repairs it does; `is_command`: and then types the
    command that the problem names. `seconds`: until it is one, such as a silence of three pauses. `lasts`: beyond its end, see test_bars.
    """

    name: str
    subject: str
    sentence: str
    begin: Step
    end: Step
    is_command: bool = False
    seconds: float = 0.0
    lasts: bool = False


def _move_away(plant: Plant) -> None:
    (plant.folder / "lost").rename(plant.folder / "lost_gone")


def _move_back(plant: Plant) -> None:
    (plant.folder / "lost_gone").rename(plant.folder / "lost")


def _kill_broker(plant: Plant) -> None:
    plant.is_asleep.add("fleet")
    plant.broker.kill()


def _start_broker(plant: Plant) -> None:
    plant.broker.start()
    plant.is_asleep.discard("fleet")


def _remove_bucket(plant: Plant) -> None:
    plant.is_asleep.add("bucket")
    client = plant.store.client
    plant.store.delete(plant.bucket, [entry["Key"] for entry in client.list_objects_v2(Bucket=plant.bucket)["Contents"]])
    client.delete_bucket(Bucket=plant.bucket)


def _make_bucket(plant: Plant) -> None:
    plant.store.client.create_bucket(Bucket=plant.bucket)
    plant.is_asleep.discard("bucket")


def _silence(*devices: str) -> Step:
    return lambda plant: plant.devices.silent.update(devices)


def _wake(*devices: str) -> Step:
    return lambda plant: plant.devices.silent.difference_update(devices)


def _shift(device: str, by: timedelta) -> Step:
    return lambda plant: plant.devices.shift.update({device: by})


def _rename(name: str, to: str) -> Step:
    return lambda plant: plant.devices.names.update({name: to})


def _stick(plant: Plant) -> None:
    plant.devices.is_stuck = True


def _loosen(plant: Plant) -> None:
    plant.devices.is_stuck = False


def _answer(receiver: str, status: int | None) -> Step:
    """From now on; None: as it should."""

    def answer(plant: Plant) -> None:
        getattr(plant, receiver).answers[:] = [] if status is None else [status] * 10_000

    return answer


def change(plant: Plant, file: str, edit: Callable[[dict[str, Any]], object]) -> None:
    path = plant.conf / f"{file}.yml"
    content = yaml.safe_load(path.read_text())
    edit(content)
    path.write_text(yaml.safe_dump(content, sort_keys=False))


def _set(file: str, name: str, **settings: object) -> Step:
    """Write settings of one object of a file of conf."""
    return lambda plant: change(plant, file, lambda content: content[file][name].update(settings))


def _replay(plant: Plant) -> None:
    _succeeds(plant, 0, "replay", "--yes")


def _spike(plant: Plant) -> None:
    plant.devices.spike = SPIKE


def _find_spike(plant: Plant) -> None:
    """The suites are checked by the clock, or by hand."""
    readings = path_of(Location(plant.folder / "lake"), "silver.readings")
    until(lambda: bool(rows_of(readings, ["value"], [("value", "=", SPIKE)])), lambda: "silver has no spike", 0.5)
    _succeeds(plant, 1, "quality", "--report", str(plant.folder / "quality.html"))


def _find_no_spike(plant: Plant) -> None:
    """Among what came since."""
    _succeeds(plant, 0, "quality", "--report", str(plant.folder / "quality.html"))


def _succeeds(plant: Plant, code: int, *command: str) -> None:
    ended = tidemark(plant.conf, *command)
    assert ended.returncode == code, ended.stdout + ended.stderr


def _fill_disk(plant: Plant) -> None:
    plant.disk.leave(GIB)


def _empty_disk(plant: Plant) -> None:
    plant.disk.restore()


def _all(*steps: Step) -> Step:
    return lambda plant: [step(plant) for step in steps]


def _nothing(_: Plant) -> None:
    pass


SILENCE_SECONDS = 20.0
SPIKE = 999.0
TEN_MINUTES, TWO_DAYS, ON_TIME = timedelta(minutes=10), timedelta(days=-2), timedelta()
REACHED = (
    Fault("folder gone", "source lost", "is down: the folder .* is gone", _move_away, _move_back),
    Fault("broker gone", "source fleet", "is down: .*brokers", _kill_broker, _start_broker),
    Fault("bucket gone", "source bucket", "is down: .*no bucket of that name", _remove_bucket, _make_bucket),
    Fault("sink down", "sink warehouse", "is down: .*answered 503", _answer("warehouse", 503), _answer("warehouse", None)),
    Fault(
        "channel down",
        "channel pager",
        "is down: .*answered 503",
        _all(_answer("pager", 503), _silence("press-1")),  # else there is nothing to tell
        _all(_answer("pager", None), _wake("press-1")),
        seconds=SILENCE_SECONDS,
    ),
)
DEVICES = (
    Fault("device silent", "device press-2", "is silent", _silence("press-2"), _wake("press-2"), seconds=SILENCE_SECONDS),
    Fault(
        "source silent",
        "source web",
        "all 2 of its devices are silent",
        _silence("web-1", "web-2"),
        _wake("web-1", "web-2"),
        seconds=30.0,
    ),
    Fault("sensor stuck", "metric temperature of probe", "is stuck: 21.5", _stick, _loosen, seconds=15.0),
    Fault("clock ahead", "device press-3", "clock .* is ahead by", _shift("press-3", TEN_MINUTES), _shift("press-3", ON_TIME)),
    Fault("device undeclared", "device PMP-11", "is not in devices.yml", _wake("PMP-11"), _silence("PMP-11"), lasts=True),
    Fault("all late", "source archive", "are late: .*lateness_seconds is", _shift("tape", TWO_DAYS), _shift("tape", ON_TIME)),
    Fault(
        "field vanished",
        "source line",
        "metric humidity .*new fields: hum",
        _rename("humidity", "hum"),
        _rename("humidity", "h"),
    ),
    Fault(
        "unit vanished",
        "source units",
        "the unit .*new fields: einheit",
        _rename("unit", "einheit"),
        _rename("unit", "unit"),
    ),
)
REFUSED = Fault(
    "conf refused",
    "conf",
    "is not taken up.*metrics.yml:5: .*whole number",
    _set("metrics", "temperature", step_seconds="soon"),
    _set("metrics", "temperature", step_seconds=60),
)
HELD_BACK = Fault(
    "conf held back",
    "conf",
    "is not taken up.*metrics.yml:5: the window of temperature",
    _set("metrics", "temperature", step_seconds=120),
    _set("metrics", "temperature", step_seconds=60),
)
DISK = Fault("disk low", "lake disk", "GiB left", _fill_disk, _empty_disk)
"""Of a lake that has a disk of its own, which only root can make small."""
GATE = Fault("gate closed", "gate silver.readings", "is closed", _spike, _nothing, is_command=True)
DEAD_LETTERS = Fault(
    "dead letters",
    "channel pager",
    "in ops.dead_letters",
    _all(_answer("pager", 400), _silence("press-1")),
    _all(_answer("pager", None), _wake("press-1")),
    is_command=True,
    seconds=SILENCE_SECONDS,
)
EXPECTATION = Fault("critical expectation", "quality", "No reading is above 900", _find_spike, _find_no_spike)
"""After GATE, whose spike it finds."""
UNREPLAYED = Fault("settings changed", "conf temperature.maximum", "", _set("metrics", "temperature", maximum=5000), _replay)
"""Before GATE: a replay refuses a spike."""
