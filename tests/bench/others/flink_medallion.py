"""The medallion of hand_written_medallion.py in Flink SQL, streaming, to Parquet: one job that reads each event once.

The registry is joined as of event time (a versioned table), the first of duplicates is kept, windows close by the watermark, checkpoints
make it exactly once, with state on the heap, which is what Java takes by itself. Rows behind the watermark are dropped, as Flink does.

Usage: flink_medallion.py JSON, the arguments of `main`, with the packages of requirements.lock beside this file
"""

import json
import sys
from pathlib import Path

from pyflink.common import Configuration
from pyflink.table import EnvironmentSettings, TableEnvironment

REPOSITORY = Path(__file__).parents[3]
sys.path.insert(0, str(REPOSITORY))  # run as a script, by another Python

from tests.bench.factory import GROUPS, LATENESS_SECONDS, METRICS, STEP_SECONDS, registry  # noqa: E402

EVENT = "device STRING, metric STRING, `value` DOUBLE, unit STRING, `zone` STRING"
READING = f"{EVENT}, event_time TIMESTAMP(3), of_group STRING"
WINDOW = "device STRING, metric STRING, window_start TIMESTAMP(3), mean DOUBLE, `count` BIGINT, `min` DOUBLE, `max` DOUBLE, latest DOUBLE"
CHECKPOINT_MS = 10_000


def main(*, landing: str, lake: str, jars: list[str], cores: int, devices: int, **_: str) -> None:
    """One job of five sinks, until nothing waits."""
    tables = TableEnvironment.create(
        EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(_settings(jars, cores, lake)).build()
    )
    _sources(tables, landing, Path(lake), devices)
    _views(tables)
    sinks = tables.create_statement_set()
    _sink(tables, lake, "bronze", f"{EVENT}, ts STRING")
    sinks.add_insert_sql("INSERT INTO bronze SELECT device, metric, `value`, unit, `zone`, ts FROM events")
    _sink(tables, lake, "silver", READING)
    sinks.add_insert_sql("INSERT INTO silver SELECT device, metric, `value`, unit, `zone`, event_time, of_group FROM readings")
    for group in GROUPS:
        _sink(tables, lake, f"gold_{group}", WINDOW)
        sinks.add_insert_sql(_windows(group))
    sinks.execute().wait()


def _settings(jars: list[str], cores: int, lake: str) -> Configuration:
    settings = Configuration()
    for name, value in {
        "pipeline.jars": ";".join(Path(jar).as_uri() for jar in jars),
        "parallelism.default": str(cores),
        "execution.checkpointing.interval": f"{CHECKPOINT_MS} ms",
        "execution.checkpointing.storage": "filesystem",
        "execution.checkpointing.dir": (Path(lake) / "_checkpoints").as_uri(),
        "table.local-time-zone": "UTC",
        "table.exec.state.ttl": f"{10 * LATENESS_SECONDS} s",
    }.items():
        settings.set_string(name, value)
    return settings


def _sources(tables: TableEnvironment, landing: str, lake: Path, devices: int) -> None:
    lake.mkdir(parents=True)
    known = (f"{device},{group},1970-01-01 00:00:00\n" for device, group in registry(devices).items())
    (lake / "registry.csv").write_text("".join(known), encoding="utf-8")
    tables.execute_sql(f"""
        CREATE TABLE events ({EVENT}, ts STRING,
          arrived AS PROCTIME(), event_time AS TO_TIMESTAMP(REPLACE(REPLACE(ts, 'T', ' '), 'Z', '')),
          WATERMARK FOR event_time AS event_time - INTERVAL '{LATENESS_SECONDS}' SECOND({len(str(LATENESS_SECONDS))}))
        WITH ('connector' = 'filesystem', 'path' = '{Path(landing).as_uri()}', 'format' = 'json')
    """)
    tables.execute_sql(f"""
        CREATE TABLE registry (device STRING, of_group STRING, since TIMESTAMP(3), WATERMARK FOR since AS since,
          PRIMARY KEY (device) NOT ENFORCED)
        WITH ('connector' = 'filesystem', 'path' = '{(lake / "registry.csv").as_uri()}', 'format' = 'csv')
    """)


def _views(tables: TableEnvironment) -> None:
    """Readings: the first of a device, metric and time."""
    names = ", ".join(f"'{name}'" for name in METRICS)
    tables.execute_sql(f"""
        CREATE VIEW known AS
        SELECT e.device, e.metric, e.`value`, e.unit, e.`zone`, e.event_time, e.arrived, r.of_group
        FROM events AS e JOIN registry FOR SYSTEM_TIME AS OF e.event_time AS r ON e.device = r.device
        WHERE e.event_time IS NOT NULL AND e.`value` IS NOT NULL AND e.metric IN ({names})
    """)
    tables.execute_sql("""
        CREATE VIEW readings AS
        SELECT device, metric, `value`, unit, `zone`, event_time, of_group FROM (
          SELECT *, ROW_NUMBER() OVER (PARTITION BY device, metric, event_time ORDER BY arrived ASC) AS place FROM known)
        WHERE place = 1
    """)


def _windows(group: str) -> str:
    return f"""
        INSERT INTO gold_{group}
        SELECT device, metric, window_start, AVG(`value`), COUNT(*), MIN(`value`), MAX(`value`), LAST_VALUE(`value`)
        FROM TABLE(TUMBLE(TABLE readings, DESCRIPTOR(event_time), INTERVAL '{STEP_SECONDS}' SECOND))
        WHERE of_group = '{group}' GROUP BY device, metric, window_start, window_end
    """


def _sink(tables: TableEnvironment, lake: str, name: str, columns: str) -> None:
    tables.execute_sql(
        f"CREATE TABLE {name} ({columns}) WITH ('connector' = 'filesystem', 'path' = '{Path(lake, name).as_uri()}', 'format' = 'parquet')"
    )


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
