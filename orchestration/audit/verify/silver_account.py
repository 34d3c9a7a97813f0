"""The checks of silver over a prefix of bronze: every measurement is in exactly one table, as bronze gives it.

Which of the kept rows came too late, or were re-admitted from quarantine, is recorded and not computed anew: it depends on the size of
the batches, and on when somebody asked. The store holds `accepted` and `rejected`, evaluated from bronze, and the recorded `readings`,
`late`, `quarantine` and `duplicates`. `in_scope` is a condition: only bronze batches that fulfil it were evaluated. Recorded rows of others
are taken as they are.
"""

import duckdb

from orchestration.audit.verify.compare import Comparison, Outcome, compared, count, described, discrepancies, timed, together
from orchestration.audit.verify.store import DUPLICATES, IDENTITY, KEY, QUARANTINE, READINGS, column_names, listed

TABLES = ("readings", "late", "quarantine", "duplicates")
BY_IDENTITY, BY_KEY = f"using ({listed(IDENTITY)})", f"using ({listed(KEY)})"
COUNTED = ("device_id", "metric", "event_time", "value", "groups", *IDENTITY)
MEASURED = ("device_id", "metric", "event_time", "value")


def prepare(store: duckdb.DuckDBPyConnection, in_scope: str) -> None:
    """Make three tables.

    `kept`: readings and late. `wrong_keys`: keys without exactly one kept row, or whose kept row is not of the earliest batch.
    `counted`: the rows that gold must count, one a key with the values that bronze gives.
    """
    store.execute(f"create table of_bronze as select {listed(IDENTITY)} from accepted union all select {listed(IDENTITY)} from rejected")
    kept = " union all ".join(f"select {listed((*KEY, *IDENTITY))}, value, '{name}' as place from {name}" for name in ("readings", "late"))
    store.execute(f"create table kept as {kept}")
    store.execute(
        f"create table wrong_keys as select {listed(KEY)}, min(bronze_batch) filter (not is_kept) as earliest,"
        " count(*) filter (is_kept) as times, min(bronze_batch) filter (is_kept) as kept_batch"
        f" from (select {listed(KEY)}, bronze_batch, false as is_kept from accepted"
        # What was in quarantine when another row of its key came has no claim to be the kept one, however early it is.
        f"   anti join (from duplicates where retry is not null) {BY_IDENTITY}"
        f"  union all select {listed(KEY)}, bronze_batch, true from kept)"
        f" group by {listed(KEY)} having earliest is not null and (times <> 1 or kept_batch > earliest)"
    )
    _count_once(store, in_scope)


def _count_once(store: duckdb.DuckDBPyConnection, in_scope: str) -> None:
    """Count the earliest row of a wrong key, whatever the tables say."""
    before = " union all ".join(
        f"select {listed(COUNTED)}, {is_late} as is_late from {name} anti join wrong_keys {BY_KEY} where not {in_scope}"
        for name, is_late in (("readings", "false"), ("late", "true"))
    )
    store.execute(
        f"create table counted as select {listed(COUNTED, 'a.')}, k.place = 'late' as is_late"
        f" from accepted a join kept k {BY_IDENTITY} anti join wrong_keys w on {_equal(KEY, 'a.', 'w.')}"
        f" union all (select {listed(COUNTED)}, false from accepted semi join wrong_keys {BY_KEY}"
        f"  qualify row_number() over (partition by {listed(KEY)} order by {listed(IDENTITY)}) = 1)"
        f" union all {before}"
    )


def silver_outcomes(store: duckdb.DuckDBPyConnection, in_scope: str) -> list[Outcome]:
    """The account of bronze, then the four stored tables (`silver.without_measurements` is a view of quarantine)."""
    return [
        timed(lambda: _account(store, in_scope)),
        timed(lambda: together("silver.readings", [_as_evaluated(store, "readings", in_scope), _wrong_keys(store)])),
        timed(lambda: _as_evaluated(store, "late", in_scope)),
        timed(lambda: _quarantine(store, in_scope)),
        timed(lambda: _duplicates(store, in_scope)),
    ]


def _account(store: duckdb.DuckDBPyConnection, in_scope: str) -> Outcome:
    """Measurements of bronze that are in no table, or in more than one place."""
    recorded = " union all ".join(f"select {listed(IDENTITY)}, 'silver.{name}' as place from {name} where {in_scope}" for name in TABLES)
    store.execute(f"create or replace temp table recorded as {recorded}")
    return discrepancies(
        store,
        "bronze.events",
        count(store, "of_bronze"),
        f"select {described(IDENTITY, 'b.')} as row, 'unaccounted for' as what, null as in_table,"
        f" case when a.part is null then 'rejected' else {described(MEASURED, 'a.')} end as from_bronze"
        f" from (from of_bronze anti join recorded {BY_IDENTITY}) b left join accepted a {BY_IDENTITY}"
        f" union all select {described(IDENTITY)}, 'more than once', string_agg(place, ' and ' order by place), 'one place'"
        f" from recorded group by {listed(IDENTITY)} having count(*) > 1",
    )


def _as_evaluated(store: duckdb.DuckDBPyConnection, name: str, in_scope: str) -> Outcome:
    """Rows of readings or late that are no accepted measurement, or another one."""
    some = f"(from {name} where {in_scope})"
    cells = [cell for cell in column_names(READINGS) if cell not in IDENTITY]
    # Only rows that differ are looked at closely: nearly all are the same.
    store.execute(
        f"create or replace temp table odd as select distinct {listed(IDENTITY, 'f.')} from {some} f left join accepted e {BY_IDENTITY}"
        f" where e.part is null or ({listed(cells, 'f.')}) is distinct from ({listed(cells, 'e.')})"
    )
    of_table, of_bronze = (f"(from {relation} semi join odd {BY_IDENTITY})" for relation in (some, "accepted"))
    outcome = compared(store, of_table, of_bronze, Comparison(f"silver.{name}", IDENTITY, cells, {}))
    return Outcome(outcome.table, count(store, some), outcome.differences, outcome.first)


def _wrong_keys(store: duckdb.DuckDBPyConnection) -> Outcome:
    label = f"'silver.' || place || ' ' || {described(IDENTITY)}"
    return discrepancies(
        store,
        "silver.readings",
        0,
        f"select {described(KEY, 'w.')} as row, places as in_table, 'one of bronze_batch ' || earliest as from_bronze,"
        " case times when 0 then 'missing' when 1 then 'not the earliest' else 'more than once' end as what"
        f" from wrong_keys w left join (select {listed(KEY)}, string_agg({label}, ' and ' order by place) as places"
        f"  from kept semi join wrong_keys {BY_KEY} group by all) {BY_KEY}",
    )


def _quarantine(store: duckdb.DuckDBPyConnection, in_scope: str) -> Outcome:
    columns = column_names(QUARANTINE)
    sorted_rules = "list_sort(broken_rules) as broken_rules"
    recorded, expected = (
        f"(select * replace ({sorted_rules}) from (select {listed(columns)} from {name} where {in_scope}))"
        for name in ("quarantine", "rejected")
    )
    cells = [name for name in columns if name not in IDENTITY]
    return compared(store, recorded, expected, Comparison("silver.quarantine", IDENTITY, cells, {}))


def _duplicates(store: duckdb.DuckDBPyConnection, in_scope: str) -> Outcome:
    """Every accepted measurement that is not kept itself, with the kept one of its key; wrong keys are differences of the readings."""
    columns = column_names(DUPLICATES)
    own = [name for name in columns if not name.startswith("kept_") and name not in ("is_conflict", "retry")]
    expected = (
        f"(select {listed(own, 'a.')}, k.bronze_batch as kept_batch, k.bronze_row as kept_row, k.part as kept_part,"
        " a.value <> k.value as is_conflict"
        f" from (from accepted anti join kept {BY_IDENTITY} anti join wrong_keys w on {_equal(KEY, 'accepted.', 'w.')}) a"
        f" join kept k on {_equal(KEY, 'a.', 'k.')})"
    )
    recorded = f"(from duplicates anti join wrong_keys {BY_KEY} where {in_scope})"
    cells = [name for name in columns if name not in (*IDENTITY, "retry")]
    return compared(store, recorded, expected, Comparison("silver.duplicates", IDENTITY, cells, {}))


def _equal(names: tuple[str, ...], left: str, right: str) -> str:
    return " and ".join(f"{left}{name} = {right}{name}" for name in names)
