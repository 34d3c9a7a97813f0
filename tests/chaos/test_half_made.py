"""What a kill leaves of a lake that was being made."""

from pathlib import Path

from pyspark.sql import SparkSession

from orchestration.engine.lake import Lake
from orchestration.storage.commit import create
from orchestration.storage.ops_tables import LEDGER_SCHEMA, TICKS
from orchestration.storage.tables import ensure
from tests.lakes import conf, table


def test_a_kill_while_a_table_is_made_leaves_nothing_that_the_next_run_trips_over(spark: SparkSession, tmp_path: Path) -> None:
    """The folder of its log is there first, and the first entry a moment later."""
    made = conf(tmp_path)
    declared = Lake(made).tables.values()
    rows = {made.lake / "ops/ticks": TICKS.schema, made.lake / "ops/ledger": LEDGER_SCHEMA}
    for path in (*(each.location for each in declared), *rows):
        (path.local / "_delta_log").mkdir(parents=True)
    for each in declared:
        ensure(each)
    for path, schema in rows.items():
        create(path, schema)
    assert {len(table(made, name)) for name in (*Lake(made).tables, "ops.ticks", "ops.ledger")} == {0}
