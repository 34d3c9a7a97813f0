"""The settings of a conf as texts, for the lake to keep. A setting that is its default is left out; of a secret only a digest is written.

One text a file, JSON with the keys of YAML. `with_settings` makes a conf of them again.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from hashlib import sha256
from typing import Any, TypeAlias, get_type_hints

from pydantic import TypeAdapter

from expectations.rule import Rule
from gold.alerts.spec import AlertSettings
from gold.flows.spec import FlowSpec
from gold.windows.spec import Group
from orchestration.conf.devices import Device
from orchestration.conf.model import Conf, Source
from orchestration.conf.transport_settings import LandingFolder, RegistrySettings
from silver.metric import Metric
from silver.policy import Policy
from silver.spec import PayloadFormat

Texts: TypeAlias = Mapping[str, str]
"""A text for each file, by its name without `.yml`."""
Settings: TypeAlias = dict[str, Any]
ENTRIES: dict[str, Any] = {"metrics": Metric, "devices": Device, "groups": Group, "flows": FlowSpec, "alerts": AlertSettings}
"""Files whose entries are read back by their type."""
BOUNDS = ("lateness_seconds", "ahead_seconds")
"""Settings of a source for its lane."""
PIPELINE = (
    *("pipeline", "policy", "engine", "maintenance", "quality", "references", "sinks", "schedules", "page", "sql_server", "traces"),
    *("dbt_project", "channels"),
)


def texts_of(conf: Conf) -> dict[str, str]:
    """Write the settings of each file; a file without any is left out."""
    kinds = get_type_hints(Conf)
    files = {"pipeline": {name: plain for name in PIPELINE if (plain := _plain(kinds[name], getattr(conf, name)))}}
    files |= {"sources": {name: _of_source(source) for name, source in sorted(conf.sources.items())}}
    files |= {"rules": {rule.name: _plain(Rule, rule) for rule in conf.rules}}
    files |= {name: {key: _plain(type(entry), entry) for key, entry in sorted(getattr(conf, name).items())} for name in ENTRIES}
    return {name: json.dumps(settings, ensure_ascii=False) for name, settings in files.items() if settings}


def digest_of(texts: Texts) -> str:
    """Tell confs apart by their settings: a comment, or a default that is written out, makes no difference."""
    return sha256(json.dumps(sorted(texts.items())).encode()).hexdigest()


def settings_in(texts: Texts) -> dict[str, Settings]:
    """Read the texts: by file, the settings or the entries by name."""
    return {name: json.loads(text) for name, text in texts.items()}


@cache
def meaning() -> frozenset[str]:
    """Keys of a source that say how its payloads are read. Words are settings of metrics; a registry is asked before events come."""
    declared: Any = PayloadFormat
    fields = declared.__pydantic_fields__
    return frozenset(field.serialization_alias or name for name, field in fields.items() if name not in {"words", "registry"})


def with_settings(conf: Conf, texts: Texts) -> Conf:
    """Return the conf with those of these settings that decide what is in the tables; ValueError for texts that this version cannot read.

    How events come and who is notified are as in `conf`. A source that it no longer has is paused.
    """
    settings = settings_in(texts)
    entries = {name: _entries(kind, settings.get(name, {})) for name, kind in ENTRIES.items()}
    words = {name: metric.words for name, metric in entries["metrics"].items() if metric.words}
    sources = {name: _with_source(conf, name, source, words) for name, source in settings.get("sources", {}).items()}
    rules = _entries(Rule, settings.get("rules", {}))
    policy = _adapter(Policy).validate_python(settings["pipeline"]["policy"])
    kept: Any = entries | {"policy": policy, "sources": sources, "rules": tuple(rules.values()), "notice_policies": {**entries["alerts"]}}
    return replace(conf, **kept)


def _with_source(conf: Conf, name: str, settings: Settings, words: Mapping[str, dict[str, float]]) -> Source:
    payload = _adapter(PayloadFormat).validate_python({key: value for key, value in settings.items() if key in meaning()})
    now = conf.sources.get(name, Source(name, payload, LandingFolder(conf.folder), is_paused=True))
    changed: Settings = {"payload_format": replace(payload, words=words, registry=now.payload_format.registry)}
    return replace(now, **changed | {key: settings.get(key) for key in BOUNDS})


def _entries(kind: Any, entries: Settings) -> dict[str, Any]:
    read: dict[str, Any] = _adapter(dict[str, kind]).validate_python(entries)
    return read


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _of_source(source: Source) -> Settings:
    """Flatten what Python has apart: how its events come, and how its payloads are read."""
    payload: Settings = _plain(PayloadFormat, replace(source.payload_format, words={}, registry=None))
    if registry := source.payload_format.registry:
        payload["registry"] = _plain(RegistrySettings, RegistrySettings(**vars(registry)))
    transport: Settings = _plain(type(source.transport), source.transport)
    way = transport if isinstance(source.transport, LandingFolder) else {source.transport.kind: transport}
    bounds = {key: value for key in BOUNDS if (value := getattr(source, key)) is not None}
    return payload | way | bounds | ({"paused": True} if source.is_paused else {})


def _plain(kind: Any, value: Any) -> Any:
    """Make JSON of settings of a type: pydantic's, by their keys in YAML."""
    # What YAML has as a text, such as a path, is another type here, of which pydantic would warn.
    return _adapter(kind).dump_python(value, mode="json", by_alias=True, exclude_defaults=True, warnings=False)
