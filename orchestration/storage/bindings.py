"""Bindings of checkpoints: a flow goes on with the tables that its checkpoint began with, or not at all.

They also keep the plan of the conf that a flow of gold began with, by which confs.py finds what the lake cannot go on with.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from gold.flows.spec import FlowSpec
from gold.windows.spec import Vector, kept_in_state
from orchestration.conf.changes import SettingPath
from orchestration.conf.model import Conf
from orchestration.errors import TidemarkError
from orchestration.storage.checkpoints import REPAIR, newest_batch
from orchestration.storage.delta import ask, is_table, max_in_log, open_table, table_id, written_by
from orchestration.storage.kept_confs import BINDING, binding_of
from orchestration.storage.seals import Seal
from orchestration.storage.tables import LakeStore, Table
from orchestration.storage.views import of_groups

NOTHING = "nothing"


class Planned(NamedTuple):
    """A part of the conf that a checkpoint depends on: the path of the setting, and its value in words."""

    path: SettingPath
    value: str


@dataclass(frozen=True)
class HeldBack:
    """A setting that a flow cannot go on with before a replay."""

    path: SettingPath
    sentence: str


@dataclass(frozen=True)
class Start:
    """Position from which a flow begins to read, and what a batch job has put into its tables already.

    `version`: the first that it reads of its source, so that its state is what it would be had it read all of them. Rows of bronze
    batches up to `bronze_batch` are written already, and windows that end at `closed_until_ms` (since 1970) or before.
    """

    version: int = 0
    bronze_batch: int = -1
    closed_until_ms: int = 0


THE_BEGINNING = Start()


def bind(lake: LakeStore, flow: str, written: tuple[Table, ...]) -> None:
    """Bind a new checkpoint to its tables. Refuse one on tables that hold rows: the flow would append all of them a second time."""
    if binding := _binding(lake, flow):
        _refuse_foreign(lake, flow, binding, written)
        _refuse_older(lake, flow, written)
        if new := _values(plan_of(lake.conf, flow)).items() - binding["plan"].items():  # of groups and metrics that came since it began
            binding_of(lake.checkpoint(flow)).write(binding | {"plan": binding["plan"] | dict(new)})
        return
    _refuse_missing(lake, flow, written)
    begin(lake, flow, written, THE_BEGINNING)


def begin(lake: LakeStore, flow: str, written: tuple[Table, ...], start: Start) -> None:
    """Bind a checkpoint that is not there yet to the tables that the flow writes."""
    Seal(lake.checkpoint(flow)).break_off()
    # Queries of one layer are prepared together, and settings are those of the session: a lane has what the default lane has.
    of_default = _binding(lake, flow.partition("@")[0]) if "@" in flow else {}
    partitions = of_default.get("shuffle_partitions", lake.conf.engine.shuffle_partitions)
    binding = _owner(lake, flow) | {"tables": _ids(written), "shuffle_partitions": partitions}
    binding_of(lake.checkpoint(flow)).write(binding | {"start": start, "plan": _values(plan_of(lake.conf, flow))})


def start_of(lake: LakeStore, flow: str) -> Start:
    """Return the start of a flow that is bound; the beginning for one that is not."""
    binding = _binding(lake, flow)
    return Start(**binding["start"]) if binding else THE_BEGINNING


def shuffle_partitions(lake: LakeStore, flow: str) -> int:
    """Return the number of partitions of the flow's state, which decides the partition of a key; Spark does not keep it."""
    return int(_binding(lake, flow)["shuffle_partitions"])


def changed_plan(lake: LakeStore, flow: str) -> list[HeldBack]:
    """List the changes of the conf since a flow began with which it cannot go on; none for a flow that has not begun."""
    began_with = _binding(lake, flow).get("plan", {})
    return [
        HeldBack(planned.path, f"{about} was {began_with[about]}, and is {planned.value} now")
        for about, planned in plan_of(lake.conf, flow).items()
        if began_with.get(about, planned.value) != planned.value and (planned.path[-1], planned.value) != ("vector", NOTHING)
    ]


def knows_group(lake: LakeStore, stream: str, group: str) -> bool:
    """Whether a stream has begun with the group."""
    return _late(group) in _binding(lake, f"gold.{stream}").get("plan", {})


def plan_of(conf: Conf, flow: str) -> dict[str, Planned]:
    """Describe the parts of the conf that must stay as they are while the checkpoint counts, by subject.

    Only what would lose or change rows in silence, or end the query: all else may change. An open window of gold knows its end only; state
    holds what the aggregation types ask for. A vector may end, but not begin: earlier windows would have none.
    """
    if not flow.startswith("gold."):
        return {}
    of_stream = conf.streams.get(flow.removeprefix("gold."), [])
    used = {name: conf.metrics[name] for group in of_stream for name in group.metrics}
    plan = {}
    for name, metric in sorted(used.items()):
        about = f"the window of {name} in conf/metrics.yml"
        plan[about] = Planned(("metrics", name, *metric.chosen), metric.window)
    needing = [name for name, metric in used.items() if kept_in_state({name: metric})]
    kept = Planned(("metrics", *needing[:1], *(["aggregation"] if needing else [])), ", ".join(kept_in_state(used)) or NOTHING)
    plan["what is aggregated beside count, min, max, sum and latest"] = kept
    for group in of_stream:
        plan[_late(group.name)] = Planned(("groups", group.name, "late"), group.late.value)
        plan[_vector(group.name)] = Planned(("groups", group.name, "vector"), _in_words(group.vector))
    return plan


def plan_of_flow(flow: FlowSpec) -> str:
    """Describe the question of a flow of flows.yml, without what it leaves out."""
    settings = asdict(flow.kind) | {"group": flow.group}
    return f"{type(flow.kind).__name__} ({', '.join(f'{key} {value}' for key, value in settings.items() if value is not None)})"


def _late(group: str) -> str:
    return f"what becomes of late rows of {group} in conf/groups.yml"


def _vector(group: str) -> str:
    return f"the vector of {group} in conf/groups.yml"


def _in_words(vector: Vector | None) -> str:
    if vector is None:
        return NOTHING
    filled = f", filled for {vector.max_fill_seconds} s" if vector.max_fill_seconds else ""
    return f"of each {vector.entity}: {', '.join(vector.features)}{filled}"


def _values(plan: Mapping[str, Planned]) -> dict[str, str]:
    return {about: planned.value for about, planned in plan.items()}


def _binding(lake: LakeStore, flow: str) -> dict[str, Any]:
    """Empty for a flow that is not bound."""
    return binding_of(lake.checkpoint(flow)).read() or {}


def _owner(lake: LakeStore, flow: str) -> dict[str, object]:
    return {"pipeline": lake.conf.pipeline, "flow": flow, "generation": lake.generation.holder(flow)}


def _ids(written: tuple[Table, ...]) -> dict[str, str]:
    return {table.name: table_id(table.location) for table in written if is_table(table.location)}


def _refuse_foreign(lake: LakeStore, flow: str, binding: Mapping[str, Any], written: tuple[Table, ...]) -> None:
    about = f"the checkpoint of {flow} at {lake.checkpoint(flow)}"
    for word, ours in _owner(lake, flow).items():
        if binding[word] != ours:
            raise TidemarkError(f"{about} is of {word} {binding[word]}, and not of {ours}.\n  {REPAIR}")
    for name, ours in _ids(written).items():
        if binding["tables"].get(name, ours) != ours:
            raise TidemarkError(
                f"{about} belongs to another {name} than the one at {lake.table_path(name)}: one of them is of another lake, or was made"
                f" anew.\n  {REPAIR}"
            )


def _refuse_older(lake: LakeStore, flow: str, written: tuple[Table, ...]) -> None:
    """Refuse a checkpoint that was restored alone: Delta would take what it appends for a repeat, and rows would vanish."""
    last = newest_batch(lake.checkpoint(flow) / "offsets")
    for table in written:
        if (batch := written_by(table.location, lake.app_id(flow, table.name))) > last:
            raise TidemarkError(
                f"the checkpoint of {flow} at {lake.checkpoint(flow)} has reached batch {last}, but {table.name} holds batch {batch}"
                f" already. The checkpoint was restored from an older time.\n  {REPAIR}"
            )


def refuse_unbound(lake: LakeStore, flows: Iterable[str]) -> None:
    """TidemarkError where a checkpoint has lost the file that says what it belongs to."""
    for flow in flows:
        if not (lake.checkpoint(flow) / BINDING).exists() and newest_batch(lake.checkpoint(flow) / "offsets") >= 0:
            raise TidemarkError(f"{lake.checkpoint(flow) / BINDING} is gone.\n  {REPAIR}")


def _refuse_missing(lake: LakeStore, flow: str, written: tuple[Table, ...]) -> None:
    refuse_unbound(lake, [flow])
    for table in written:
        if _holds_rows(lake, flow, table):
            raise TidemarkError(f"{table.name} holds rows, but the checkpoint of {flow} at {lake.checkpoint(flow)} is missing.\n  {REPAIR}")


def _holds_rows(lake: LakeStore, flow: str, table: Table) -> bool:
    if flow.startswith("silver."):
        return max_in_log(table.location, "bronze_batch") is not None
    names = [group.name for group in lake.conf.streams[flow.removeprefix("gold.")]]
    if not is_table(table.location):
        return False
    one = ask(f"select 1 from rows where {of_groups(names)} limit 1", {"rows": open_table(table.location)})
    return len(one.read_all()) > 0
