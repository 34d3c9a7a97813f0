"""What the files of a conf mean together: references, and settings that contradict each other.

Each check sees only settings that are well formed; a name counts as declared as soon as it is written, however wrong the rest of
its entry, so that one mistake does not make others.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestration.conf.dbt_meaning import check_dbt
from orchestration.conf.document import Document, Step
from orchestration.conf.group_meaning import check_devices, check_groups
from orchestration.conf.mistake import Mistake, shown
from orchestration.conf.names import Declared
from orchestration.conf.paths import check_paths
from orchestration.conf.quality_meaning import check_quality
from orchestration.conf.source_meaning import check_sources
from orchestration.conf.structure import Finding, where
from silver.rules import BUILT_IN
from silver.spec import UNASSIGNED_GROUP, Unknown

LEAST_DRIVER_MEGABYTES = 512
"""Spark refuses to start with less than about 450 MB."""


@dataclass(frozen=True)
class Written:
    """One readable file; `sound` is what is well formed in it."""

    document: Document
    sound: dict[str, Any]

    def entries(self, noun: str) -> dict[str, Any]:
        return self.sound.get(noun) or {}


def check_meaning(folder: Path, written: Mapping[str, Written]) -> Iterator[Mistake]:
    """`written` is by file name without its ending; files that cannot be read are absent, and nobody misses what they would declare."""
    entries = {name: file.entries(name) for name, file in written.items()}
    declared = Declared.of({name: file.document.data for name, file in written.items()})
    by_file = {
        "pipeline": _check_pipeline(folder, written["pipeline"], declared) if "pipeline" in written else (),
        "sources": check_sources(entries.get("sources", {}), declared),
        "metrics": _check_metrics(entries.get("metrics", {})),
        "devices": check_devices(entries.get("devices", {}), declared),
        "groups": check_groups(entries.get("groups", {}), entries.get("devices", {}), declared),
        "rules": _check_rules(entries.get("rules", {})),
    }
    found = [(name, finding) for name, findings in by_file.items() for finding in findings]
    found += check_paths(folder, written["pipeline"].sound.get("lake") if "pipeline" in written else None, entries.get("sources", {}))
    for name, finding in found:
        document = written[name].document
        yield Mistake(document.file, document.line(finding.path), finding.text)


def _check_pipeline(folder: Path, pipeline: Written, declared: Declared) -> Iterator[Finding]:
    yield from _check_policy(pipeline.entries("policy"), declared)
    yield from _check_engine(pipeline.entries("engine"))
    yield from check_quality(folder, pipeline.entries("quality"), declared)
    yield from check_dbt(folder, pipeline.entries("dbt"))


def _check_policy(policy: Mapping[str, Any], declared: Declared) -> Iterator[Finding]:
    for key in ("unknown_device", "unknown_metric"):
        if policy.get(key) == Unknown.UNASSIGNED and declared.lacks("groups", UNASSIGNED_GROUP):
            text = (
                f"policy.{key} is '{Unknown.UNASSIGNED}', but groups.yml declares no group of that name; declare it or choose 'quarantine'"
            )
            yield Finding(("policy", key), text)


def _check_engine(engine: Mapping[str, Any]) -> Iterator[Finding]:
    memory = engine.get("driver_memory", "2g").lower()
    megabytes = int(memory[:-1]) * (1024 if memory.endswith("g") else 1)
    if megabytes < LEAST_DRIVER_MEGABYTES:
        text = f"engine.driver_memory is '{memory}', with which Spark does not start; give it at least {LEAST_DRIVER_MEGABYTES}m"
        yield Finding(("engine", "driver_memory"), text)


def _check_metrics(metrics: Mapping[str, Any]) -> Iterator[Finding]:
    for name, metric in metrics.items():
        path: tuple[Step, ...] = ("metrics", name)
        step, slide = metric.get("step_seconds"), metric.get("slide_seconds")
        if step and slide and step % slide:
            text = (
                f"{name}.slide_seconds is {slide}, which does not divide step_seconds ({step}); choose one of its divisors, or leave it out"
            )
            yield Finding((*path, "slide_seconds"), text)
        least, most = metric.get("minimum"), metric.get("maximum")
        if least is not None and most is not None and least > most:
            yield Finding((*path, "minimum"), f"{name}.minimum is {least}, above its maximum {most}; swap them or correct one")
        yield from _check_conversions(path, metric)


def _check_conversions(path: tuple[Step, ...], metric: Mapping[str, Any]) -> Iterator[Finding]:
    conversions = metric.get("conversions", {})
    if conversions and "unit" not in metric:
        yield Finding((*path, "conversions"), f"{where((*path, 'conversions'))} has no unit to convert to; add `unit` to the metric")
    for unit, conversion in conversions.items():
        at = (*path, "conversions", unit)
        if unit == metric.get("unit"):
            yield Finding(at, f"{where(at)} converts the metric's own unit; remove it")
        if conversion.get("multiply") == 0:
            yield Finding((*at, "multiply"), f"{where(at)}.multiply is 0, which makes every value the same; write the factor")


def _check_rules(rules: Mapping[str, Any]) -> Iterator[Finding]:
    for name, rule in rules.items():
        if name in BUILT_IN:
            yield Finding(("rules", name), f"{shown(name)} is the name of a built-in rule; choose another")
        problem = _unbalanced(rule.get("holds", ""))
        if problem:
            yield Finding(("rules", name, "holds"), f"{name}.holds {problem}")


def _unbalanced(predicate: str) -> str | None:
    """Spark judges the predicate when it starts; this finds only what would swallow the text around it."""
    bare = re.sub(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`", "", predicate, flags=re.DOTALL)
    quote = re.search(r"['\"`]", bare)
    if quote:
        return f"opens a quote {quote.group()} that nothing closes; close it"
    if "--" in bare or "/*" in bare:
        return "contains a SQL comment; write it behind a # in the YAML instead"
    depth = 0
    for character in bare:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            return "closes a parenthesis that nothing opens; remove it or open one before"
    return "opens a parenthesis that nothing closes; close it" if depth else None
