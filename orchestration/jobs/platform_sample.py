"""The conf of a platform for a sample of its messages: with the metrics and devices that the sample has, as a preview reads it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from bronze.events import ARRIVED, File, events
from orchestration.conf.csv_table import csv_table
from orchestration.conf.instants import is_epoch
from orchestration.conf.load import load
from orchestration.conf.model import Source
from orchestration.conf.names import is_json_path
from orchestration.conf.platforms import Platform, conf_texts, messages_of, metric_name, platform_of, recognised
from orchestration.conf.proposal import suffix_of, usable
from orchestration.conf.sample import lines_of
from orchestration.conf.starter import write_conf
from orchestration.conf.vocabulary import is_measurement
from orchestration.connectors.sampling import sample_of_file
from orchestration.jobs.preview import Preview, preview

MOST_FIELDS = 500
TEN_YEARS = 315_576_000
UNIT = "unit of the message"
UNREAD = ("quarantine", "without measurements")


@dataclass(frozen=True)
class PlatformConf:
    """`texts`: the files of the conf by path. `preview`: the sample, as this conf reads it; `topic`: as messages of it, where they were not
    in files."""

    platform: Platform
    texts: dict[str, str]
    preview: Preview
    topic: str | None = None

    @property
    def findings(self) -> Iterator[str]:
        """Yield what it is, and what to confirm."""
        yield f"messages of {self.platform.name}; the conf is that of --platform {self.platform.key}"
        if self.topic:
            yield f"what is read needs topic or arrival, which a file has not: the preview takes the lines for messages of {self.topic}"
        if "time_zone" in self.platform.source["time"]:
            yield "times name no zone and are taken for UTC; confirm time_zone"


def platform_conf(file: Path, key: str | None = None) -> PlatformConf | None:
    """The conf for a sample of a platform, by its name or else recognised; None if it is unknown, or if nothing would be a reading."""
    lines, encoding = lines_of(file)
    platform = recognised(lines) if key is None else platform_of(key)
    if platform is None:
        return None
    messages = messages_of(lines)
    by_message = platform.needs_messages or any(topic for topic, _ in messages)
    suffix = suffix_of(file) + ".gz" * file.name.endswith(".gz")
    way = platform.way if by_message else {"path": "./landing", "files": f"*{suffix}"}
    topic = next((given["topic"] for test in platform.tests for given in test["given"] if "topic" in given), "sample")
    sample = _Sample(platform, way, file, [(own or topic, payload) for own, payload in messages] if by_message else None)
    source = {**platform.source, **({"encoding": encoding} if encoding else {})}
    if platform.source.get("format") == "csv":
        source |= csv_table(file, lines).settings
    of_points = {name: value for name, value in source.items() if name not in ("decimal", "thousands")}
    return sample.conf(source) or (sample.conf(of_points) if of_points != source else None)


@dataclass(frozen=True)
class _Sample:
    """`messages`: topics and payloads, of what does not come in files."""

    platform: Platform
    way: Mapping[str, Any]
    file: Path
    messages: list[tuple[str, str]] | None

    def conf(self, source: Mapping[str, Any]) -> PlatformConf | None:
        """Propose each field of the devices' own as a metric, and keep those that have readings."""
        usual: Mapping[str, str] = source.get("metrics", {})
        if self.platform.own is not None:
            prefix = f"{self.platform.own}." if self.platform.own else ""
            paths = [path for path in self._draft(source).not_read if path.startswith(prefix) and _is_path(path)][:MOST_FIELDS]
            names = {name: path for path in reversed(paths) if usable(name := metric_name(path.removeprefix(prefix)))}
            source = {**source, "metrics": {**names, **usual}}
        fields: Mapping[str, str] = source.get("metrics", {})
        read = [row for row in self._draft(source).measurements if row["becomes"] not in UNREAD]
        read = [row for row in read if row["metric"] in usual or row["metric"] not in fields or _is_measured(fields[row["metric"]], row)]
        if not read:
            return None
        units = {row["metric"]: (row["attributes"] or {}).get(UNIT) for row in reversed(read)}
        metrics = {name: self.platform.settings_of(name, fields.get(name, "")) for name in sorted(units)}
        metrics = {name: settings or ({"unit": units[name]} if units[name] else {}) for name, settings in metrics.items()}
        if fields:
            source = {**source, "metrics": {name: fields[name] for name in metrics}}
        age = int((datetime.now(UTC) - min(row["event_time"] for row in read)).total_seconds())
        policy = {"max_age_seconds": age + TEN_YEARS} if age > TEN_YEARS else {}
        return self._read(source, metrics, sorted({row["device_id"] for row in read}), policy)

    def _draft(self, source: Mapping[str, Any]) -> Preview:
        """Readings of the sample however old it is, with their unit as an attribute where they name one."""
        if "field" in source.get("unit", {}):
            source = {**source, "attributes": {**source.get("attributes", {}), UNIT: source["unit"]["field"]}}
        metrics = {name: self.platform.settings_of(name, path) for name, path in source.get("metrics", {}).items()}
        return self._read(source, self.platform.metrics | metrics, [], {"max_age_seconds": 100_000_000_000}).preview

    def _read(self, source: Mapping[str, Any], metrics: Mapping[str, Any], devices: list[str], policy: Mapping[str, Any]) -> PlatformConf:
        texts = conf_texts(self.platform, source, metrics, way=self.way, devices=devices, policy=policy)
        with TemporaryDirectory(prefix="tidemark-") as folder:
            write_conf(Path(folder) / "conf", texts)
            conf = load(Path(folder) / "conf")
            (read,) = conf.sources.values()
            topic = self.messages[0][0] if self.messages else None
            return PlatformConf(self.platform, texts, preview(conf, read.name, self._events(read)), topic)

    def _events(self, source: Source) -> pa.Table:
        """ARRIVED; messages a second apart, so that those without a time of their own differ."""
        if self.messages is None:
            return sample_of_file(source, self.file)
        now = datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=len(self.messages))
        at = [File(source.name, f"{topic}/sample/{n}", now + timedelta(seconds=n)) for n, (topic, _) in enumerate(self.messages)]
        pieces = [events(pa.array([payload.encode()], pa.binary()), file) for file, (_, payload) in zip(at, self.messages, strict=True)]
        return pa.concat_tables([pa.Table.from_batches([], ARRIVED), *pieces])


def _is_path(path: str) -> bool:
    """Whether conf can name a field so; a name of JSON may have points, blanks, quotes or marks of a path in it."""
    parts = path.split(".")
    return not is_json_path(path) and all(part == part.strip() != "" and part.isprintable() and not {*part} & {*'"\\'} for part in parts)


def _is_measured(path: str, row: Mapping[str, Any]) -> bool:
    """Whether a field of a reading neither counts, names nor dates something."""
    return is_measurement(path, row["value"]) and not is_epoch(row["value"])
