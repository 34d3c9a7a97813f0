"""`tidemark dbt` on one screen: lease, project, guard, sources of one snapshot, dbt, and what it made recorded, last of all."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from orchestration.engine.lake import Lake
from orchestration.errors import TidemarkError
from orchestration.serving.dbt import build_state as begun
from orchestration.serving.dbt import maintenance as upkeep
from orchestration.serving.dbt import project, targets
from orchestration.serving.dbt import sources as prepared
from orchestration.serving.dbt import spark_tuning as pace
from orchestration.storage import marts
from orchestration.storage.lease import Lease, sole_writer
from orchestration.storage.marts import Build
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.snapshots import find_snapshot

if TYPE_CHECKING:
    from dbt.cli.main import dbtRunnerResult

    from orchestration.serving.dbt.invocation import Call, Target

Tell = Callable[[str], None]
FULL_REFRESH = "DBT_FULL_REFRESH"


@dataclass(frozen=True)
class Task:
    """One command line, at one snapshot."""

    lake: Lake
    call: "Call"
    cut: Snapshot
    tell: Tell

    @property
    def root(self) -> Path:
        """The folder of the lake."""
        return self.lake.conf.lake

    def basis(self, *, leaves_out_rows: bool) -> str:
        """What its marts depend on beside rows."""
        return begun.basis_of(self.lake.conf, self.cut, project.shipped(), leaves_out_rows=leaves_out_rows)


def run(lake: Lake, arguments: Sequence[str], dropped: Sequence[str], tell: Tell) -> int:
    """The exit code of a command line of dbt. `dropped`: marts that are given up before. HeldError while another one runs."""
    os.environ["DO_NOT_TRACK"] = "1"  # before dbt is imported
    from orchestration.serving.dbt import invocation

    call = invocation.Call.of(arguments)
    if call.is_version:
        print(invocation.versions())
        return invocation.DONE
    if call.is_help or call.command is None:
        return invocation.exit_code(invocation.invoked(arguments))
    with sole_writer(targets.folder(lake.conf.lake), tell) as lease:
        os.environ.update(project.surroundings(lake.conf, project.prepared(lake.conf)))
        time.tzset()
        call.check()
        for name in dropped:
            targets.drop(lake.conf.lake, name)
        if call.is_offline:
            return invocation.exit_code(invocation.invoked(arguments))
        return _at_one_cut(Task(lake, call, _cut(lake.conf.lake, call), tell), lease)


def _cut(lake: Path, call: "Call") -> Snapshot:
    """The newest snapshot for what writes; else that of which the marts on the disk are, so that tests compare like with like."""
    newest = find_snapshot(lake)
    if newest is None:
        raise TidemarkError("there is no snapshot yet that marts could be built of; make one with `tidemark run --once`.")
    underway, known = begun.begun(lake), marts.builds(lake)
    if call.is_of_newest or not (underway or known):
        return newest
    try:
        return find_snapshot(lake, underway.snapshot_id if underway else known[-1].snapshot_id) or newest
    except TidemarkError:  # a build that was never recorded keeps no snapshot from expiring
        return newest


def _at_one_cut(task: Task, lease: Lease) -> int:
    from orchestration.serving.dbt import invocation

    if task.call.writes:
        _guard(task.root)
    tables = prepared.pinned(task.lake.conf, task.cut)
    is_small = pace.is_small(tables["silver.readings"])
    parsed = _started(task, lease, is_small=is_small)
    if (manifest := invocation.manifest_of(parsed)) is None:
        return invocation.exit_code(parsed)
    found = invocation.targets(manifest)
    since = _begin(task, found) if task.call.writes else None
    spark = task.lake.spark
    pace.prepare(spark, is_small=is_small)
    targets.register(spark, task.root, invocation.schemas(manifest))
    prepared.show(task.lake, tables, task.cut, since, project.text(Path(os.environ["DBT_PROJECT_DIR"])))
    if is_small:
        prepared.keep_in_memory(spark)
    answer = _invoked(task.call)
    if task.call.writes:
        _end(task, found, invocation.made(answer) if answer.success else set())
    return invocation.exit_code(answer)


def _guard(lake: Path) -> None:
    if (underway := begun.begun(lake)) is not None:
        targets.sweep(lake, underway.found)
    targets.refuse_lost(lake)


def _started(task: Task, lease: Lease, *, is_small: bool) -> "dbtRunnerResult":
    """The project, read while Java starts."""
    from orchestration.serving.dbt import invocation

    if is_small:
        pace.prepare_java()
    with ThreadPoolExecutor(1) as beside:
        starting = beside.submit(lambda: task.lake.spark)
        parsed = invocation.invoked(["parse", "--quiet", *task.call.of_parsing])
        lease.share(starting.result())
    return parsed


def _begin(task: Task, found: Mapping[str, "Target"]) -> Build | None:
    """Note that this begins; what it goes on from, None where all is made anew."""
    basis, on_disk = task.basis(leaves_out_rows=task.call.leaves_out_rows), targets.versions(task.root)
    incremental = {target.name for target in found.values() if target.is_incremental}
    since = begun.goes_on_from(task.root, basis, task.cut, on_disk, incremental)
    begun.begin(task.root, basis, task.cut, on_disk)
    if since is None and incremental & on_disk.keys():
        os.environ[FULL_REFRESH] = "true"
        task.tell("tidemark: marts are made anew, as the last recorded build is not of this generation, conf and version of Tidemark.")
    return since


def _invoked(call: "Call") -> "dbtRunnerResult":
    from orchestration.serving.dbt import invocation

    if not call.makes_views:
        # Those of other processes are gone with them. Without JSON, or `dbt retry` would take this for what is to be retried.
        invocation.invoked(["run", "--log-level", "none", "--no-write-json", "--select", "config.materialized:view", *call.of_parsing])
    return invocation.invoked(call.arguments)


def _end(task: Task, found: Mapping[str, "Target"], made: set[str]) -> None:
    """Record the build, if it is whole: every model was made, of this cut."""
    versions, known, now = targets.versions(task.root), marts.builds(task.root), datetime.now(UTC)
    names = {target.name for target in found.values()}
    missing = {target.name for key, target in found.items() if target.kind == "model" and key not in made} | (names - versions.keys())
    if missing or task.call.leaves_out_rows or not made:
        seen = f"those of build {known[-1].build}, of snapshot {known[-1].snapshot_id}" if known else "none"
        task.tell(f"tidemark: readers see the marts of before, {seen}, until `tidemark dbt build` has made every model without an error.")
        return
    build = Build(
        build=known[-1].build + 1 if known else 0,
        at=now,
        snapshot_id=task.cut.snapshot_id,
        generation=task.cut.generation,
        versions={name: versions[name] for name in sorted(names)},
        reached=prepared.reached(task.lake.conf, task.cut),
        basis=task.basis(leaves_out_rows=False),
    )
    marts.record(task.root, build)
    begun.end(task.root)
    upkeep.clean(task.root, now - timedelta(seconds=task.lake.conf.maintenance.retain_seconds), now)
    task.tell(f"tidemark: build {build.build}: {len(build.versions)} marts of snapshot {build.snapshot_id}.")
