"""Events that `tidemark quarantine retry` judged anew, by the conf of that time. Which ones they are shows in the tables themselves."""

from collections.abc import Callable, Collection, Iterable
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa

from orchestration.audit.verify.confs import ConfEra, ConfHistory
from orchestration.audit.verify.silver_evaluator import KINDS, Registered, evaluate_into
from orchestration.audit.verify.store import IDENTITY, QUARANTINE, READINGS, evaluated_view, listed

EVENT = ("bronze_batch", "bronze_row")
BY_IDENTITY, BY_EVENT = f"using ({listed(IDENTITY)})", f"using ({listed(EVENT)})"
NOT_AT_ONCE = f"anti join accepted_at_once {BY_IDENTITY}"
READMITTED = f"""
  create table readmitted as select {listed(IDENTITY)} from duplicates where retry is not null
    union select {listed(IDENTITY)} from late where retry is not null
"""
# What was accepted when it came: a retry leaves that alone.
ACCEPTED_AT_ONCE = f"""
  create table accepted_at_once as select {listed(IDENTITY)} from (
    {" union all ".join(f"select {listed(IDENTITY)} from {name}" for name in ("readings", "late", "duplicates"))}
  ) anti join readmitted {BY_IDENTITY}
"""
RECORDED = f"""
  select {listed(IDENTITY)}, list_sort(broken_rules) as broken from quarantine union all select {listed(IDENTITY)}, [] from readmitted
"""
JUDGED = f"""
  select {listed(IDENTITY)}, list_sort(broken_rules) as broken from rejected_{{name}}
  union all select {listed(IDENTITY)}, [] from accepted_{{name}} anti join accepted_at_once {BY_IDENTITY}
"""
VERDICTS = f"select {listed(EVENT)}, list((part, broken) order by part) as verdict from ({{measurements}}) group by all"
SAME = f"select {listed(EVENT)} from ({{recorded}}) r join ({{judged}}) j {BY_EVENT} where r.verdict = j.verdict"
Events = Callable[[str], Iterable[pa.Table]]


def judge_retried(store: duckdb.DuckDBPyConnection, folder: Path, history: ConfHistory, registry: Registered, events: Events) -> None:
    """Makes `accepted` and `rejected`: rows of `accepted_0` and `rejected_0`, but for events that hold what a retry gave instead.

    `events`: chunks of the events of bronze that fulfil a condition.
    """
    store.execute(READMITTED)
    store.execute(ACCEPTED_AT_ONCE)
    recorded = VERDICTS.format(measurements=RECORDED)
    store.execute(f"create table settled as {SAME.format(recorded=recorded, judged=VERDICTS.format(measurements=JUDGED.format(name=0)))}")
    parts = {kind: [f"from {kind}_0"] for kind in KINDS}
    for name, conf in enumerate(reversed(history.retried), 1):
        again = store.sql(f"select {listed(EVENT)} from ({recorded}) anti join settled {BY_EVENT}").to_arrow_table()
        if not again.num_rows:
            break
        among = f"bronze_batch in ({', '.join(map(str, sorted(set(again['bronze_batch'].to_pylist()))))})"
        chunks = map(partial(_among, {*zip(*(again[name].to_pylist() for name in EVENT), strict=True)}), events(among))
        evaluate_into(folder / f"retry-{name}", chunks, 0, registry, [ConfEra(0, conf)], lambda _: None)
        for kind, columns in zip(KINDS, (READINGS, QUARANTINE), strict=True):
            evaluated_view(store, f"{kind}_{name}", columns, folder / f"retry-{name}" / kind)
        same = SAME.format(recorded=recorded, judged=VERDICTS.format(measurements=JUDGED.format(name=name)))
        store.execute(f"create table retried_{name} as from ({same}) anti join settled {BY_EVENT}")
        store.execute(f"insert into settled from retried_{name}")
        for kind in KINDS:
            parts[kind] = [f"{part} anti join retried_{name} {BY_EVENT}" for part in parts[kind]]
            parts[kind].append(f"from {kind}_{name} semi join retried_{name} {BY_EVENT} {NOT_AT_ONCE}")
        parts["accepted"].append(f"from accepted_0 semi join retried_{name} {BY_EVENT} semi join accepted_at_once {BY_IDENTITY}")
    for kind in KINDS:
        store.execute(f"create view {kind} as {' union all by name '.join(parts[kind])}")


def _among(chosen: Collection[tuple[int, int]], chunk: pa.Table) -> pa.Table:
    identities = zip(*(chunk[name].to_pylist() for name in EVENT), strict=True)
    return chunk.filter(pa.array([identity in chosen for identity in identities], pa.bool_()))
