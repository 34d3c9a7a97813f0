"""A user's own dbt project is one line of conf: the same sources, profile and marts, and nothing of it is written to."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from orchestration.engine.lake import Lake
from orchestration.errors import ConfError
from orchestration.location import Location
from orchestration.serving.dbt.project import prepare
from orchestration.storage.marts import MARTS
from tests.chaos.plants import Plant
from tests.lakes import event, land, run
from tests.orchestration.serving.dbt.plant import content, dbt, land_the_first_day, land_what_comes_late, made, rows
from tests.rows import at

PROJECT = """
name: mine
profile: of_somebody_else
model-paths: [sql/models]
models:
  mine:
    +materialized: table
"""
HOT = """
{{ config(materialized='incremental', incremental_strategy='merge', unique_key='device_id') }}
select windows.device_id, count(*) as windows, max(limits.most) as most, max(hours.max) as warmest
from {{ source('gold', 'kitchen_aggregates') }} as windows
inner join {{ ref('hourly') }} as hours on windows.device_id = hours.device_id and hours.metric = 'temperature'
inner join {{ ref('limits') }} as limits on limits.device_id = windows.device_id
where windows.metric = 'temperature'
group by windows.device_id
"""
ZONE_DAILY = """
{{ config(materialized='incremental', incremental_strategy='merge', unique_key=['day', 'zone']) }}
select to_date(event_time) as day, zone, count(*) as readings, max(value) as hottest
from {{ source('silver', 'readings') }}
group by 1, 2
"""
ZONES = """
{{ config(materialized='incremental', unique_key='zone') }}
select zone, count(*) as readings from {{ source('silver', 'readings') }} group by 1
"""
ZONE_HISTORY = """
{% snapshot zone_history %}
{{ config(unique_key='zone', strategy='check', check_cols=['readings']) }}
select zone, count(*) as readings from {{ source('silver', 'readings') }} group by 1
{% endsnapshot %}
"""
TWICE = """
{{ config(materialized='incremental', unique_key='zone') }}
select zone from {{ source('silver', 'readings') }}
"""
FAILS = "select device_id from {{ ref('hot') }}"


def files(folder: Path) -> dict[str, str]:
    return {str(file.relative_to(folder)): file.read_text() for file in folder.rglob("*") if file.is_file()}


@pytest.fixture
def plant(tmp_path: Path) -> Plant:
    """Its conf names a project of one model, one view and one seed."""
    plant = made(tmp_path / "plant")
    pipeline = plant.folder / "conf" / "pipeline.yml"
    pipeline.write_text(pipeline.read_text().replace("project: null", "project: ./dbt of mine"))
    mine = plant.folder / "dbt of mine"
    for name, text in (
        ("dbt_project.yml", PROJECT),
        ("sql/models/hot.sql", HOT),
        ("sql/models/seen.sql", "{{ config(materialized='view') }} select * from {{ ref('hot') }}"),
        ("seeds/limits.csv", "device_id,most\noven-01,10.5\nfridge-01,7\n"),
    ):
        (mine / name).parent.mkdir(parents=True, exist_ok=True)
        (mine / name).write_text(text)
    return plant


def test_a_project_is_adopted_by_links_and_keeps_what_it_says_itself(plant: Plant) -> None:
    conf = plant.opened().conf
    for _ in range(2):
        folder = prepare(conf)
    assert (folder / "sql" / "models" / "hot.sql").read_text() == HOT
    settings = (folder / "dbt_project.yml").read_text()
    assert "profile: tidemark\n" in settings
    assert "+materialized: table" in settings
    assert "+file_format: delta" in settings


def test_a_folder_that_is_no_project_is_refused(plant: Plant) -> None:
    (plant.folder / "dbt of mine" / "dbt_project.yml").write_text("- no\n- project\n")
    with pytest.raises(ConfError, match=r"^dbt.project: .*dbt_project.yml names no project"):
        prepare(plant.opened().conf)


@pytest.mark.dbt
@pytest.mark.slow
def test_it_is_built_beside_our_marts_at_one_cut_and_a_seed_has_its_rows_once(plant: Plant, spark: SparkSession) -> None:
    mine = plant.folder / "dbt of mine"
    before = files(mine)
    land_the_first_day(plant)
    run(plant.opened().conf, spark)
    first = dbt(plant, "build")
    assert first.code == 0, first.out + first.err
    land_what_comes_late(plant)
    run(plant.opened().conf, spark)
    of_part = dbt(plant, "run", "--select", "hot")  # its view of windows and ours are made first
    assert (of_part.code, "readers still see the earlier marts, those of build 0" in of_part.err) == (0, True), of_part.out + of_part.err
    assert len(MARTS.rows(Location(plant.lake))) == 1
    second = dbt(plant, "build")
    assert second.code == 0, second.out + second.err
    assert MARTS.rows(Location(plant.lake))[-1].versions.keys() == {"marts.hot", "marts.limits", "marts.hourly"}  # and nothing else of ours
    assert len(content(plant.lake, "marts.limits")) == 2
    query = "select sum(windows) as n from marts.hot where device_id = 'oven-01'"
    assert Lake(plant.opened().conf, spark).sql(query).toArrow().to_pylist()[0]["n"] > 100
    assert files(mine) == before

    failing = mine / "tests" / "nothing_is_hot.sql"
    failing.parent.mkdir()
    failing.write_text(FAILS)
    for _ in range(2):  # what failed is kept for once, so the second time it is not in the way
        failed = dbt(plant, "test", "--select", "nothing_is_hot", "--store-failures")
        assert (failed.code, "Got 2 results" in failed.out) == (1, True), failed.out + failed.err
    (mine / "sql" / "models" / "stray.sql").write_text("{{ config(schema='elsewhere') }} select 1 as n")
    strayed = dbt(plant, "build")
    assert (strayed.code, "stray is a table in schema" in strayed.err) == (2, True)
    (mine / "sql" / "models" / "stray.sql").write_text("select {{ 1 + }} as n")
    assert dbt(plant, "build").code == 2
    (mine / "sql" / "models" / "stray.sql").write_text("select no_such_column from {{ ref('hot') }}")
    assert dbt(plant, "run", "--select", "stray").code == 1
    assert len(MARTS.rows(Location(plant.lake))) == 2


def test_models_of_an_own_project_merge_unless_they_say_otherwise(plant: Plant) -> None:
    assert "+incremental_strategy: merge" in (prepare(plant.opened().conf) / "dbt_project.yml").read_text()


@pytest.mark.dbt
@pytest.mark.slow
def test_rows_with_a_null_in_their_key_are_there_once_after_every_build(plant: Plant, spark: SparkSession) -> None:
    mine = plant.folder / "dbt of mine"
    (mine / "sql" / "models" / "hot.sql").unlink()
    (mine / "sql" / "models" / "seen.sql").unlink()
    for name, text in (
        ("sql/models/zone_daily.sql", ZONE_DAILY),
        ("sql/models/zones.sql", ZONES),
        ("snapshots/zone_history.sql", ZONE_HISTORY),
    ):
        (mine / name).parent.mkdir(exist_ok=True)
        (mine / name).write_text(text)
    start = at("2026-03-02T08:00:00")
    land(plant.folder, "first.jsonl", [event("oven-01", "temperature", 181.0, start)])
    land(plant.folder, "second.jsonl", [event("press-01", "temperature", value, start) for value in (182.0,)])
    land(plant.folder, "third.jsonl", [event("press-01", "temperature", 183.0, at("2026-03-02T08:02:00"))])
    run(plant.opened().conf, spark)  # press-01 has no zone
    for arguments in (["build"], ["build"], ["build", "--all"], ["build"]):
        said = dbt(plant, *arguments)
        assert said.code == 0, said.out + said.err
        daily = {(row.zone, row.readings, row.hottest) for row in rows(plant.lake, "marts.zone_daily").itertuples()}
        assert daily == {("hall-1", 1, 181.0), (None, 2, 183.0)}
        assert [len(rows(plant.lake, f"marts.{name}")) for name in ("zone_daily", "zones", "zone_history")] == [2, 2, 2]
    first, _, whole, last = MARTS.rows(Location(plant.lake))
    assert ("marts.hourly" in first.versions, last.versions.keys(), last.left_out["marts.hourly"]) == (False, whole.versions.keys(), 2)

    (mine / "sql" / "models" / "twice.sql").write_text(TWICE)
    assert dbt(plant, "run", "--select", "twice").code == 0
    version = len(rows(plant.lake, "marts.twice"))
    refused = dbt(plant, "run", "--select", "twice")
    assert (refused.code, len(rows(plant.lake, "marts.twice"))) == (1, version), refused.out + refused.err
