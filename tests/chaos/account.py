"""What a disturbed plant must show in the end: the same tables as one that nobody disturbed, and both proofs."""

from collections.abc import Mapping

import pandas as pd

from gold.schema import VECTOR_KEY, WINDOW_KEY
from orchestration.storage.delta import open_table
from silver.schema import KEYS as MEASURED
from tests.chaos.plants import Plant
from tests.lakes import assert_same

Tables = Mapping[str, pd.DataFrame]
IDENTITY = ["bronze_batch", "bronze_row"]
MEASUREMENT = [*IDENTITY, "part"]
LINEAGE = {*MEASUREMENT, "kept_batch", "kept_row", "kept_part", "cause"}
GOLD = {"gold.aggregates": [*WINDOW_KEY], "gold.vectors": [*VECTOR_KEY]}
FLOWS = {
    "gold.sessions": ["flow", "device_id", "session_start"],
    "gold.pairs": ["flow", *(f"{side}_{name}" for side in ("left", "right") for name in MEASUREMENT)],
    "gold.states": ["flow", "device_id", "changed_at", "state"],
    "gold.measures": ["flow", "device_id", "window_start"],
    "gold.alerts": ["alert", "entity", "changed_at", "state", "previous_state"],
}
"""Of readings that came in time, which are others where the cut is another."""
KEYS = {
    "bronze.events": IDENTITY,
    **{f"silver.{name}": MEASUREMENT for name in ("readings", "quarantine", "late", "duplicates")},
    "ops.ledger": ["bronze_batch", "source", "events"],  # a retry corrects it by a row of no events
    **GOLD,
    **FLOWS,
}
KEYS_OF_ANOTHER_CUT = {
    "bronze.events": ["position", "payload"],
    "silver.readings": [*MEASURED],
    "silver.quarantine": ["position", "payload"],
    "silver.duplicates": [*MEASURED, "value"],
    "ops.ledger": ["source"],
    **GOLD,
}
NEVER_THE_SAME = {"ingested_at", "ingested_on", "revision", "gold_batch", "known_at"}
"""Clocks; and how gold came to its windows: it reads what there is when it starts. The newest revision is the same."""


def assert_as_undisturbed(plant: Plant, undisturbed: Plant) -> None:
    """Every table, lineage included: nothing twice, nothing missing, nothing else; `ledger` and `verify` say yes.

    Spark notes the files of a batch before it logs the batch. After a kill between the two it takes the next file into the same
    batch, and what is late depends on the cut: late rows and readings are then compared together, and lineage is not.
    """
    for command in ("ledger", "verify"):
        assert plant.exit_code(command) == 0, f"{command}: {plant.log_end()}"
    found, expected = tables(plant), tables(undisturbed)
    keys = KEYS
    if cut(found) != cut(expected):
        keys, found, expected = KEYS_OF_ANOTHER_CUT, without_cut(found), without_cut(expected)
    for name, key in keys.items():
        columns = [str(each) for each in expected[name] if each not in NEVER_THE_SAME]
        assert_same(found[name], expected[name], key, columns)


def tables(plant: Plant) -> Tables:
    """All that is compared; of gold the newest revisions. No key is in a table twice."""
    lake, found = plant.opened(), {}
    for name, key in KEYS.items():
        stored = lake.generation.gold("plant", name.removeprefix("gold.")) if name in GOLD else name
        rows = open_table(lake.table_path(stored)).to_pandas()
        history = ["revision"] if name in GOLD else []
        assert not rows.duplicated([*key, *history]).any(), name
        found[name] = rows.sort_values(history or key).drop_duplicates(key, keep="last")
    return found


def cut(found: Tables) -> dict[str, int]:
    """The bronze batch of each file."""
    return dict(found["bronze.events"].groupby("position")["bronze_batch"].max())


def without_cut(found: Tables) -> Tables:
    """The tables, but for what depends on how files became batches."""
    ledger = found["ops.ledger"].groupby("source", as_index=False).sum()
    accepted = pd.concat([found["silver.readings"], found["silver.late"]])
    assert not accepted.duplicated([*MEASURED]).any()
    counts = ledger.assign(readings=ledger["readings"] + ledger["late"]).drop(columns="late")
    cutless = {**found, "silver.readings": accepted, "ops.ledger": counts}
    return {name: rows.drop(columns=LINEAGE & {*map(str, rows)}) for name, rows in cutless.items()}
