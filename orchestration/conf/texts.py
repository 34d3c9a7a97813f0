"""The settings of a conf as texts, for the lake to keep. A setting that is its default is left out; of a secret only a digest is written.

One text a file, JSON with the keys of YAML. `with_settings` makes a conf of them again.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from datetime import date
from functools import cache
from hashlib import sha256
from typing import Any, NamedTuple, TypeAlias

from pydantic import TypeAdapter
from pydantic.dataclasses import is_pydantic_dataclass

from expectations.rule import Rule
from expectations.settings import NAME
from gold.alerts.spec import AlertSettings
from gold.flows.spec import FlowSpec
from gold.windows.spec import Group
from orchestration.conf.devices import Device
from orchestration.conf.model import Conf, Source
from orchestration.conf.secrets import REFERENCE
from orchestration.conf.transport_settings import LandingFolder, RegistrySettings
from silver.policy import Policy
from silver.spec import Metric, PayloadFormat, Registry

Texts: TypeAlias = Mapping[str, str]
"""A text for each file, by its name without `.yml`."""
Settings: TypeAlias = dict[str, Any]
ENTRIES: dict[str, Any] = {"metrics": Metric, "devices": Device, "groups": Group, "flows": FlowSpec, "alerts": AlertSettings}
"""Files whose entries are read back by their type."""
BOUNDS = ("lateness_seconds", "ahead_seconds")
"""Settings of a source for its lane."""
DECLARED_AS: dict[Any, Any] = {Registry: RegistrySettings}
"""Types that declare what of a value is a secret, where its own type does not."""
PIPELINE = (
    *("pipeline", "policy", "engine", "maintenance", "quality", "references", "sinks", "schedules", "page", "sql_server", "traces"),
    *("dbt_project", "channels"),
)


def texts_of(conf: Conf) -> dict[str, str]:
    """Write the settings of each file; a file without any is left out."""
    files = {"pipeline": {name: plain for name in PIPELINE if (plain := _plain(getattr(conf, name)))}}
    files |= {"sources": {name: _of_source(source) for name, source in sorted(conf.sources.items())}}
    files |= {"rules": {rule.name: _plain(rule) for rule in conf.rules}}
    files |= {name: _plain(dict(sorted(getattr(conf, name).items()))) for name in ENTRIES}
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
    return frozenset(key.key for field, key in _keys(PayloadFormat).items() if field not in {"words", "registry"})


def with_settings(conf: Conf, texts: Texts) -> Conf:
    """Return the conf with those of these settings that decide what is in the tables; ValueError for texts that this version cannot read.

    How events come and who is notified are as in `conf`. A source that it no longer has is paused.
    """
    settings = settings_in(texts)
    entries = {name: _entries(kind, settings.get(name, {})) for name, kind in ENTRIES.items()}
    words = {name: metric.words for name, metric in entries["metrics"].items() if metric.words}
    meanings = {name: {key: source[key] for key in source if key in meaning()} for name, source in settings.get("sources", {}).items()}
    bounds = {name: {key: source.get(key) for key in BOUNDS} for name, source in settings.get("sources", {}).items()}
    sources = {
        name: replace(
            _source(conf, name, payload), payload_format=replace(payload, words=words, registry=_registry(conf, name)), **bounds[name]
        )
        for name, payload in _entries(PayloadFormat, meanings).items()
    }
    rules = _entries(Rule, settings.get("rules", {}))
    policy = _adapter(Policy).validate_python(settings["pipeline"]["policy"])
    kept: Any = entries | {"policy": policy, "sources": sources, "rules": tuple(rules.values()), "notice_policies": {**entries["alerts"]}}
    return replace(conf, **kept)


def _source(conf: Conf, name: str, payload: PayloadFormat) -> Source:
    return conf.sources[name] if name in conf.sources else Source(name, payload, LandingFolder(conf.folder), is_paused=True)


def _registry(conf: Conf, name: str) -> Registry | None:
    return conf.sources[name].payload_format.registry if name in conf.sources else None


def _entries(kind: Any, entries: Settings) -> dict[str, Any]:
    read: dict[str, Any] = _adapter(dict[str, kind]).validate_python(entries)
    return read


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _of_source(source: Source) -> Settings:
    """Flatten what Python has apart: how its events come, and how its payloads are read."""
    payload: Settings = _plain(replace(source.payload_format, words={}))
    transport = _plain(source.transport)
    way = transport if isinstance(source.transport, LandingFolder) else {source.transport.kind: transport}
    bounds = {key: value for key in BOUNDS if (value := getattr(source, key)) is not None}
    return payload | way | bounds | ({"paused": True} if source.is_paused else {})


def _plain(value: Any, *, is_hidden: bool = False) -> Any:
    """Make JSON of a value of a conf."""
    if is_dataclass(value):
        kind: Any = type(value)
        keys = _keys(kind)
        cells = {field.name: getattr(value, field.name) for field in fields(value)}
        return {
            keys[name].key: _plain(cell, is_hidden=keys[name].is_hidden) for name, cell in cells.items() if cell not in keys[name].defaults
        }
    if isinstance(value, Mapping):
        return {str(key): _plain(inner, is_hidden=is_hidden) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner, is_hidden=is_hidden) for inner in value]
    if is_hidden and isinstance(value, str) and not re.fullmatch(REFERENCE, value):
        return f"hidden, digest {sha256(value.encode()).hexdigest()[:8]}"
    if isinstance(value, date):
        return value.isoformat()
    return value if isinstance(value, bool | int | float | None) else str(value)


class _Key(NamedTuple):
    """How a field is written: under which key, if not one of its defaults, and whether as a digest alone."""

    key: str
    defaults: tuple[Any, ...]
    is_hidden: bool


@cache
def _keys(kind: Any) -> dict[str, _Key]:
    """Return the key of each field of a dataclass."""
    if not is_pydantic_dataclass(kind):
        return {field.name: _Key(field.name, (field.default,), is_hidden=False) for field in fields(kind)}
    hidden = _adapter(DECLARED_AS.get(kind, kind)).json_schema()["properties"]
    keys = {}
    for name, declared in kind.__pydantic_fields__.items():
        alias = str(declared.validation_alias or name)
        key = name if alias.startswith(NAME) else alias
        default = () if declared.is_required() else (declared.default,) if not declared.default_factory else ({}, ())
        keys[name] = _Key(key, default, bool(hidden.get(key, {}).get("writeOnly")))
    return keys
