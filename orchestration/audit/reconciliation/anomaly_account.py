"""The account of anomalies: every vector of a group that is judged has a row in gold.anomalies, with a score or with the reason for none.

Taken at the newest snapshot, of rows and vectors in their newest revisions:

    vectors = scored + learning + too_few_features + missing - duplicated
"""

from datetime import UTC, date, datetime, time

from expectations.wording import counted
from orchestration.audit.reconciliation.account import SETTINGS, Rows
from orchestration.engine.lake import Lake
from orchestration.storage.delta import OpenTable, ask, literal, open_table
from orchestration.storage.models import begun_after, events_by_group
from orchestration.storage.positions import FLOWS, JUDGED
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.views import views
from orchestration.utc import from_micros, to_micros

WRONG = ("missing", "duplicated")
COUNTS = ("vectors", "scored", "learning", "too_few_features", *WRONG)
COLUMNS = ("group", *COUNTS)
MOST = 10
BY_VECTOR = """
  with groups(name, after, until) as (values {groups}),
  both as (
    select device_group, entity, arrow_cast(window_end, 'Int64') as ends, 1 as vectors, 0 as rows, null as score, null as reason
    from ({vectors})
    union all select device_group, entity, arrow_cast(window_end, 'Int64'), 0, 1, score, reason from ({anomalies})
  ),
  by_vector as (
    select device_group as group_name, entity, ends, sum(vectors) as vectors, sum(rows) as rows, count(score) as scored,
      sum(case when score is null and reason = 'learning' then 1 else 0 end) as learning,
      sum(case when score is null and reason = 'too few features' then 1 else 0 end) as too_few_features
    from both join groups on name = device_group and ends > after and ends <= until group by device_group, entity, ends
  ),
  placed as (
    select *, greatest(vectors - rows, 0) as missing, greatest(rows - vectors, 0) as duplicated from by_vector
  )
"""
ACCOUNT = f"{BY_VECTOR} select group_name, {', '.join(f'sum({count}) as {count}' for count in COUNTS)} from placed group by group_name"
WRONG_VECTORS = f"{BY_VECTOR} select * from placed where missing + duplicated > 0 order by group_name, ends, entity limit {MOST}"


def anomaly_account(lake: Lake, snapshot: Snapshot, since: date | None = None) -> tuple[Rows, Rows]:
    """Account for the vectors of groups that are judged: a row a group, in the order of the conf; and the first vectors that are wrong.

    `since`: of windows that end later than that day begins.
    """
    events, first = events_by_group(lake.conf.lake), to_micros(datetime.combine(since or date.min, time(), UTC))
    groups = {
        group.name: (max(after, first), to_micros(until))
        for group in lake.conf.groups.values()
        if group.anomalies
        and (after := begun_after(events[group.name])) is not None
        and (until := snapshot.closed_until.get(f"{FLOWS}/{JUDGED}/{group.stream}"))
    }
    available = views(lake.conf, snapshot, "gold.vectors gold.anomalies")
    if not groups or "gold.anomalies" not in available:
        return [], []
    tables = dict[str, OpenTable]()
    words = {"groups": ", ".join(f"({literal(name)}, {after}, {until})" for name, (after, until) in groups.items())}
    for kind in ("vectors", "anomalies"):
        parts = {f"{kind}_{number}": part for number, part in enumerate(available[f"gold.{kind}"].parts)}
        tables |= {name: open_table(part.location, part.version) for name, part in parts.items()}
        words[kind] = available[f"gold.{kind}"].select([*parts])
    account = {row.pop("group_name"): row for row in ask(ACCOUNT.format(**words), tables, SETTINGS).read_all().to_pylist()}
    is_wrong = any(row[wrong] for row in account.values() for wrong in WRONG)
    wrong = ask(WRONG_VECTORS.format(**words), tables, SETTINGS).read_all().to_pylist() if is_wrong else []
    return [{"group": name} | account[name] for name in groups if name in account], [
        {"group": row["group_name"], "device_id": row["entity"], "metric": "(vector)", "window_end": from_micros(row["ends"])}
        | {"wrong": f"{counted(row['rows'], 'row')} in gold.anomalies, {counted(row['vectors'], 'vector')} in gold.vectors"}
        for row in wrong
    ]
