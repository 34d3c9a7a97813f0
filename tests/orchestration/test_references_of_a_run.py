"""References through a whole lake: joined as of ingestion, the same by a replay and a retry, checked by verify."""

import io
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession
from rich.console import Console

from bronze.events import ARRIVED
from orchestration.conf.load import load
from orchestration.conf.model import Conf
from orchestration.conf.reference_tables import ReferenceSettings
from orchestration.engine.lake import Lake
from orchestration.engine.progress import Progress
from orchestration.errors import ConfError, TidemarkError
from orchestration.jobs import maintenance
from orchestration.jobs.account.retry import Chosen
from orchestration.jobs.preview import preview
from orchestration.location import Location
from orchestration.serving.sql.answer import Limits, Question
from orchestration.serving.sql.duckdb_engine import DuckDbEngine
from orchestration.storage import references, registry
from orchestration.storage.tables import LakeStore
from orchestration.supervisor.run import retry_quarantine
from tests.lakes import KITCHEN, conf, copy_tree, differences, event, land, recorded, replay, rewrite, run, run_until, table
from tests.rows import at
from tests.test_blocks import write_part
from tests.test_readme import BLOCK, ROOT, TEXT

START = at("2026-01-05T00:00:00")


def made_in(folder: Path) -> Conf:
    """Customers of devices in a CSV, foremen of zones in a Delta table."""
    say(folder, oven="Ada", fridge="Bob")
    write_deltalake(folder / "lines", pa.table({"hall": ["hall-1"], "foreman": ["Eve"]}))
    tables = {
        "customers": ReferenceSettings(path=folder / "customers.csv", attributes={"customer": "customer"}, device_id="serial"),
        "lines": ReferenceSettings(path=folder / "lines", attributes={"shift_foreman": "foreman"}, zone="hall"),
    }
    plain = conf(folder, groups={"kitchen": KITCHEN}, references=tables)
    return replace(plain, devices=plain.devices | {"oven": replace(plain.devices["oven"], zone="hall-1")})


def say(folder: Path, **customers: str) -> None:
    rows = "".join(f"{device},{customer}\n" for device, customer in customers.items())
    (folder / "customers.csv").write_text(f"serial,customer\n{rows}")


def line(device: str, minute: int) -> str:
    return event(device, "temperature", minute, START + timedelta(minutes=minute))


def attributes(made: Conf, name: str = "silver.readings") -> Mapping[tuple[str, float], dict[str, str] | None]:
    """By device and value."""
    rows = recorded(LakeStore(made), name).to_pylist(maps_as_pydicts="strict")
    return {(row["device_id"], row["value"]): row["attributes"] for row in rows}


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Conf:
    """Of three batches: between the first and the second the oven changes hands and the fridge leaves the file, before the third the line
    gets another foreman. `newcomer` is unknown all the time. Then the file is changed once more, and no run has read it.
    """
    made = made_in(tmp_path_factory.mktemp("references"))
    land(made.folder, "1.json", [line("oven", 0), line("fridge", 0), line("press", 0), line("newcomer", 0)])
    run(made, spark)
    say(made.folder, oven="Cid", newcomer="Dot")
    land(made.folder, "2.json", [line("oven", 1), line("fridge", 1), line("newcomer", 1)])
    run(made, spark)
    write_deltalake(made.folder / "lines", pa.table({"hall": ["hall-1"], "foreman": ["Kim"]}), mode="overwrite")
    land(made.folder, "3.json", [line("oven", 2), line("fridge", 30), line("oven", 1)])
    run(made, spark)
    say(made.folder, oven="Nobody", fridge="Nobody")
    return made


EXPECTED = {
    ("oven", 0.0): {"customer": "Ada", "shift_foreman": "Eve"},
    ("fridge", 0.0): {"customer": "Bob"},
    ("press", 0.0): None,
    ("oven", 1.0): {"customer": "Cid", "shift_foreman": "Eve"},
    ("fridge", 1.0): None,
    ("oven", 2.0): {"customer": "Cid", "shift_foreman": "Kim"},
    ("fridge", 30.0): None,
}


def test_each_reading_has_what_was_said_when_its_event_was_ingested(made: Conf) -> None:
    assert attributes(made) == EXPECTED
    assert differences(made) == []


def test_versions_can_be_asked_by_both_engines_and_beside_a_snapshot(spark: SparkSession, made: Conf) -> None:
    query = "select key_of, key, attributes['customer'] as customer from silver.references where key = 'oven' order by registered_at"
    expected = [("device_id", "oven", "Ada"), ("device_id", "oven", "Cid")]
    assert [tuple(row) for row in Lake(made, spark).sql(query, snapshot=0).collect()] == expected
    rows = DuckDbEngine(made, Limits(seconds=60, rows=10)).ask(Question(query)).rows
    assert [tuple(row.values()) for row in rows.to_pylist()] == expected


def test_verify_names_a_reading_that_has_the_wrong_customer(made: Conf) -> None:
    rows = recorded(LakeStore(made), "silver.readings")
    wrong = [[("customer", "Zoe")] if of and dict(of).get("customer") == "Bob" else of for of in rows["attributes"].to_pylist()]
    index, column = rows.schema.get_field_index("attributes"), rows.schema.field("attributes")
    rewrite(LakeStore(made), "silver.readings", rows.set_column(index, column, pa.array(wrong, column.type)))
    (difference,) = differences(made)
    assert (difference.in_table, difference.from_bronze) == ("attributes {customer=Zoe}", "attributes {customer=Bob}")
    rewrite(LakeStore(made), "silver.readings", rows)
    assert differences(made) == []


def test_a_replay_gives_the_same_readings_although_the_tables_have_changed(spark: SparkSession, made: Conf) -> None:
    replay(made, spark)
    assert attributes(made) == EXPECTED
    assert differences(made) == []


def test_a_retry_re_admits_with_what_was_said_when_the_event_was_ingested(spark: SparkSession, tmp_path: Path) -> None:
    made = made_in(tmp_path)
    for number, customer in enumerate(("Dot", "Fay")):
        say(tmp_path, newcomer=customer)
        land(tmp_path, f"{number}.json", [line("newcomer", number)])
        run(made, spark)
    (tmp_path / "devices.csv").write_text("device_id,zone,groups\nnewcomer,hall-1,kitchen\n")
    registry.load(made.lake, tmp_path / "devices.csv", datetime.now(UTC))
    say(tmp_path)
    with Progress(["gold.amendments"], Console(file=io.StringIO())) as progress:
        retry_quarantine(Lake(made, spark), Chosen(rule="device_is_known"), progress)
    expected = {
        ("newcomer", float(number)): {"customer": customer, "shift_foreman": "Eve"} for number, customer in enumerate(("Dot", "Fay"))
    }
    assert attributes(made, "silver.late") == expected
    assert differences(made) == []


def test_a_table_that_changes_while_a_run_goes_on_counts_for_events_that_come_then(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(references, "NOTICE", timedelta(seconds=1))
    made = made_in(tmp_path)
    land(tmp_path, "1.json", [line("oven", 0)])
    steps: list[str] = []

    def is_done() -> bool:
        count = len(table(made, "silver.readings")) if (made.lake / "silver/readings/_delta_log").is_dir() else 0
        if not steps and count == 1:
            say(tmp_path, oven="Cid")
            steps.append("said")
        versions = [*table(made, references.TABLE).registered_at] if steps else []
        if len(steps) == 1 and len(versions) == 5 and datetime.now(UTC) > max(versions):
            land(tmp_path, "2.json", [line("oven", 1)])
            steps.append("landed")
        return count == 2

    run_until(made, spark, is_done)
    assert {key: of and of["customer"] for key, of in attributes(made).items()} == {("oven", 0.0): "Ada", ("oven", 1.0): "Cid"}
    assert differences(made) == []


def test_a_run_does_not_begin_with_a_table_that_cannot_be_read(tmp_path: Path) -> None:
    made = made_in(tmp_path)
    (tmp_path / "customers.csv").unlink()
    with pytest.raises(ConfError, match=r"customers.csv: cannot be read .* or correct references.customers"):
        run(made, None)


def test_maintenance_puts_the_files_of_versions_together_and_no_answer_changes(spark: SparkSession, made: Conf) -> None:
    before = sorted(map(str, table(made, references.TABLE).to_dict("records")))
    done = {row["table"]: row for row in maintenance.maintain(Lake(made, spark), datetime.now(UTC), lambda _: nullcontext())}
    assert done[references.TABLE]["compacted"] > 1
    assert sorted(map(str, table(made, references.TABLE).to_dict("records"))) == before
    assert differences(made) == []


def test_damage_of_the_versions_is_refused_before_a_run_goes_on(made: Conf, tmp_path: Path) -> None:
    copy_tree(made.lake.local, tmp_path / "lake")
    damaged = replace(made, lake=Location(tmp_path / "lake"))
    log = damaged.lake.local / "silver" / "references" / "_delta_log" / f"{0:020}.json"
    log.write_bytes(log.read_bytes() + b" ")
    with pytest.raises(TidemarkError, match=r"the log of silver.references is damaged: .*\n  Restore it from a backup"):
        run(damaged, None)


def test_the_example_of_the_page_gives_the_attributes_beside_it(tmp_path: Path) -> None:
    section = TEXT["silver/README.md"].split("## References\n")[1].split("\n## ")[0]
    (_, _, shell), (_, _, settings), (_, _, result), _ = BLOCK.findall(section)
    subprocess.run(["bash", "-ec", shell], cwd=tmp_path, check=True)
    write_deltalake(tmp_path / "reference" / "lines", pa.table({"hall": ["hall-1"], "foreman": ["Eve"]}))
    (tmp_path / "conf").mkdir()
    write_part(settings, tmp_path / "conf", is_whole=False)
    for name in ("sources", "metrics", "devices", "groups"):
        shutil.copy(ROOT / "conf" / f"{name}.yml", tmp_path / "conf")
    made = load(tmp_path / "conf")
    lines = [line(f"oven-0{n}", n) for n in (1, 2, 3)]
    now = {"received_at": datetime.now(UTC)}
    arrived = pa.Table.from_pylist([{"payload": of.encode(), "source": "plant", "position": "1.json"} | now for of in lines], ARRIVED)
    rows = preview(made, "plant", arrived).measurements
    found = [" ".join((row["device_id"], *(f"{name}={text}" for name, text in row["attributes"].items()))) for row in rows]
    assert found == result.splitlines()
