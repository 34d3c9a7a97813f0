"""Checkpoints: what binds a flow's progress to its tables."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from orchestration.durably import write_durably
from orchestration.errors import TidemarkError
from orchestration.lake import Lake
from orchestration.offsets import knows_sources_by_name
from orchestration.plans import Plan, differences, plan_of
from orchestration.tables import Table, max_in_log

BINDING = "tidemark.json"


@dataclass(frozen=True)
class Start:
    """Where a flow begins to read, and what is in its tables already, from a batch job.

    `version`: the first that it reads of its source, so that its state is what it would be had it read all of them. Rows of bronze batches
    up to `bronze_batch` are written already, and windows that end at `closed_until_ms` (since 1970) or before.
    """

    version: int = 0
    bronze_batch: int = -1
    closed_until_ms: int = 0


THE_BEGINNING = Start()


def bind(lake: Lake, flow: str, written: tuple[Table, ...]) -> None:
    """Bind a new checkpoint to its tables, or refuse.

    A flow that starts anew on tables that hold rows would append all of them a second time; bronze may, because its
    rows get new identities and silver drops the duplicates.
    """
    checkpoint, plan = lake.checkpoint(flow), plan_of(lake.conf, flow)
    if (checkpoint / BINDING).exists():
        _refuse_places(checkpoint, flow)
        _refuse_another_plan(checkpoint, flow, plan)
        return
    for table in written:
        batch = max_in_log(table, "bronze_batch" if flow.startswith(("bronze.", "silver.")) else "gold_batch")
        if batch is not None and not flow.startswith("bronze."):
            raise TidemarkError(
                f"{table.name} holds rows, but the checkpoint of {flow} at {checkpoint} is missing.\n"
                "  Restore the checkpoint, or build the next generation from bronze, beside this one, with `tidemark replay`."
            )
    newest = max_in_log(written[0], "bronze_batch") if flow.startswith("bronze.") else None
    begin(lake, flow, THE_BEGINNING, 0 if newest is None else newest + 1)


def begin(lake: Lake, flow: str, start: Start, first_bronze_batch: int = 0) -> None:
    """Bind a checkpoint that is not there yet."""
    binding = {"flow": flow, "generation": lake.generation.holder(flow), "first_bronze_batch": first_bronze_batch}
    write_durably(lake.checkpoint(flow) / BINDING, binding | {"start": asdict(start), "plan": plan_of(lake.conf, flow)})


def start_of(lake: Lake, flow: str) -> Start:
    """Of a flow that is bound; the beginning, of one that is not."""
    file = lake.checkpoint(flow) / BINDING
    return Start(**json.loads(file.read_text())["start"]) if file.exists() else THE_BEGINNING


def _refuse_places(checkpoint: Path, flow: str) -> None:
    if not knows_sources_by_name(checkpoint):
        raise TidemarkError(
            f"{flow} cannot go on: its checkpoint at {checkpoint} was written by a version of Tidemark that did not name sources.\n"
            "  Name another `lake` in pipeline.yml: it is built anew from the landing folders."
        )


def _refuse_another_plan(checkpoint: Path, flow: str, plan: Plan) -> None:
    changed = differences(json.loads((checkpoint / BINDING).read_text())["plan"], plan)
    if changed:
        raise TidemarkError(
            f"{flow} cannot go on: {'; '.join(changed)}.\n"
            "  Put it back, or build the next generation under it, beside this one, with `tidemark replay`."
        )


def first_bronze_batch(lake: Lake, table: Table) -> int:
    """What the checkpoint's batch 0 is called in bronze; batches never share a number, also when a checkpoint is replaced."""
    binding = json.loads((lake.checkpoint(table.name) / BINDING).read_text())
    return int(binding["first_bronze_batch"])
