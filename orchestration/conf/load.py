"""Loading a conf folder: its YAML files, checked all at once, into one frozen Conf. Takes a fraction of a second and no Spark."""

import os
from collections.abc import Collection, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from expectations.wording import counted
from gold.alerts.signals import anomaly_fields
from gold.alerts.spec import AlertSettings, Signal
from gold.windows.spec import Group
from orchestration.conf.devices import Membership
from orchestration.conf.diagnostic import Diagnostic
from orchestration.conf.document import Document, read_document
from orchestration.conf.files import FILES, OPTIONAL, Settings
from orchestration.conf.meaning import check_meaning
from orchestration.conf.model import Conf, Source
from orchestration.conf.names import Declared
from orchestration.conf.payload_schemas import schemas_of
from orchestration.conf.place import lake_in
from orchestration.conf.source_settings import SourceSettings
from orchestration.conf.structure import check_structure
from orchestration.errors import ConfError
from orchestration.stores.object_store import ObjectStore
from silver.rules import rules_of
from silver.spec import PayloadFormat, Registry

ACCEPTED = "TIDEMARK_ACCEPTED"
"""The variable by which parts of `tidemark up` know the folder with the files of the conf that it has taken up."""


def load(folder: Path) -> Conf:
    """The conf; in a part of `tidemark up` the one that it has taken up. ConfError has one line per mistake, all of them at once."""
    return read_conf(folder, accepted_files())


def accepted_files() -> Path | None:
    """Return the folder with the files of the conf that `up` has taken up; None where this process is no part of it, or none was."""
    folder = Path(os.environ.get(ACCEPTED, ""))
    return folder if ACCEPTED in os.environ and folder.is_dir() else None


def read_conf(folder: Path, files_in: Path | None = None) -> Conf:
    """Read the conf in a folder, or one of other files as if they were there; ConfError with one line per mistake."""
    if not folder.is_dir():
        text = "is not a folder; name the conf folder with --conf, or write one with `tidemark init DIR`"
        raise ConfError(str(Diagnostic(str(folder), 1, text)))
    files, diagnostics = _checked(folder, files_in or folder)
    lines = tuple(map(str, sorted(diagnostics)))
    if not all(diagnostic.is_warning for diagnostic in diagnostics):
        raise ConfError("\n".join(lines))
    return replace(_conf(folder, Settings(**files)), warnings=lines)


def summary(conf: Conf) -> str:
    """The content of a conf in one line."""
    parts = [
        counted(len(conf.sources), "source"),
        counted(len(conf.metrics), "metric"),
        counted(len(conf.devices), "device"),
        f"{counted(len(conf.groups), 'group')} in {counted(len(conf.streams), 'stream')}",
        f"{counted(len(rules_of(conf.policy, conf.rules)), 'rule')} ({len(conf.rules)} of your own)",
        *([counted(len(conf.flows), "flow")] if conf.flows else []),
        *([counted(len(conf.references), "reference")] if conf.references else []),
        *([counted(len(conf.sinks), "sink")] if conf.sinks else []),
        *([counted(len(conf.alerts), "alert")] if conf.alerts else []),
    ]
    return f"no mistakes; pipeline {conf.pipeline} with {', '.join(parts)}"


def _checked(folder: Path, files_in: Path) -> tuple[dict[str, Any], set[Diagnostic]]:
    """The settings of each file, None where it has mistakes: each object by itself, then what the sound ones mean together."""
    diagnostics: set[Diagnostic] = set()
    documents: dict[str, Document] = {}
    files: dict[str, Any] = {}
    sound: dict[str, Any] = {}
    for name in FILES:
        document, unreadable = read_document(path := files_in / f"{name}.yml")
        if name in OPTIONAL and not path.exists():
            document, unreadable = Document(str(path), {name: None}, {}), []
        diagnostics |= set(unreadable)
        if document is not None:
            documents[name] = document
            files[name], of_file, findings = check_structure(name, document.data, folder)
            sound |= of_file
            diagnostics |= {document.diagnostic(finding.path, finding.text) for finding in findings}
    for finding in check_meaning(folder, sound, Declared.of({name: document.data for name, document in documents.items()})):
        document = documents[str(finding.path[0]) if finding.path[0] in FILES else "pipeline"]
        diagnostics.add(document.diagnostic(finding.path, finding.text, finding.is_warning))
    return files, diagnostics


def _conf(folder: Path, settings: Settings) -> Conf:
    """Nothing here can fail on settings that passed the checks."""
    pipeline, groups = settings.pipeline, settings.groups.groups or {}
    membership = Membership({name: group.devices for name, group in groups.items()})
    features = {name: group.vector.features for name, group in groups.items() if group.vector}
    judged = {name for name, group in groups.items() if group.anomalies}
    alerts = {name: replace(alert, signal=_signal(alert, features, judged)) for name, alert in (settings.alerts.alerts or {}).items()}
    store = pipeline.store.place if pipeline.store else ObjectStore()
    conf = Conf(
        folder=folder.resolve(),
        pipeline=pipeline.pipeline,
        lake=lake_in(pipeline.lake, store),
        store=store,
        policy=pipeline.policy,
        engine=pipeline.engine,
        sources={name: _source(settings, name, source) for name, source in settings.sources.sources.items()},
        metrics=settings.metrics.metrics,
        devices={name: membership.completed(device) for name, device in (settings.devices.devices or {}).items() if device},
        groups=groups,
        rules=tuple((settings.rules.rules or {}).values()),
        flows=settings.flows.flows or {},
        maintenance=pipeline.maintenance,
        quality=pipeline.quality,
        dbt_project=pipeline.dbt.project,
        references=pipeline.references,
        sinks=pipeline.sinks,
        schedules=pipeline.schedules,
        page=pipeline.page,
        sql_server=pipeline.sql_server,
        traces=pipeline.traces,
        alerts=alerts,
        notice_policies={**alerts},
        channels=settings.alerts.channels,
    )
    return replace(conf, groups={name: _complete(conf, group) for name, group in groups.items()})


def _signal(alert: AlertSettings, features: Mapping[str, tuple[str, ...]], judged: Collection[str]) -> Signal:
    """Return what an alert looks at. `judged`: groups with anomalies; an alert that names nothing of them is one on vectors, as before."""
    signal = alert.signal_of(features)
    texts = [alert.when, alert.recover_when or alert.when] if signal.kind == "vector" and signal.group in judged else []
    return replace(signal, kind="anomaly") if any(anomaly_fields(text, signal) for text in texts) else signal


def _complete(conf: Conf, group: Group) -> Group:
    """A group has the lateness of the lane of which all its readings are, where that is known by its metrics; else that of the policy."""
    if group.lateness_seconds is not None:
        return group
    bounds = conf.bounds_of(group.metrics)
    lateness = bounds.pop().lateness_seconds if len(bounds) == 1 else conf.policy.lateness_seconds
    return replace(group, lateness_seconds=lateness)


def _source(settings: Settings, name: str, source: SourceSettings) -> Source:
    declared = {field.name: getattr(source, field.name) for field in fields(PayloadFormat)}
    payload = PayloadFormat(
        **declared
        | {
            "words": {name: metric.words for name, metric in settings.metrics.metrics.items() if metric.words},
            "registry": source.registry and Registry(**vars(source.registry)),
            "schemas": schemas_of(source.written_in, source.schema) if source.schema else {},
        }
    )
    transport = source.transport
    if source.mqtt and not source.mqtt.client_id:
        transport = replace(source.mqtt, client_id=f"tidemark-{settings.pipeline.pipeline}-{name}")
    return Source(name, payload, transport, source.paused, source.lateness_seconds, source.ahead_seconds)
