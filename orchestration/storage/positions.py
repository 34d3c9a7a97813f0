"""Positions of gold, flows and alerts, from their checkpoints and files: without Spark, without reading a row."""

from dataclasses import dataclass, field, replace

from gold.flows.in_time import Final
from gold.flows.slices import THE_BEGINNING
from orchestration.location import Location
from orchestration.storage.bindings import start_of
from orchestration.storage.checkpoints import REPAIR, last_batch, newest_batch, offsets, read_up_to
from orchestration.storage.delta import max_in_log, table_id, written_by
from orchestration.storage.gate_state import LATE, is_holding, read_gate_state
from orchestration.storage.ops_tables import LEDGER, LEDGER_FLOW
from orchestration.storage.state_file import StateFile
from orchestration.storage.tables import LakeStore

FLOWS = "gold.flows"
"""The job that writes the flows of flows.yml and the alerts of alerts.yml."""
ALERTS = "gold.alerts"
JUDGED = "anomalies"
"""The job that judges the vectors of a stream is called `anomalies/<stream>`."""


@dataclass(frozen=True)
class GoldPosition:
    """After the micro-batch `gold_batch`: windows that end at `closed_until_ms` (since 1970) or before are emitted.

    `bronze_batch`: the newest whose readings gold has read. `accounted_for`: the newest at or before it whose late rows are known.
    `retried`: the newest retry of quarantine, whose re-admitted rows are among the late ones; -1 before the first.
    """

    gold_batch: int
    closed_until_ms: int
    bronze_batch: int
    accounted_for: int
    retried: int = -1

    def as_far_as(self, before: "GoldPosition") -> "GoldPosition":
        """Return this position, of bronze no earlier than that of a step before it.

        Batches without readings count as read until silver has readings after them. Their late rows must not be new again then.
        """
        bronze_batch, accounted = max(self.bronze_batch, before.bronze_batch), max(self.accounted_for, before.accounted_for)
        return replace(self, bronze_batch=bronze_batch, accounted_for=accounted)


@dataclass(frozen=True)
class FlowPosition:
    """Readings before `until` (microseconds since 1970) are counted; with them all that counts of bronze up to `bronze_batch`.

    `lateness_seconds`: of the policy then. Spark takes a shorter one over a batch later than the conf has it. `final`: where silver has
    several lanes. Of an alert `until` is the wall clock of its newest step, and windows that end at `closed_until_ms` or before are judged.
    `amended`: the last step of amendments whose vectors are judged.
    """

    bronze_batch: int = -1
    until: int = THE_BEGINNING
    lateness_seconds: int = 0
    final: Final = field(default_factory=Final)
    closed_until_ms: int = 0
    gold_batch: int = -1
    amended: int = -1


@dataclass(frozen=True)
class FlowStep:
    """The step of a flow or an alert from `after` to `up_to`; None: no step is begun.

    `carried`: the digest of what the step before left; empty for nothing. By the wall clock, in microseconds since 1970: `began`, since
    when `plan` holds; `rings_at`, when time alone may change something; `noted_at`, when this was written, 0 in lakes of earlier versions.
    """

    number: int = 0
    after: FlowPosition = field(default_factory=FlowPosition)
    up_to: FlowPosition | None = None
    plan: str = ""
    began: int = THE_BEGINNING
    carried: str = ""
    rings_at: int | None = None
    noted_at: int = 0


@dataclass(frozen=True)
class JudgedAhead:
    """The version of gold.alerts of a generation at which all alerts that do not look at gold are equally far, ahead of the snapshot."""

    generation: int
    version: int


def judged_ahead(lake: Location) -> StateFile[JudgedAhead]:
    """Return the file by which channels, page and command see what no snapshot has yet."""
    return StateFile(lake / "alerts" / "judged_ahead.json", JudgedAhead, "Remove it: what was judged is then seen with the next snapshot.")


def step_file(lake: LakeStore, name: str) -> StateFile[FlowStep]:
    """Return the file of the flow or alert of that name; it is not there where the flow has not begun."""
    return StateFile(step_folder(lake, name) / "slice.json", FlowStep, REPAIR)


def step_folder(lake: LakeStore, name: str) -> Location:
    """Return the folder of a flow or alert; of what judges a stream of gold below the checkpoint of that, as a replay builds both anew."""
    kind, _, stream = name.partition("/")
    return lake.checkpoint(f"gold.{stream}") / kind if kind == JUDGED and stream else lake.checkpoint(FLOWS) / name


def gold_position(lake: LakeStore, stream: str) -> GoldPosition | None:
    """Return the position after the newest finished micro-batch; None where there is none yet."""
    batch = last_batch(lake.checkpoint(f"gold.{stream}")).last_batch
    if batch is None:
        return None
    passed = passed_by_silver(lake)
    bronze_batch = read_by(lake, stream, batch)
    newest = max_in_log(lake.tables["silver.readings"].location, "bronze_batch")
    if passed is not None and bronze_batch == (-1 if newest is None else newest):
        bronze_batch = max(bronze_batch, passed)  # batches after it have no readings
    accounted, retries = late_rows_known(lake)
    return GoldPosition(batch, closed_until_ms(lake, stream, batch), bronze_batch, min(bronze_batch, accounted), retries)


def late_rows_known(lake: LakeStore) -> tuple[int, int]:
    """Return how far the ledger and retries have come; behind a gate, how far they were when what they wrote had passed it."""
    if not is_holding(lake.conf):
        return accounted_for(lake), retried(lake)
    marks = read_gate_state(lake.conf.lake, LATE, lake.table_path(LATE)).marks
    return marks.get("accounted_for", -1), marks.get("retried", -1)


def read_by(lake: LakeStore, stream: str, gold_batch: int) -> int:
    """The newest bronze batch that had readings when the micro-batch read them, those of a batch job before it included; -1 for none."""
    newest = newest_read(lake, f"gold.{stream}", gold_batch, "silver.readings") if gold_batch >= 0 else None
    before = start_of(lake, f"gold.{stream}").bronze_batch
    return before if newest is None else max(newest, before)


def closed_until_ms(lake: LakeStore, stream: str, gold_batch: int) -> int:
    """Return the watermark of a micro-batch: rows behind it are not counted, windows that end there or before are emitted."""
    flow = f"gold.{stream}"
    return max(offsets(lake.checkpoint(flow), gold_batch).watermark_ms, start_of(lake, flow).closed_until_ms)


def passed_by_silver(lake: LakeStore, query: str = "silver.readings") -> int | None:
    """The newest bronze batch whose readings are all written; None before the first. `query`: of a lane."""
    done = last_batch(lake.checkpoint(query)).last_batch
    return None if done is None else newest_read(lake, query, done, "bronze.events")


def is_begun_by_silver(lake: LakeStore, version: int) -> bool:
    """Whether silver has begun with a version of bronze.events that holds rows, or has read it."""
    checkpoint = lake.checkpoint("silver.readings")
    last_begun = newest_batch(checkpoint / "offsets")
    return last_begun >= 0 and read_up_to(checkpoint, last_begun, table_id(lake.table_path("bronze.events"))) >= (version, 0)


def newest_read(lake: LakeStore, flow: str, batch: int, source: str) -> int | None:
    """The newest bronze batch in what a micro-batch of the flow, and those before it, have read of a table; None for none."""
    table = lake.tables[source]
    version, index = read_up_to(lake.checkpoint(flow), batch, table_id(table.location))
    newest: int | None = max_in_log(table.location, "bronze_batch", version if index >= 0 else version - 1)
    return newest


def accounted_for(lake: LakeStore) -> int:
    """The newest bronze batch that the ledger has passed; -1 before the first."""
    return written_by(lake.table_path(LEDGER), lake.app_id(LEDGER_FLOW, LEDGER))


def retried(lake: LakeStore) -> int:
    """The number of the newest retry that re-admitted a row; -1 before the first. By the rows themselves, wherever they come from."""
    marks = (max_in_log(lake.tables[f"silver.{name}"].location, "retry") for name in ("late", "duplicates"))
    return max((int(mark) for mark in marks if mark is not None), default=-1)
