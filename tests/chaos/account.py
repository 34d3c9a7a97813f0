"""What a disturbed plant must show in the end: the same tables as one that nobody disturbed, and both proofs."""

import pandas as pd
from deltalake import DeltaTable

from gold.revisions import VECTOR_KEY, WINDOW_KEY
from orchestration.lake import Lake
from tests.chaos.plants import Plant
from tests.lakes import assert_same

IDENTITY = ["bronze_batch", "bronze_row"]
MEASUREMENT = [*IDENTITY, "part"]
KEYS = {
    "bronze.events": IDENTITY,
    "silver.readings": MEASUREMENT,
    "silver.quarantine": MEASUREMENT,
    "silver.late": MEASUREMENT,
    "silver.duplicates": MEASUREMENT,
    "ops.ledger": ["bronze_batch", "source"],
    **{f"gold.{group}_aggregates": [*WINDOW_KEY] for group in ("kitchen", "building")},
    **{f"gold.{group}_vectors": [*VECTOR_KEY] for group in ("kitchen", "building")},
}
CLOCKS = {"ingested_at", "ingested_on"}
HISTORY = {"revision", "gold_batch"}
"""Gold reads what there is when it starts, so how it came to its windows is the run's own affair; the newest revision is not."""


def assert_as_undisturbed(plant: Plant, undisturbed: Plant) -> None:
    """Every table, lineage included: nothing twice, nothing missing, nothing else; `ledger` and `verify` say yes."""
    for command in ("ledger", "verify"):
        assert plant.exit_code(command) == 0, f"{command}: {plant.told()}"
    found, expected = plant.opened(), undisturbed.opened()
    for name, key in KEYS.items():
        rows = _newest(_table(found, name), name, key)
        assert_same(rows, _newest(_table(expected, name), name, key), key, [str(each) for each in rows if each not in CLOCKS | HISTORY])


def _table(lake: Lake, name: str) -> pd.DataFrame:
    return DeltaTable(lake.table_path(name)).to_pandas()


def _newest(rows: pd.DataFrame, name: str, key: list[str]) -> pd.DataFrame:
    """The newest revision of each key; no revision is there twice."""
    history = [each for each in ("revision",) if each in rows]
    assert not rows.duplicated([*key, *history]).any(), name
    return rows.sort_values(history or key).drop_duplicates(key, keep="last")
