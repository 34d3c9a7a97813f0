"""Share of vectors that lack a feature or carry it forward from an earlier window: against the past, by feature and entity."""

from orchestration.quality.measures.context import HORIZON_HOURS, Context
from orchestration.quality.measures.findings import Row, not_checked, outcome_of, share
from orchestration.quality.outcome import Outcome

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
    return outcome_of(offenders, lambda row: _describe(row, word), f"no feature is {word} more often than before")


def _describe(row: Row, word: str) -> str:
    of = "all vectors" if row["entity"] is None else f"vectors of {row['entity']}"
    before = f"{share(row['share_before'])} before"
    return f"feature {row['feature']} is {word} in {share(row['share'])} of {of} ({row['n']:,} of {row['recent']:,}), {before}"
