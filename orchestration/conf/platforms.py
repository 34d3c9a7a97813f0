"""Platforms whose messages are known: a YAML file each in conf/platforms says how they are recognised, read and tested."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any

import yaml

from orchestration.conf.vocabulary import last, snake, unit_in

FOLDER = resources.files("conf").joinpath("platforms")
MESSAGE = re.compile(r"([^\s\[{\"]*/\S+)[ \t]+([\[{].*)")
"""A line as `mosquitto_sub -v` writes it: topic and message."""
MODULE = re.compile(r'"(\w+):\w+"')
DEFAULTS = {"aggregation": "average", "step_seconds": 600}


@dataclass(frozen=True)
class Platform:
    """A file of conf/platforms; its page explains the settings.

    `key`: the name of the file. `own`: the path below which devices have fields of their own, null where all are known or rows are long.
    `tests_text`: the tests, as they are written.
    """

    key: str
    name: str
    about: str
    form: str
    source: dict[str, Any]
    metrics: dict[str, dict[str, Any]]
    tests: list[dict[str, Any]]
    tests_text: str
    recognise: dict[str, Any] = field(default_factory=dict)
    own: str | None = None
    by_topic: bool = False
    rules: dict[str, Any] = field(default_factory=dict)
    transport: dict[str, Any] = field(default_factory=dict)

    @property
    def needs_messages(self) -> bool:
        """Whether topic or arrival say what a file of its messages cannot."""
        return self.by_topic or any("topic" in origin or "arrival" in origin for origin in self.source.values() if isinstance(origin, dict))

    @property
    def way(self) -> dict[str, Any]:
        """How its messages come, as sources.yml has it."""
        return self.transport or {"path": "./landing"}

    @property
    def modules(self) -> dict[str, str]:
        """The modules of decoders by the name of their files."""
        names = MODULE.findall(json.dumps(self.source.get("decode", "")))
        return {f"{name}.py": FOLDER.joinpath(f"{name}.py").read_text(encoding="utf-8") for name in names}

    def settings_of(self, metric: str, path: str = "") -> dict[str, Any]:
        """Settings of a metric: its own, those of the one whose field has the same last name as this path, or its unit by its name."""
        fields: Mapping[str, str] = self.source.get("metrics", {})
        alike = [name for name, other in fields.items() if path and last(other) == last(path)]
        names = [name for name in (metric, *alike, snake(last(path))) if name in self.metrics]
        unit = {} if names or not unit_in(metric) else {"unit": unit_in(metric)}
        return {**unit, **(self.metrics[names[0]] if names else {})}


def platform_keys() -> list[str]:
    return sorted(file.name.removesuffix(".yml") for file in FOLDER.iterdir() if file.name.endswith(".yml"))


@cache
def platform_of(key: str) -> Platform:
    text = FOLDER.joinpath(f"{key}.yml").read_text(encoding="utf-8")
    return Platform(key, **yaml.safe_load(text), tests_text=text[text.index("\ntests:\n") + 1 :])


def recognised(lines: Sequence[str]) -> Platform | None:
    """The platform that most of these messages are of, by the names of their fields or by the first line; None if it is unknown."""
    payloads = [payload for _, payload in messages_of(lines)]
    events = [event for payload in payloads[:100] if (event := _json(payload)) is not None]
    return next((platform for platform in map(platform_of, platform_keys()) if _is_of(platform.recognise, payloads, events)), None)


def messages_of(lines: Sequence[str]) -> list[tuple[str | None, str]]:
    """Topic, if lines have one, and payload of each line that is not blank."""
    matches = [(MESSAGE.fullmatch(line), line) for line in lines if line.strip()]
    return [(match[1], match[2]) if match else (None, line) for match, line in matches]


def metric_name(path: str) -> str:
    """A field's path as the name of a metric: `DS18B20-1.Temperature` is ds18b20_1_temperature."""
    return re.sub(r"[\W_]+", "_", re.sub(r"([a-z])([A-Z])", r"\1_\2", path).lower()).strip("_")


def conf_of(platform: Platform) -> dict[str, str]:
    """The files of a conf by path, with the usual metrics of a platform and its tests."""
    metrics = {name: platform.settings_of(name) for name in platform.metrics}
    tests = {f"tests/{platform.key}.yml": f"# {platform.name}\n{platform.tests_text}"}
    return conf_texts(platform, platform.source, metrics, way=platform.way) | tests


def conf_texts(
    platform: Platform,
    source: Mapping[str, Any],
    metrics: Mapping[str, Any],
    *,
    way: Mapping[str, Any],
    devices: Sequence[str] = (),
    policy: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, str]:
    """The files of a conf by path. `way`, `source`, `metrics` and `policy` as YAML has them; devices and metrics that are not there are
    accepted."""
    catalogue = {name: {**DEFAULTS, **settings} for name, settings in metrics.items()}
    accepted = {"lateness_seconds": 600, **policy, "unknown_device": "unassigned", "unknown_metric": "unassigned"}
    group = {"metrics": [*metrics], "vector": {"entity": "device", "max_fill_seconds": 1800}, "idle_close_seconds": 900}
    files: dict[str, tuple[Mapping[str, Any], str]] = {
        "pipeline": (
            {"pipeline": "tidemark", "lake": "./lake", "policy": accepted},
            "New devices and metrics are accepted.",
        ),
        "sources": ({"sources": {platform.key: {**way, **source}}}, f"{platform.name}: {platform.about}\n# {platform.form}"),
        "metrics": ({"metrics": catalogue}, "Confirm the unit, aggregation and step of each."),
        "devices": ({"devices": {name: {"groups": ["unassigned"]} for name in devices}}, "Others are accepted too."),
        "groups": ({"groups": {"unassigned": group}}, "All devices; divide them by room, machine or line."),
        "rules": ({"rules": platform.rules}, "What must be true of a reading, beside the built-in rules."),
    }
    return {f"{name}.yml": _text(name, *content) for name, content in files.items()} | platform.modules


def _text(name: str, settings: Mapping[str, Any], comment: str) -> str:
    text = yaml.dump(settings, Dumper=_Plain, sort_keys=False, allow_unicode=True, default_flow_style=None, width=140)
    return f"# yaml-language-server: $schema=schema/{name}.json\n# {comment}\n\n{text}"


class _Plain(yaml.SafeDumper):
    """Writes what stands several times in full."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


# YAML 1.2, by which conf is read, has more numbers than PyYAML knows: a text that is one of them is written in quotes.
_Plain.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"[-+]?\.?[0-9][0-9.]*[eE][-+]?[0-9]+|0o[0-7]+"), [*"-+.0123456789"])


def _is_of(recognise: Mapping[str, Any], payloads: Sequence[str], events: Sequence[Any]) -> bool:
    if pattern := recognise.get("line"):
        return bool(payloads) and re.match(pattern, payloads[0].lstrip()) is not None
    names = [name if isinstance(name, list) else [name] for name in recognise.get("fields", [])]
    count = sum(all(any(_has(event, name.split(".")) for name in some) for some in names) for event in events)
    return bool(names) and 2 * count > len(payloads[:100])


def _has(value: Any, path: Sequence[str]) -> bool:
    """Whether a field is there; `*` in its path stands for any text, and lists are looked into."""
    if not path:
        return True
    if isinstance(value, list):
        return any(_has(element, path) for element in value[:10] if isinstance(element, dict))
    return isinstance(value, dict) and any(_has(inner, path[1:]) for name, inner in value.items() if fnmatchcase(name, path[0]))


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
