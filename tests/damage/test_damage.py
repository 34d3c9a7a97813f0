"""Damage to any file of a lake is refused, named or mended, and never silently wrong; a table in orchestration/storage/README.md says it.

A sample of the cells is in every run of the tests; `make damage` looks at all of them.
"""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from orchestration.engine.session import HEAP_STORE, ROCKSDB_STORE
from orchestration.errors import TidemarkError
from orchestration.service.finding import unless_it_breaks
from orchestration.service.lake_findings import of_data_files, of_logs, of_state_files
from orchestration.storage.generations import active_generation
from tests.damage.cells import PARTS, WAYS, inflict
from tests.damage.damaged import PROVIDER, Damaged, build

ROW = re.compile(r"^\| (.+?) \|" + r" (refused|named|mended|-) \|" * len(WAYS) + "$", re.MULTILINE)
SAID: Mapping[tuple[str, str], str] = {
    (row[1], way): row[2 + n]
    for row in ROW.finditer((Path(__file__).parents[2] / "orchestration/storage/README.md").read_text(encoding="utf-8"))
    for n, way in enumerate(WAYS)
}
ALL = [cell for cell, word in SAID.items() if word != "-"]
ONE_A_PART = [(part, WAYS[n % len(WAYS)]) for n, part in enumerate(PARTS)]
# What is mended takes a run of its own; snapshots of state and RocksDB take a session of their own.
SAMPLE = [cell for cell in ONE_A_PART if SAID.get(cell) in {"refused", "named"} and not re.search("state: snapshot|RocksDB", cell[0])]
pytestmark = pytest.mark.damage


@pytest.fixture(scope="module", autouse=True)
def often_snapshots_of_state(request: pytest.FixtureRequest) -> None:
    """Before any query with state runs in this process, which `make damage` has for itself; the sample looks at no snapshot of state."""
    if not any(item.path == request.path and item.get_closest_marker("slow") for item in request.session.items):
        return
    spark: SparkSession = request.getfixturevalue("spark")
    spark.conf.set("spark.sql.streaming.stateStore.maintenanceInterval", "300ms")
    spark.conf.set("spark.sql.streaming.stateStore.minDeltasForSnapshot", "1")


@pytest.fixture(scope="module")
def in_rocksdb(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Damaged:
    return build(tmp_path_factory.mktemp("rocksdb"), spark, ROCKSDB_STORE)


@pytest.fixture
def lake(part: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> Iterator[Damaged]:
    """Of the state store that the part is of."""
    if "RocksDB" not in part:
        yield request.getfixturevalue("damaged")
        return
    found: Damaged = request.getfixturevalue("in_rocksdb")
    found.restore()
    found.serve(monkeypatch)
    spark.conf.set(PROVIDER, ROCKSDB_STORE)
    yield found
    spark.conf.set(PROVIDER, HEAP_STORE)


@pytest.mark.parametrize(("part", "way"), [pytest.param(*cell, marks=() if cell in SAMPLE else pytest.mark.slow) for cell in ALL])
def test_damage_is_refused_named_or_mended_as_architecture_says(part: str, way: str, lake: Damaged) -> None:
    expected = lake.undisturbed if SAID[part, way] == "mended" else {}
    file = inflict(part, way, lake.made.lake.local, lake.folder / "earlier")
    match SAID[part, way]:
        case "refused":
            with pytest.raises(TidemarkError) as refused:
                lake.go_on()
            # A file of ours that is older is right in itself: the sentence tells its checkpoint.
            is_ours = file.name in {"tidemark.json", "amendments.json", "slice.json"}
            assert str(file.parent if is_ours else file) in str(refused.value)
            assert re.search(r"\n  (Restore|Move) ", str(refused.value))
        case "named":
            for command in ("ledger", "verify"):
                code, told = lake.answers(command, "--format", "json")
                assert (code, file.name in told) == (1, True), told
        case _:
            lake.go_on()
            assert [lake.answers(command, "--format", "json")[0] for command in ("ledger", "verify")] == [0, 0]
            assert lake.content() == expected


UNSEEN = re.compile(r"data file.*/a bit flipped|(tidemark.json|amendments|slice).*/(deleted|an older one)")
"""Cells that only all bytes of a data file, or what a run does next, would show; `tidemark.json` is missed where it is gone."""
SEEN = [
    cell
    for cell in ALL
    if SAID[cell] != "mended" and (not UNSEEN.search("/".join(cell)) or cell == ("`tidemark.json` of a checkpoint", "deleted"))
]


@pytest.mark.parametrize(("part", "way"), [pytest.param(*cell, marks=() if cell in SAMPLE else pytest.mark.slow) for cell in SEEN])
def test_doctor_names_the_file_before_a_run_is_refused(part: str, way: str, lake: Damaged) -> None:
    file = inflict(part, way, lake.made.lake.local, lake.folder / "earlier")
    findings = [
        finding for look in (of_logs, of_state_files, of_data_files) for finding in unless_it_breaks("lake", partial(look, lake.made))
    ]
    assert any(finding.verdict == "bad" and str(file) in finding.finding for finding in findings), findings


@pytest.mark.slow
def test_state_in_rocksdb_goes_on_when_nothing_is_damaged(in_rocksdb: Damaged, damaged: Damaged, spark: SparkSession) -> None:
    spark.conf.set(PROVIDER, ROCKSDB_STORE)
    found = in_rocksdb.undisturbed
    spark.conf.set(PROVIDER, HEAP_STORE)
    assert found == damaged.undisturbed


@pytest.mark.slow
@pytest.mark.parametrize("part", ["offsets", "amendments", "Delta log, gold"])
def test_a_replay_mends_what_the_refusal_says_that_it_mends(part: str, damaged: Damaged) -> None:
    inflict(part, "half", damaged.made.lake.local, damaged.folder / "earlier")
    with pytest.raises(TidemarkError, match="tidemark replay"):
        damaged.go_on()
    assert damaged.answers("replay", "--yes")[0] == 0
    damaged.go_on()
    assert [damaged.answers(command)[0] for command in ("ledger", "verify")] == [0, 0]
    assert active_generation(damaged.made.lake).generation == 2


def test_architecture_has_every_cell() -> None:
    assert SAID.keys() == {(part, way) for part in PARTS for way in WAYS}
