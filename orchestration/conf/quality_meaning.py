"""What section `quality` of pipeline.yml means: cron expressions, names of suites and tables, where a gate can hold."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any

from cronsim import CronSim, CronSimError

from orchestration.conf.document import Step
from orchestration.conf.mistake import shown, way_out
from orchestration.conf.model import GateMode
from orchestration.conf.names import Declared
from orchestration.conf.structure import Finding

HOLDABLE = "silver.readings"
"""The one table of which something is handed over."""
FIXED = ("bronze.events", HOLDABLE, "silver.quarantine", "silver.late", "silver.duplicates")
OF_GROUP = ("aggregates", "vectors", "late")
OWN_SUITES = "expectations"
"""Folder of the conf."""


def check_quality(folder: Path, quality: Mapping[str, Any], declared: Declared) -> Iterator[Finding]:
    """`quality` is what is well formed of the section."""
    known = _suites(folder)
    yield from _check_cron(("quality", "schedule"), quality.get("schedule"))
    for suite, cron in quality.get("schedules", {}).items():
        at = ("quality", "schedules", suite)
        if suite not in known:
            text = f"quality.schedules names {shown(suite)}, which is no suite; {way_out(suite, known, f'they are {_listed(known)}')}"
            yield Finding(at, text)
        yield from _check_cron(at, cron)
    for table, mode in quality.get("gates", {}).items():
        yield from _check_gate(table, mode, declared)
    if (reference := quality.get("reference")) is not None:
        yield from _check_reference(reference)


def instant(text: str) -> datetime:
    """An instant in ISO 8601, UTC where it names no zone; ValueError where it is none."""
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _check_cron(path: tuple[Step, ...], cron: str | None) -> Iterator[Finding]:
    if cron is None:
        return
    try:
        CronSim(cron, datetime(2000, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        problem = f"is {shown(cron)}, which is no schedule: {str(error).lower()}"
        remedy = "write minute, hour, day of month, month and day of week, such as '15 3 * * *'"
        yield Finding(path, f"{'.'.join(map(str, path))} {problem}; {remedy}")


def _check_gate(table: str, mode: str, declared: Declared) -> Iterator[Finding]:
    path = ("quality", "gates", table)
    groups = declared.names["groups"]
    known = [*FIXED, *(f"gold.{group}_{kind}" for group in sorted(groups or ()) for kind in OF_GROUP)]
    if table not in known and (groups is not None or not table.startswith("gold.")):
        yield Finding(path, f"quality.gates names {shown(table)}, which is no table; {way_out(table, known, f'they are {_listed(known)}')}")
    elif mode == GateMode.HOLD and table != HOLDABLE:
        text = f"quality.gates.{table} is 'hold', but only {HOLDABLE} is handed over to another layer; choose 'warn', or hold {HOLDABLE}"
        yield Finding(path, text)


def _check_reference(reference: Mapping[str, str]) -> Iterator[Finding]:
    found = {}
    for key, text in reference.items():
        try:
            found[key] = instant(text)
        except ValueError:
            remedy = "write one in ISO 8601, such as 2026-01-05T00:00:00Z"
            yield Finding(("quality", "reference", key), f"quality.reference.{key} is {shown(text)}, which is no instant; {remedy}")
    if len(found) == 2 and found["from"] >= found["until"]:
        text = f"quality.reference.from is {shown(reference['from'])}, not before until ({reference['until']}); swap them or correct one"
        yield Finding(("quality", "reference", "from"), text)


def _suites(folder: Path) -> list[str]:
    """Those of the package and those of the conf, by the names of their files."""
    own = folder / OWN_SUITES
    files = [*resources.files("expectations").iterdir(), *(own.iterdir() if own.is_dir() else ())]
    return sorted({file.name.removesuffix(".yml") for file in files if file.name.endswith(".yml")})


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
