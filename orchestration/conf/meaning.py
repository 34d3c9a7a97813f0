"""Check the files of a conf together: references, and settings that contradict each other.

Objects that are wrong by themselves are not checked. Yet their names count as declared, so that one mistake does not make others.
"""

import ipaddress
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from expectations.settings import Step
from expectations.wording import quoted
from orchestration.conf.alert_meaning import check_alerts
from orchestration.conf.channel_meaning import check_channels
from orchestration.conf.flow_meaning import check_flows
from orchestration.conf.group_meaning import check_groups
from orchestration.conf.names import Declared
from orchestration.conf.pipeline_settings import Engine, heap_bytes
from orchestration.conf.place import absolute
from orchestration.conf.quality_meaning import check_quality
from orchestration.conf.reference_settings import ReferenceSettings
from orchestration.conf.rule_meaning import check_rules
from orchestration.conf.sink_meaning import check_sinks
from orchestration.conf.source_meaning import check_sources
from orchestration.conf.source_settings import SourceSettings
from orchestration.conf.spark_options import check_settings
from orchestration.conf.structure import Finding
from orchestration.conf.walk import walk
from silver.spec import UNASSIGNED_GROUP, Policy, Unknown

UNREADABLE = re.compile(r"[\[\]^|\\\x00-\x1f]|%[0-9A-Fa-f]{2}")
"""Characters of a path below which delta-rs finds no table: it takes paths for URLs."""
LEAST_DRIVER_MEGABYTES = 512
"""Spark refuses to start with less than about 450 MB."""


def check_meaning(folder: Path, sound: Mapping[str, Any], declared: Declared) -> Iterator[Finding]:
    """`sound`: what the files set at their top, without what is wrong."""
    sources, devices = sound.get("sources", {}), sound.get("devices") or {}
    if policy := sound.get("policy"):
        yield from _check_policy(policy, declared)
    if engine := sound.get("engine"):
        yield from _check_engine(engine)
    if quality := sound.get("quality"):
        yield from check_quality(quality, declared)
    if (page := sound.get("page")) and not page.token and not is_loopback(page.host):
        yield Finding.of(("page", "host"), f"is {quoted(page.host)}, which other machines reach; set page.token, or keep 127.0.0.1")
    yield from _check_references(sound.get("references", {}))
    yield from check_sinks(sound.get("sinks", {}), declared)
    yield from check_sources(sources, declared)
    yield from check_groups(sound.get("groups") or {}, devices, declared)
    yield from check_rules(sound.get("rules") or {}, sources)
    yield from check_flows(sound.get("flows") or {}, declared)
    yield from check_alerts(sound.get("alerts") or {}, sound.get("groups") or {})
    yield from check_channels(sound.get("channels", {}), sound.get("alerts") or {})
    yield from _check_paths(folder, sound)
    yield from walk(sound, declared)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address to listen on."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _check_policy(policy: Policy, declared: Declared) -> Iterator[Finding]:
    for key in ("unknown_device", "unknown_metric"):
        if getattr(policy, key) == Unknown.UNASSIGNED and declared.lacks("groups", UNASSIGNED_GROUP):
            problem = f"is '{Unknown.UNASSIGNED}', but groups.yml declares no group of that name; declare it or choose 'quarantine'"
            yield Finding.of(("policy", key), problem)


def _check_engine(engine: Engine) -> Iterator[Finding]:
    if engine.driver_memory is not None and heap_bytes(engine.driver_memory) >> 20 < LEAST_DRIVER_MEGABYTES:
        problem = f"is '{engine.driver_memory.lower()}', with which Spark does not start; give it at least {LEAST_DRIVER_MEGABYTES}m"
        yield Finding.of(("engine", "driver_memory"), problem)
    yield from check_settings(("engine", "settings"), engine.settings)


def _check_references(references: Mapping[str, ReferenceSettings]) -> Iterator[Finding]:
    """No two say the same of a reading."""
    taken: dict[str, str] = {}
    for name, reference in references.items():
        for attribute in reference.attributes:
            if other := taken.get(attribute):
                problem = f"names {quoted(attribute)}, which reference {other} gives too; write {{OTHER_NAME: column}} for one of them"
                yield Finding.of(("references", name, "attributes"), problem)
            taken[attribute] = name


def _check_paths(folder: Path, sound: Mapping[str, Any]) -> Iterator[Finding]:
    """`sound`: what the files set at their top. The lake's own files would be read as events, or one file for two sources."""
    settings: list[tuple[tuple[Step, ...], str, Path]] = [(("lake",), "the lake", sound["lake"])] if "lake" in sound else []
    sources: Mapping[str, SourceSettings] = sound.get("sources", {})
    settings += [(("sources", name, "path"), f"source {name}", source.path) for name, source in sources.items() if source.path]
    settings += [
        (("sources", name, "delta", "table"), f"source {name}", source.delta.table) for name, source in sources.items() if source.delta
    ]
    exports = {name: sink.files.path for name, sink in sound.get("sinks", {}).items() if sink.files}
    settings += [(("sinks", name, "files", "path"), f"sink {name}", absolute(folder, path)) for name, path in exports.items()]
    seen: dict[str, Path] = {}
    for at, label, path in settings:
        if at[-1] in ("lake", "table") and (odd := UNREADABLE.search(str(path))):
            yield Finding.of(at, f"has {odd[0]!r} in its path, below which no table can be read; choose another folder")
        for other, taken in seen.items():
            if path == taken or path in taken.parents or taken in path.parents:
                relation = "is" if path == taken else "lies inside" if taken in path.parents else "holds"
                yield Finding.of(at, f"{relation} the folder of {other}; give each a folder of its own")
        seen[label] = path
    if "dbt" in sound and (project := sound["dbt"].project) and not (project / "dbt_project.yml").is_file():
        problem = f"is {quoted(str(project))}, where no dbt_project.yml lies; name the folder of a dbt project, or leave it out"
        yield Finding.of(("dbt", "project"), problem)
