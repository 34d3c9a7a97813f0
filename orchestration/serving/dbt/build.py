"""`tidemark dbt` on one screen: lease, project, guard, sources of one snapshot, dbt, and at the end the record of what it built."""

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path

from dbt.cli.main import dbtRunnerResult
from dbt.contracts.graph.manifest import Manifest
from dbt.contracts.graph.nodes import ManifestNode

from orchestration.engine.lake import Lake
from orchestration.engine.session import INTERPRETED
from orchestration.errors import TidemarkError
from orchestration.location import Location
from orchestration.serving.dbt import build_state, invocation, project, sources, targets
from orchestration.serving.dbt.invocation import CommandLine
from orchestration.storage import marts
from orchestration.storage.delta import in_log, open_table
from orchestration.storage.held_leases import HeldLease
from orchestration.storage.lease import sole_writer
from orchestration.storage.marts import Build
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.snapshots import find_snapshot
from orchestration.storage.views import View

Notify = Callable[[str], None]
FULL_REFRESH = "DBT_FULL_REFRESH"
ALL = "--all"
MAX_SMALL_READINGS = 2_000_000
"""A build is many small statements: up to so many readings, compiling them would take most of its time."""
SMALL_JVM_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""Only the quick compiler. Its default code cache of 48 MB is filled by a build, and then Spark breaks (measured)."""
SMALL_SETTINGS = {**INTERPRETED, "spark.sql.adaptive.enabled": "false"}
SETTINGS = {
    # For new tables: Delta would remove versions by their age alone, and a build may be queried for longer.
    "spark.databricks.delta.properties.defaults.enableExpiredLogCleanup": "false",
}


@dataclass(frozen=True)
class DbtRun:
    """One command line of dbt over one snapshot."""

    lake: Lake
    command_line: CommandLine
    snapshot: Snapshot
    notify: Notify

    @property
    def root(self) -> Location:
        return self.lake.conf.lake

    def digest(self, *, leaves_out_rows: bool) -> str:
        """Return a digest of all that its marts depend on besides rows."""
        return build_state.build_digest(self.lake.conf, self.snapshot, project.shipped(), leaves_out_rows=leaves_out_rows)


def run(lake: Lake, arguments: Sequence[str], dropped: Sequence[str], notify: Notify) -> int:
    """The exit code of a command line of dbt. `dropped`: marts to delete first. HeldError while another `tidemark dbt` runs."""
    os.environ["DO_NOT_TRACK"] = "1"
    words = [word for word in arguments if word != ALL]
    command_line = replace(CommandLine.parse(words), is_own=lake.conf.dbt_project is not None and ALL not in arguments)
    if command_line.is_version:
        print("\n".join(f"{name} {version(name)}" for name in ("dbt-core", "dbt-spark")))
        return invocation.DONE
    if command_line.is_help:
        return invocation.exit_code(invocation.invoke(words))
    root = lake.conf.lake
    with sole_writer(targets.folder(root), notify) as lease:
        os.environ.update(project.environment(lake.conf, project.prepare(lake.conf)))
        time.tzset()
        command_line.check()
        for name in dropped:
            targets.drop(root, name)
        if command_line.is_offline:
            return invocation.exit_code(invocation.invoke(words))
        return _run_on_snapshot(DbtRun(lake, command_line, _snapshot(root, command_line), notify), lease)


def _snapshot(lake: Location, command_line: CommandLine) -> Snapshot:
    """The newest snapshot for commands that write; else the one of the marts on the disk, so that tests compare tables of one snapshot."""
    newest = find_snapshot(lake)
    if newest is None:
        raise TidemarkError("there is no snapshot yet that marts could be built of; make one with `tidemark run --once`.")
    pending, recorded = build_state.pending_build(lake).read(), marts.MARTS.rows(lake)
    if command_line.command in invocation.USES_NEWEST or not (pending or recorded):
        return newest
    try:
        return find_snapshot(lake, pending.snapshot_id if pending else recorded[-1].snapshot_id) or newest
    except TidemarkError:  # a build that was never recorded does not keep its snapshot from expiring
        return newest


def _run_on_snapshot(dbt: DbtRun, lease: HeldLease) -> int:
    writes = dbt.command_line.writes
    if writes:
        _guard(dbt.root)
    tables = sources.pinned(dbt.lake.conf, dbt.snapshot)
    is_small = _is_small(tables["silver.readings"])
    parsed = _parse_and_start_spark(dbt, lease, is_small=is_small)
    if not isinstance(parsed.result, Manifest):
        return invocation.exit_code(parsed)
    every, selected = invocation.project_tables(parsed.result), invocation.selected_ids(parsed.result, dbt.command_line.selection)
    models = {key: model for key, model in every.items() if key in selected}
    base = _begin_build(dbt, models) if writes else None
    spark = dbt.lake.spark
    for key, value in (SETTINGS | (SMALL_SETTINGS if is_small else {})).items():  # none changes a result
        spark.conf.set(key, value)
    targets.register(spark, dbt.root, invocation.schemas(parsed.result))
    sources.create_views(dbt.lake, tables, dbt.snapshot, base, project.text(Path(os.environ["DBT_PROJECT_DIR"])))
    if is_small and any(key.startswith(f"model.{project.OURS}.") for key in selected):  # a dozen read it, planning it is expensive
        spark.sql(f"cache lazy table {sources.SCHEMA}.windows")
    result = _invoke(dbt.command_line)
    if writes:
        left_out = {_sql_name(model) for key, model in every.items() if key not in models}
        nodes = getattr(result.result, "results", ()) if result.success else ()
        _record_build(dbt, models, left_out, {node.node.unique_id for node in nodes if node.status == "success"})
    return invocation.exit_code(result)


def _guard(lake: Location) -> None:
    if (pending := build_state.pending_build(lake).read()) is not None:
        targets.remove_leftovers(lake, pending.marts_at_newest)
    targets.refuse_lost(lake)


def _is_small(readings: View) -> bool:
    """Whether the lake is small, by the log of silver.readings alone."""
    files = in_log(open_table(readings.parts[0].location, readings.parts[0].version), "num_records").to_pydict()
    return bool(sum(files["num_records"]) < MAX_SMALL_READINGS)


def _parse_and_start_spark(dbt: DbtRun, lease: HeldLease, *, is_small: bool) -> dbtRunnerResult:
    """The parsed project; dbt parses it while Java starts. Without a manifest if dbt could not parse it, and has printed why."""
    if is_small:
        os.environ["JDK_JAVA_OPTIONS"] = f"{os.environ.get('JDK_JAVA_OPTIONS', '')} {SMALL_JVM_OPTIONS}".strip()
    with ThreadPoolExecutor(1) as executor:
        starting = executor.submit(lambda: dbt.lake.spark)
        parsed = invocation.invoke(["parse", "--quiet", *dbt.command_line.parsing_options])
        lease.share(starting.result())
    return parsed


def _begin_build(dbt: DbtRun, models: Mapping[str, ManifestNode]) -> Build | None:
    """Save that a build begins. Returns the build that it continues; None if it rebuilds everything."""
    digest, on_disk = dbt.digest(leaves_out_rows=dbt.command_line.leaves_out_rows), targets.versions(dbt.root)
    incremental = {_sql_name(model) for model in models.values() if model.config.materialized == "incremental"}
    base = build_state.incremental_base(dbt.root, digest, dbt.snapshot, on_disk, incremental)
    build_state.begin(dbt.root, digest, dbt.snapshot, on_disk)
    if base is None and incremental & on_disk.keys():
        os.environ[FULL_REFRESH] = "true"
        dbt.notify("tidemark: marts are rebuilt, because no recorded build of this generation, conf and version of Tidemark has them all.")
    return base


def _invoke(command_line: CommandLine) -> dbtRunnerResult:
    selection = command_line.selection
    if selection:  # tests of Tidemark's may ask for marts besides those that the project needs
        os.environ.setdefault("DBT_INDIRECT_SELECTION", "buildable")
    if not command_line.builds_views:
        # Views of other processes are gone with them. Without JSON, or `dbt retry` would retry this invocation.
        views = ["--select", ",".join((*selection, "config.materialized:view"))]
        invocation.invoke(["run", "--log-level", "none", "--no-write-json", *views, *command_line.parsing_options])
    return invocation.invoke([*command_line.arguments, *(f"--select={name}" for name in selection)])


def _record_build(dbt: DbtRun, models: Mapping[str, ManifestNode], left_out: Collection[str], built: set[str]) -> None:
    """Record the build if it is complete: every model was built, of this snapshot. Marts that it left out stay as recorded."""
    versions, recorded, now = targets.versions(dbt.root), marts.MARTS.rows(dbt.root), datetime.now(UTC)
    names = set(map(_sql_name, models.values()))
    is_complete = names <= versions.keys() and built.issuperset(key for key, model in models.items() if str(model.resource_type) == "model")
    if not is_complete or dbt.command_line.leaves_out_rows or not built:
        seen = f"those of build {recorded[-1].build}, of snapshot {recorded[-1].snapshot_id}" if recorded else "none"
        dbt.notify(
            f"tidemark: readers still see the earlier marts, {seen}, until `tidemark dbt build` builds every model without an error."
        )
        return
    last = recorded[-1] if recorded else Build(-1, now, -1, -1, {})
    kept = {name: version for name, version in last.versions.items() if name in left_out}
    build = Build(
        build=last.build + 1,
        at=now,
        snapshot_id=dbt.snapshot.snapshot_id,
        generation=dbt.snapshot.generation,
        versions=kept | {name: versions[name] for name in sorted(names)},
        reached=sources.positions(dbt.lake.conf, dbt.snapshot) | {name: last.left_out.get(name, last.build) for name in kept},
        basis=dbt.digest(leaves_out_rows=False),
    )
    marts.MARTS.append(dbt.root, [build])
    build_state.pending_build(dbt.root).remove()
    targets.clean(dbt.root, now - timedelta(seconds=dbt.lake.conf.maintenance.retain_seconds), now)
    rest = f" {len(kept)} others stay as they were; `tidemark dbt build --all` builds them too." if kept else ""
    dbt.notify(f"tidemark: build {build.build}: {len(names)} mart{'s'[: len(names) != 1]} of snapshot {build.snapshot_id}.{rest}")


def _sql_name(model: ManifestNode) -> str:
    return f"{model.schema}.{model.alias}"
