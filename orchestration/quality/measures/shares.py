"""Shares, against a bound and against the past: of arrived rows that are in quarantine, late or duplicates; of vectors that lack a feature.

Rows count by hour of arrival, because a row in quarantine may have no event time.
"""

from orchestration.quality.measures.context import HORIZON_HOURS, Context, Row, not_checked, outcome_of, share
from orchestration.quality.outcome import Outcome

ENOUGH = 1_000
"""Rows that arrived before; with fewer there is no history."""
NAMES = {"silver.quarantine": "in quarantine", "silver.late": "late", "silver.duplicates": "twice"}

# A row that breaks two rules counts for each. The profile holds readings and late rows. An unreadable device id is ''.
ARRIVALS = """
  create or replace temp table arrivals as
  with rows as (
    select 'accepted' as kind, null as rule, device_id, arrived, sum(n) as n from profile group by all
    union all select 'late', null, device_id, epoch_us(ingested_at) // 3600000000, count(*) from "{late}" group by all
    union all select 'twice', null, device_id, epoch_us(ingested_at) // 3600000000, count(*) from "{duplicates}" group by all
    union all select 'broken', null, device_id, epoch_us(ingested_at) // 3600000000, count(*) from "{quarantine}" group by all
    union all select 'in quarantine', rule, device_id, epoch_us(ingested_at) // 3600000000, count(*)
      from "{quarantine}", unnest(broken_rules) as broken(rule) group by all
  )
  select kind, rule, coalesce(device_id, '') as device_id, arrived > (select max(arrived) from rows) - $hours as is_recent, sum(n) as n
  from rows where arrived > (select max(arrived) from rows) - $horizon group by all
"""
# Of each device, and (device_id null) of all.
SHARES = """
  with total as (
    select case when grouping(device_id) = 0 then device_id end as device_id,
      coalesce(sum(n) filter (is_recent), 0) as recent, coalesce(sum(n) filter (not is_recent), 0) as before
    from arrivals where kind in ('accepted', 'twice', 'broken') group by grouping sets ((device_id), ())
  ),
  parts as (
    select case when grouping(device_id) = 0 then device_id end as device_id, rule,
      coalesce(sum(n) filter (is_recent), 0) as n, coalesce(sum(n) filter (not is_recent), 0) as n_before
    from arrivals where kind = $kind group by grouping sets ((device_id, rule), (rule))
  )
  select parts.device_id, rule, n, recent, before, n / recent as share, if(before >= $enough, n_before / before, null) as share_before
  from parts join total on parts.device_id is not distinct from total.device_id
  where recent > 0 and parts.device_id is distinct from '' order by parts.device_id is not null, share desc, parts.device_id, rule
"""

# A feature of all entities (entity null), or of one.
FEATURES = """
  with recent as (
    select entity, "{column}" as features, epoch_us(window_end) // 3600000000 as hour from "{view}"
    where window_end > (select max(window_end) from "{view}") - to_hours({horizon})
  ),
  sides as (select *, hour > (select max(hour) from recent) - $hours as is_recent from recent),
  sizes as (
    select case when grouping(entity) = 0 then entity end as entity,
      count(*) filter (is_recent) as recent, count(*) filter (not is_recent) as before
    from sides group by grouping sets ((entity), ())
  ),
  lacking as (select entity, unnest(features) as feature, is_recent from sides),
  counted as (
    select case when grouping(entity) = 0 then entity end as entity, feature,
      count(*) filter (is_recent) as n, count(*) filter (not is_recent) as n_before
    from lacking group by grouping sets ((entity, feature), (feature))
  )
  select counted.entity, feature, n, recent, n / recent as share, n_before / before as share_before
  from counted join sizes on counted.entity is not distinct from sizes.entity
  where recent >= $min_rows and before >= $min_rows order by counted.entity is not null, share - share_before desc, counted.entity, feature
"""
WORDS = {"missing": "missing", "filled": "carried forward"}

ALARMS = """
  select count(*) filter (where is_anomaly) as alarms, count(distinct entity) as entities from "{view}"
  where revision = 0 and score is not null and window_end > (select max(window_end) from "{view}") - to_days($days::int)
"""


def usual_share(context: Context, table: str, *, hours: int, max_share: float, times: float, min_share: float, min_rows: int) -> Outcome:
    """Check that at most `max_share` of the rows of the last hours are in the table, and for a device and rule less than `times` the
    earlier share.

    Fewer than `min_rows` rows pass, and so does less than a `min_share` of a device: after one row a week, five rows are not many.
    """
    arrivals(context, hours)
    shares = context.ask(SHARES, kind=NAMES[table], enough=ENOUGH)
    many = [row for row in shares if row["n"] >= min_rows]
    offenders = [row for row in many if _is_flood(row, max_share) or _is_unusual(row, times, min_share)]
    (total,) = context.ask("select coalesce(sum(n) filter (is_recent), 0) as n from arrivals where kind in ('accepted', 'twice', 'broken')")
    if not total["n"]:
        return not_checked("nothing has arrived")
    most = max((row["share"] for row in shares if row["device_id"] is None), default=0.0)
    fine = f"{share(most)} of {total['n']:,} rows {'by one rule ' * (table == 'silver.quarantine')}{NAMES[table]}"
    return outcome_of(offenders, lambda row: _describe(row, NAMES[table]), fine)


def arrivals(context: Context, hours: int) -> None:
    """Create the table arrivals; grain: kind, rule, device, and whether it arrived in the last `hours`."""
    context.needs("profile")
    views = {name: context.view_of(f"silver.{name}") for name in ("late", "duplicates", "quarantine")}
    context.store.execute(ARRIVALS.format(**views), {"hours": hours, "horizon": HORIZON_HOURS})


def _is_flood(row: Row, max_share: float) -> bool:
    return row["device_id"] is None and row["share"] > max_share


def _is_unusual(row: Row, times: float, min_share: float) -> bool:
    return row["share_before"] is not None and row["share"] >= max(min_share, times * row["share_before"])


def _describe(row: Row, where: str) -> str:
    subject = "of all rows" if row["device_id"] is None else f"of device {row['device_id']}"
    by = f" by rule {row['rule']}" if row["rule"] else ""
    before = "" if row["share_before"] is None else f", {share(row['share_before'])} before"
    return f"{share(row['share'])} {subject} {where}{by} ({row['n']:,} of {row['recent']:,}{before})"


def usual_features(context: Context, table: str, *, column: str, hours: int, max_increase: float, min_rows: int) -> Outcome:
    """In the last hours the share of vectors that name a feature in `column` (missing or filled) grew by at most `max_increase`."""
    if column not in WORDS:
        raise ValueError(f"column is {column!r}; use missing or filled")
    view = context.view_of(table)
    sql = "select count(*) as n, (max(epoch_us(window_end)) - min(epoch_us(window_end))) // 3600000000 as hours"
    (total,) = context.ask(f'{sql} from "{view}"')
    if not total["n"] or total["hours"] < 2 * hours:
        return not_checked(f"there are {total['hours'] or 0:,} hours of vectors, {2 * hours} are needed")
    shares = context.ask(FEATURES.format(column=column, view=view, horizon=HORIZON_HOURS), hours=hours, min_rows=min_rows)
    grown = [row for row in shares if row["share"] - row["share_before"] > max_increase]
    of_all = {row["feature"] for row in grown if row["entity"] is None}
    offenders = [row for row in grown if row["entity"] is None or row["feature"] not in of_all]
    word = WORDS[column]
    return outcome_of(offenders, lambda row: _describe_feature(row, word), f"no feature is {word} more often than before")


def _describe_feature(row: Row, word: str) -> str:
    subject = "all vectors" if row["entity"] is None else f"vectors of {row['entity']}"
    before = f"{share(row['share_before'])} before"
    return f"feature {row['feature']} is {word} in {share(row['share'])} of {subject} ({row['n']:,} of {row['recent']:,}), {before}"


def planned_alarms(context: Context, table: str, *, days: int, times: float) -> Outcome:
    """Vectors of the last days raised at most `times` the alarms that the group plans."""
    group = context.lake.conf.group_of(table)
    assert group
    assert group.anomalies
    (row,) = context.ask(ALARMS.format(view=context.view_of(table)), days=days)
    if not row["entities"]:
        return not_checked("no vector has a score")
    planned = group.anomalies.planned_per_week * row["entities"] * days / 7
    said = f"{row['alarms']:,} alarms in {days} days, and {planned:,.4g} are planned"
    return outcome_of([row] if row["alarms"] > times * planned else [], lambda _: said, said)
