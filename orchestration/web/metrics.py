"""Metrics for Prometheus: what the overview shows, and what quarantine and quality hold. No label per device."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import product
from typing import Any

from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from expectations.suite import Severity
from orchestration.audit import quarantine
from orchestration.conf.model import Conf
from orchestration.engine.lake import Lake
from orchestration.location import Location
from orchestration.quality.history import RESULTS, last_checked, last_runs
from orchestration.storage.delta import path_of, version_of
from orchestration.storage.gate_state import READ_BY_GOLD, closed_gates, is_holding
from orchestration.storage.tables import LakeStore
from orchestration.supervisor.problem import ABOUT
from orchestration.supervisor.problem import Severity as Urgency
from orchestration.web.overview import Node, Overview

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
TABLES = ("bronze", "silver", "gold")
OF_BATCH = (
    ("seconds", "batch_seconds", "How long the last batch took."),
    ("rows", "batch_rows", "Rows of its input that the last batch read."),
    ("state_rows", "state_rows", "Rows of state after the last batch."),
    ("state_bytes", "state_bytes", "Memory that the state takes."),
)
"""Measures of the last batch of each query: the name in the run, the name of the metric, and its help text."""


class Metrics:
    """The metrics of one conf. Values that need rows are kept until their table has a new version."""

    def __init__(self, conf: Conf) -> None:
        self._conf, self._kept = conf, dict[str, tuple[tuple[Location, int], list[Metric]]]()

    def text(self, facts: Overview) -> bytes:
        lake = Lake(self._conf)
        in_quarantine = self._newest(lake.table_path(quarantine.TABLE), lambda: _by_rule(quarantine.counted(lake)))
        in_quality = self._newest(path_of(self._conf.lake, RESULTS), lambda: _of_suites(self._conf.lake))
        of_facts = (*_of_nodes(facts), *_of_batches(facts), *_of_account(facts), *_of_parts(facts))
        return generate_latest(_Families((*of_facts, *in_quarantine, *in_quality, _of_gates(self._conf))))

    def _newest(self, table: Location, read: Callable[[], Iterator[Metric]]) -> list[Metric]:
        name, version = table.name, (table, version_of(table))
        if name not in self._kept or self._kept[name][0] != version:
            self._kept[name] = version, [*read()]
        return self._kept[name][1]


@dataclass
class _Families(Collector):
    families: Sequence[Metric]

    def collect(self) -> Sequence[Metric]:
        return self.families


def _of_nodes(facts: Overview) -> Iterator[Metric]:
    at = facts.at.timestamp()
    values: tuple[tuple[str, str, Callable[[Node], float | None]], ...] = (
        ("up", "0 where a source or sink does not answer.", lambda node: node.state != "down"),
        ("lag_seconds", "How long the oldest row waits that the node could have read.", lambda node: node.own),
        ("inherited_lag_seconds", "What the nodes before it add.", lambda node: node.inherited),
        ("behind_rows", "Rows of its input that the node has not read.", lambda node: node.behind),
        ("last_batch_timestamp_seconds", "When its last finished batch began, or was committed.", lambda node: _seconds(node.last_at)),
        ("table_rows", "Rows of the table that the flow writes.", lambda node: node.rows if node.layer in TABLES else None),
        ("watermark_timestamp_seconds", "Up to here the flow takes readings for late.", lambda node: _seconds(node.watermark_at)),
        (
            "watermark_delay_seconds",
            "How far its watermark is behind the clock.",
            lambda node: at - node.watermark_at.timestamp() if node.watermark_at else None,
        ),
    )
    for name, help_text, value_of in values:
        family = GaugeMetricFamily(f"tidemark_{name}", help_text, labels=["node", "layer"])
        for node in facts.nodes:
            if (value := value_of(node)) is not None:
                family.add_metric([node.name, node.layer], float(value))
        yield family


def _of_batches(facts: Overview) -> Iterator[Metric]:
    for key, name, help_text in OF_BATCH:
        family = GaugeMetricFamily(f"tidemark_{name}", help_text, labels=["node"])
        for flow, batch in facts.batches.items():
            if key in batch:
                family.add_metric([flow], batch[key])
        yield family


def _of_account(facts: Overview) -> Iterator[Metric]:
    account = facts.account
    # A retry takes rows out of the quarantine, so this is no counter.
    measurements = GaugeMetricFamily("tidemark_measurements", "What became of each measurement.", labels=["outcome"])
    for kind, count in account.items():
        if kind not in ("events", "waiting"):
            measurements.add_metric([kind], count)
    yield measurements
    yield CounterMetricFamily("tidemark_events", "Events of bronze.", value=account["events"])
    yield GaugeMetricFamily("tidemark_unaccounted_events", "Events of bronze that the ledger has not come to.", value=account["waiting"])
    counts = Counter((problem.severity, problem.about) for problem in facts.problems)
    wrong = GaugeMetricFamily("tidemark_problems", "Entries of the list of what is wrong.", labels=["severity", "about"])
    for severity, about in product(Urgency, ABOUT):
        wrong.add_metric([severity, about], counts[severity, about])
    yield wrong
    if facts.known_until is not None:
        help_text = "Up to here the list of what is wrong is complete."
        yield GaugeMetricFamily("tidemark_known_until_timestamp_seconds", help_text, value=facts.known_until.timestamp())
    if facts.snapshot is not None:
        help_text = "When the newest snapshot was taken."
        yield GaugeMetricFamily("tidemark_snapshot_timestamp_seconds", help_text, value=facts.snapshot.at.timestamp())


def _of_parts(facts: Overview) -> Iterator[Metric]:
    restarts = CounterMetricFamily("tidemark_part_restarts", "Starts of a part of `tidemark up` after it had failed.", labels=["part"])
    running = GaugeMetricFamily("tidemark_part_running", "1 where the part runs.", labels=["part"])
    for part in facts.parts:
        restarts.add_metric([part["part"]], part["restarts"])
        running.add_metric([part["part"]], float(part["state"] == "running"))
    yield from (restarts, running)


def _seconds(instant: datetime | None) -> float | None:
    """Since 1970."""
    return instant.timestamp() if instant else None


def _by_rule(counts: list[dict[str, Any]]) -> Iterator[Metric]:
    help_text = "Rows of the quarantine that break the rule; one that breaks two counts under both."
    family = GaugeMetricFamily("tidemark_quarantined_rows", help_text, labels=["rule", "source"])
    for row in counts:
        family.add_metric([row["rule"], row["source"]], row["rows"])
    yield family


def _of_suites(lake: Location) -> Iterator[Metric]:
    help_text = "Expectations that failed in the last run of a suite on a table."
    failed = GaugeMetricFamily("tidemark_quality_failed_expectations", help_text, labels=["table", "suite", "severity"])
    for (table, suite), run in last_runs(lake).items():
        of_run = [result.expectation.severity for result in run.results if result.outcome.is_success is False]
        for severity in Severity:
            failed.add_metric([table, suite, severity.value], of_run.count(severity))
    yield failed
    checked = GaugeMetricFamily("tidemark_quality_checked_timestamp_seconds", "When the suite last ran.", labels=["suite"])
    for suite, at in last_checked(lake).items():
        checked.add_metric([suite], at.timestamp())
    yield checked


def _of_gates(conf: Conf) -> Metric:
    family = GaugeMetricFamily("tidemark_quality_gate_closed", "1 where the gate holds back rows from gold.", labels=["table"])
    closed = {state.table for state in closed_gates(conf, LakeStore(conf).table_path)}
    for table in READ_BY_GOLD if is_holding(conf) else ():
        family.add_metric([table], float(table in closed))
    return family
