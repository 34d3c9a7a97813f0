"""Checkpoints: what binds a flow's progress to its tables."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

from orchestration.errors import TidemarkError
from orchestration.lake import Lake
from orchestration.plans import Plan, differences, plan_of
from orchestration.tables import Table, max_in_log

BINDING = "tidemark.json"


def bind(lake: Lake, flow: str, written: tuple[Table, ...]) -> None:
    """Bind a new checkpoint to its tables, or refuse.

    A flow that starts anew on tables that hold rows would append all of them a second time; bronze may, because its
    rows get new identities and silver drops the duplicates.
    """
    checkpoint, plan = lake.checkpoint(flow), plan_of(lake.conf, flow)
    if (checkpoint / BINDING).exists():
        _refuse_another_plan(checkpoint, flow, plan)
        return
    for table in written:
        batch = max_in_log(table, "bronze_batch" if flow.startswith(("bronze.", "silver.")) else "gold_batch")
        if batch is not None and not flow.startswith("bronze."):
            raise TidemarkError(
                f"{table.name} holds rows, but the checkpoint of {flow} at {checkpoint} is missing.\n"
                f"  Restore the checkpoint, or move {table.path} away to build the table anew from the layer before it."
            )
    newest = max_in_log(written[0], "bronze_batch") if flow.startswith("bronze.") else None
    write_durably(
        checkpoint / BINDING,
        {"flow": flow, "generation": lake.generation.holder(flow), "first_bronze_batch": 0 if newest is None else newest + 1, "plan": plan},
    )


def _refuse_another_plan(checkpoint: Path, flow: str, plan: Plan) -> None:
    changed = differences(json.loads((checkpoint / BINDING).read_text())["plan"], plan)
    if changed:
        raise TidemarkError(
            f"{flow} cannot go on: {'; '.join(changed)}.\n"
            "  Put it back, or name another `lake` in pipeline.yml: it is built anew from the landing folders."
        )


def first_bronze_batch(lake: Lake, table: Table) -> int:
    """What the checkpoint's batch 0 is called in bronze; batches never share a number, also when a checkpoint is replaced."""
    binding = json.loads((lake.checkpoint(table.name) / BINDING).read_text())
    return int(binding["first_bronze_batch"])


def write_durably(file: Path, content: Mapping[str, object]) -> None:
    """As JSON, whole or not at all: the name appears when the bytes are on disk."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(".draft")
    with draft.open("w") as stream:
        json.dump(content, stream)
        stream.flush()
        os.fsync(stream.fileno())
    draft.replace(file)
