"""Confs that a lake was run with: which one holds for which bronze batch, what a change means, and what is refused before it begins."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, write_deltalake

from gold.flows.slices import THE_BEGINNING
from orchestration.audit.verify.confs import conf_history
from orchestration.cli.app import exit_code
from orchestration.conf.changes import Consequence
from orchestration.conf.load import ACCEPTED, load
from orchestration.conf.model import Conf
from orchestration.errors import ConfError
from orchestration.storage import confs
from orchestration.storage.bindings import bind, plan_of_flow
from orchestration.storage.delta import open_table
from orchestration.storage.generations import Generation
from orchestration.storage.kept_confs import CONFS, READINGS, eras, note
from orchestration.storage.positions import FlowStep, step_file
from orchestration.storage.source_offsets import with_offsets
from orchestration.storage.tables import LakeStore, ensure
from tests.conf_changes import ALL, CHANGES, HELD, LAKE, NOW, ConfChange, write_plant
from tests.lakes import METRICS, SHAPE, conf

ROOT = Path(__file__).parents[3]
TABLE = re.compile(r"^\| (?P<change>[^|]+?) \| (?P<file>[^|]+?) \| (?P<holds>[^|]+?) \|$", re.MULTILINE)
HEADINGS = {NOW: Consequence.FROM_NOW, ALL: Consequence.FOR_ALL, HELD: Consequence.FOR_ALL, LAKE: Consequence.NEW_LAKE}


def begun(made: Conf) -> LakeStore:
    """A lake as a run leaves it that has brought in nothing yet."""
    lake = LakeStore(made)
    ensure(lake.tables["bronze.events"])
    for flow in ("silver.readings", *(f"gold.{stream}" for stream in made.streams)):
        bind(lake, flow, ())
    for name, declared in made.flows.items():
        step_file(lake, name).write(FlowStep(number=1, plan=plan_of_flow(declared), began=THE_BEGINNING))
    confs.take_up(lake, datetime.now(UTC))
    return lake


def put_offset(lake: LakeStore, batch: int) -> None:
    """As if bronze had written a batch."""
    properties = CommitProperties(custom_metadata=with_offsets({}, batch, {"plant": {"claim": batch}}, {}, {}))
    events = open_table(lake.table_path("bronze.events"))
    write_deltalake(events, pa.schema(events.schema().to_arrow()).empty_table(), mode="append", commit_properties=properties)


def taken_up(made: Conf) -> LakeStore:
    lake = LakeStore(made)
    confs.take_up(lake, datetime.now(UTC))
    return lake


def with_unit(made: Conf, unit: str) -> Conf:
    return replace(made, metrics=METRICS | {"power": replace(METRICS["power"], unit=unit)})


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The conf of a lake that has begun; tests put back what they change."""
    folder = write_plant(tmp_path_factory.mktemp("plant"))
    begun(load(folder))
    return folder


@pytest.fixture
def plant_conf(plant: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The same, relative to the working directory."""
    monkeypatch.chdir(plant.parent)
    texts = {file: file.read_text() for file in plant.glob("*.yml")}
    yield Path("conf")
    for file, text in texts.items():
        file.write_text(text)


def told(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()[1:]  # after the summary


def before_it(change: ConfChange, conf_folder: Path) -> None:
    """What the change goes on from: a label, a source and an aggregation type that the plant has by then."""
    for earlier in CHANGES[: CHANGES.index(change)]:
        if earlier.holds != HELD:
            earlier.apply(conf_folder)
    confs.take_up(LakeStore(load(conf_folder)), datetime.now(UTC))


def test_runs_of_bronze_alone_keep_no_conf_before_silver_begins(tmp_path: Path) -> None:
    lake = LakeStore(load(write_plant(tmp_path)))
    ensure(lake.tables["bronze.events"])
    for _ in range(2):
        confs.take_up(lake, datetime.now(UTC))
    assert CONFS.rows(lake.conf.lake) == []
    bind(lake, READINGS, ())
    for _ in range(2):
        confs.take_up(lake, datetime.now(UTC))
    assert [(kept.version, kept.since_batch) for kept in CONFS.rows(lake.conf.lake)] == [(1, 0)]


@pytest.mark.parametrize("change", CHANGES, ids=[change.title for change in CHANGES])
def test_check_says_of_each_change_when_it_holds_and_where_it_is_written(
    change: ConfChange, plant_conf: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before_it(change, plant_conf)
    change.apply(plant_conf)
    code = exit_code(["check"])
    lines = told(capsys)
    at = next(number for number, line in enumerate(lines) if line.endswith(f": {change.line}"))
    assert re.match(r"  conf/\w+\.yml:\d+: ", lines[at])
    assert [line for line in lines[: at + 1] if not line.startswith(" ") and line.endswith(":")][-1] == f"{HEADINGS[change.holds]}:"
    assert code == (1 if change.holds in {HELD, LAKE} else 0)
    assert ("The lake cannot go on with that" in lines[-1]) == (change.holds in {HELD, LAKE})


@pytest.mark.parametrize(
    ("anomalies", "line", "consequence"),
    [
        ("{}", "kitchen.anomalies was not set, and is {} now", Consequence.FOR_ALL),
        ("{learning_seconds: 3}", "kitchen.anomalies.learning_seconds was not set, and is 3 now", Consequence.FROM_NOW),
        ("{quiet_hours: {zone: UTC}}", "kitchen.anomalies.quiet_hours.zone was not set, and is UTC now", Consequence.FROM_NOW),
    ],
)
def test_check_says_that_a_group_is_judged_and_when_settings_of_its_models_hold(
    anomalies: str, line: str, consequence: Consequence, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_plant(tmp_path)
    begun(load(folder))
    groups = folder / "groups.yml"
    groups.write_text(groups.read_text().replace("power]}}", f"power]}}, anomalies: {anomalies}}}"))
    exit_code(["--conf", str(folder), "check"])
    *_, heading, change = told(capsys)
    assert (heading, change.endswith(f": {line}")) == (f"{consequence}:", True)


def test_the_table_of_the_page_has_these_changes() -> None:
    page = (ROOT / "conf" / "README.md").read_text(encoding="utf-8")
    rows = [(row["change"], row["holds"]) for row in TABLE.finditer(page) if row["holds"] in HEADINGS]
    assert rows == [(change.title, change.holds) for change in CHANGES]


def test_a_change_is_said_once_and_not_once_a_source(tmp_path: Path) -> None:
    made = conf(tmp_path)
    made = replace(made, sources=made.sources | {"other": replace(made.sources["plant"], name="other")})
    begun(made)
    power = replace(METRICS["power"], words={"off": 0.0})
    changed = replace(made, metrics=METRICS | {"power": power})
    assert [change.path for change in confs.pending_changes(LakeStore(changed))] == [("metrics", "power", "words", "off")]


def test_the_order_of_metrics_in_a_row_is_a_change_as_it_numbers_the_parts(tmp_path: Path) -> None:
    wide = replace(SHAPE, metric=None, value=None, metrics={"temperature": "t", "power": "p"})
    made = conf(tmp_path)
    made = replace(made, sources={"plant": replace(made.sources["plant"], payload_format=wide)})
    begun(made)
    turned = replace(wide, metrics={"power": "p", "temperature": "t"})
    changed = replace(made, sources={"plant": replace(made.sources["plant"], payload_format=turned)})
    (change,) = confs.pending_changes(LakeStore(changed))
    assert (change.path, change.consequence) == (("sources", "plant", "metrics"), Consequence.FOR_ALL)


def test_a_conf_holds_from_the_next_bronze_batch_on_and_the_earlier_ones_keep_theirs(tmp_path: Path) -> None:
    made = conf(tmp_path)
    lake = begun(made)
    assert confs.unreplayed_changes(taken_up(with_unit(made, "W"))) == {}  # bronze has no event yet that was read otherwise
    put_offset(lake, batch=4)
    changed = taken_up(with_unit(made, "kW"))
    assert [tuple(era) for era in eras(changed.checkpoint(READINGS))] == [(0, 2), (5, 3)]
    assert [(end, former.metrics["power"].unit) for end, former in confs.former_confs(changed, after=3)] == [(5, "W")]
    assert confs.former_confs(changed, after=4) == []
    assert [*confs.unreplayed_changes(changed).values()] == [
        "power.unit was W, and is kW now since bronze batch 5: readings of earlier batches stay as they were read;"
        " `tidemark replay` reads them anew"
    ]
    put_offset(lake, batch=6)
    taken_up(with_unit(made, "W"))
    assert len(confs.unreplayed_changes(lake)) == 1  # put back, and batches between were read by the other
    other = LakeStore(made, Generation(places={"checkpoints/silver.readings": 2}))
    bind(other, "silver.readings", ())
    note(other.checkpoint(READINGS), *confs.confs_of_replay(changed, 0, datetime.now(UTC)))
    assert confs.unreplayed_changes(other) == {}


def test_the_same_conf_is_kept_once_and_whoever_verifies_reads_the_same_history(tmp_path: Path) -> None:
    made = conf(tmp_path)
    lake = begun(made)
    for _ in range(2):
        taken_up(made)
    put_offset(lake, batch=0)
    changed = taken_up(with_unit(made, "kW"))
    assert [kept.since_batch for kept in CONFS.rows(made.lake)] == [0, 1]
    confs.note_retry(changed)
    history = conf_history(made, changed.generation)
    assert [(era.since_batch, era.conf.metrics["power"].unit) for era in history.eras] == [(0, None), (1, "kW")]
    assert [retried.metrics["power"].unit for retried in history.retried] == ["kW"]
    assert history.eras[0].conf.metrics == made.metrics


def test_a_replay_since_a_day_keeps_the_confs_of_what_it_copies(tmp_path: Path) -> None:
    made = conf(tmp_path)
    lake = begun(made)
    put_offset(lake, batch=7)
    changed = taken_up(with_unit(made, "kW"))
    put_offset(lake, batch=9)
    confs.note_retry(changed)
    again = LakeStore(with_unit(made, "MW"))
    assert confs.confs_of_replay(again, 5, datetime.now(UTC)) == ([(0, 1), (5, 3)], [2])
    assert confs.confs_of_replay(again, 0, datetime.now(UTC)) == ([(0, 4)], [])
    assert confs.running(changed).version == 2  # type: ignore[union-attr]  # what runs goes on with its own


def test_a_metric_that_a_group_gets_counts_from_its_batch_on(tmp_path: Path) -> None:
    made = conf(tmp_path)
    lake = begun(made)
    put_offset(lake, batch=2)
    kitchen = replace(made.groups["kitchen"], metrics=("temperature", "power", "vibration"))
    changed = taken_up(replace(made, groups=made.groups | {"kitchen": kitchen}))
    since = conf_history(changed.conf, changed.generation).since_batch
    assert (since("kitchen", "power"), since("kitchen", "vibration"), since("presses", "vibration")) == (0, 3, 0)


def test_a_part_of_up_runs_the_conf_before_where_the_lake_refuses_the_new_one_or_it_has_mistakes(
    plant_conf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = next(change for change in CHANGES if change.title == "the features of a vector")
    lake = LakeStore(load(plant_conf))
    confs.keep_files(lake.conf)
    window.apply(plant_conf)
    with pytest.raises(
        ConfError, match=r"conf/groups.yml:2: the vector of kitchen in conf/groups.yml was of each device: temperature, power"
    ):
        refused = LakeStore(load(plant_conf))
        raise confs.refusal(refused, plant_conf, confs.held_back(refused))
    assert confs.conf_to_run(plant_conf).groups["kitchen"].vector.features == ("temperature",)  # type: ignore[union-attr]  # for others
    monkeypatch.setenv(ACCEPTED, str(confs.files_in(lake.conf.lake)))
    assert confs.conf_to_run(plant_conf) == lake.conf
    text = (plant_conf / "groups.yml").read_text()
    (plant_conf / "groups.yml").write_text("groups: [")
    confs.keep_files(refused.conf)  # its files say something else by now
    assert confs.conf_to_run(plant_conf) == lake.conf
    (plant_conf / "groups.yml").write_text(text)
    confs.keep_files(refused.conf)  # as if a rollback had come after it
    assert confs.conf_to_run(plant_conf).groups["kitchen"].vector == lake.conf.groups["kitchen"].vector
