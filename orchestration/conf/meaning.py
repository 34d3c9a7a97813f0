"""What the files of a conf mean together: references, and settings that contradict each other.

A check skips settings that are None: those that are wrong, or missing though required. A name counts as declared as soon as it is written,
however wrong the rest of its entry, so that one mistake does not make others.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from orchestration.conf.diagnostic import quoted
from orchestration.conf.document import Step
from orchestration.conf.files import Settings
from orchestration.conf.group_meaning import check_devices, check_groups
from orchestration.conf.names import Declared
from orchestration.conf.paths import check_dbt, check_paths, check_tls
from orchestration.conf.pipeline_settings import PipelineFile
from orchestration.conf.plant_settings import MetricSettings
from orchestration.conf.quality_meaning import check_quality
from orchestration.conf.rule_meaning import check_rules
from orchestration.conf.sink_meaning import check_sinks
from orchestration.conf.source_meaning import check_sources
from orchestration.conf.structure import Finding
from silver.spec import UNASSIGNED_GROUP, Unknown

LEAST_DRIVER_MEGABYTES = 512
"""Spark refuses to start with less than about 450 MB."""


def check_meaning(folder: Path, settings: Settings, declared: Declared) -> Iterator[tuple[str, Finding]]:
    """Findings, with the file that each belongs to, by its name without its ending."""
    sources, devices = settings.sources.sources or {}, settings.devices.devices or {}
    by_file = {
        "pipeline": _check_pipeline(folder, settings.pipeline, declared),
        "sources": (*check_sources(folder, sources, declared), *check_tls(folder, sources)),
        "metrics": _check_metrics(settings.metrics.metrics or {}),
        "devices": check_devices(devices, declared),
        "groups": check_groups(settings.groups.groups or {}, devices, declared),
        "rules": check_rules(settings.rules.rules or {}),
    }
    for file, findings in by_file.items():
        yield from ((file, finding) for finding in findings)
    yield from check_paths(folder, settings.pipeline.lake, sources, settings.pipeline.sinks or {})


def _check_pipeline(folder: Path, pipeline: PipelineFile, declared: Declared) -> Iterator[Finding]:
    """The sections that are there, and mappings at all."""
    for key in ("unknown_device", "unknown_metric") if pipeline.policy else ():
        if getattr(pipeline.policy, key) == Unknown.UNASSIGNED and declared.lacks("groups", UNASSIGNED_GROUP):
            problem = f"is '{Unknown.UNASSIGNED}', but groups.yml declares no group of that name; declare it or choose 'quarantine'"
            yield Finding.of(("policy", key), problem)
    if pipeline.engine and pipeline.engine.driver_memory:
        memory = pipeline.engine.driver_memory.lower()
        if int(memory[:-1]) * (1024 if memory.endswith("g") else 1) < LEAST_DRIVER_MEGABYTES:
            problem = f"is '{memory}', with which Spark does not start; give it at least {LEAST_DRIVER_MEGABYTES}m"
            yield Finding.of(("engine", "driver_memory"), problem)
    if pipeline.quality:
        yield from check_quality(folder, pipeline.quality, declared)
    if pipeline.dbt and pipeline.dbt.project:
        yield from check_dbt(folder, pipeline.dbt.project)
    yield from check_sinks(pipeline.sinks or {}, declared)


def _check_metrics(metrics: Mapping[str, MetricSettings]) -> Iterator[Finding]:
    for name, metric in metrics.items():
        path: tuple[Step, ...] = ("metrics", name)
        for at in (path, *((*path, "conversions", unit) for unit in metric.conversions or {})):
            if at[-1] != str(at[-1]).strip(" "):
                yield Finding(at, f"{quoted(at[-1])} has a blank at an end, which metrics and units of events never have; remove it")
        step, slide = metric.step_seconds, metric.slide_seconds
        if step and slide and step % slide:
            problem = f"is {slide}, which does not divide step_seconds ({step}); choose one of its divisors, or leave it out"
            yield Finding.of((*path, "slide_seconds"), problem)
        least, most = metric.minimum, metric.maximum
        if least is not None and most is not None and least > most:
            problem = f"is {quoted(least)}, above its maximum {quoted(most)}; swap them or correct one"
            yield Finding.of((*path, "minimum"), problem)
        if metric.conversions and not metric.unit:
            yield Finding.of((*path, "conversions"), "has no unit to convert to; add `unit` to the metric")
        for unit, conversion in (metric.conversions or {}).items():
            at = (*path, "conversions", unit)
            if unit == metric.unit:
                yield Finding.of(at, "converts the metric's own unit; remove it")
            if conversion.multiply == 0:
                yield Finding.of((*at, "multiply"), "is 0, which makes every value the same; write the factor")
