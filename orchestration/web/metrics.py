"""Metrics for Prometheus: what the overview shows, by flow, source, sink and part. No label per device."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from orchestration.utc import from_iso
from orchestration.web.overview import Overview

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BAD, TABLES = ("down", "behind"), ("bronze", "silver", "gold")
OF_BATCH = (
    ("seconds", "batch_seconds", "How long the last batch took."),
    ("rows", "batch_rows", "Rows of its input that the last batch read."),
    ("state_rows", "state_rows", "Rows of state after the last batch."),
    ("state_bytes", "state_bytes", "Memory that the state takes."),
)
"""Of the last batch of each flow: what the run calls it, the name of the metric, and what it says."""


class _Scrape:
    def __init__(self, facts: Overview) -> None:
        self._facts = facts

    def collect(self) -> Iterator[Metric]:
        """Of the newest facts."""
        yield from self._of_nodes()
        yield from self._of_batches()
        yield from self._of_account()
        yield from self._of_parts()

    def _of_nodes(self) -> Iterator[Metric]:
        values = (
            ("up", "1 where a source, flow or sink is neither down nor behind its newest input.", lambda node: node.state not in BAD),
            ("lag_seconds", "How long the oldest row waits that the node could have read.", lambda node: node.own),
            ("inherited_lag_seconds", "What the nodes before it add.", lambda node: node.inherited),
            ("behind_rows", "Rows of its input that the node has not read.", lambda node: node.behind),
            ("last_batch_timestamp_seconds", "When its last batch was finished.", lambda node: node.last_at and node.last_at.timestamp()),
            ("table_rows", "Rows of the table that the flow writes.", lambda node: node.rows if node.layer in TABLES else None),
        )
        for name, help_text, value_of in values:
            family = GaugeMetricFamily(f"tidemark_{name}", help_text, labels=["node", "layer"])
            for node in self._facts.nodes:
                if (value := value_of(node)) is not None:
                    family.add_metric([node.name, node.layer], float(value))
            yield family

    def _of_batches(self) -> Iterator[Metric]:
        for key, name, help_text in OF_BATCH:
            family = GaugeMetricFamily(f"tidemark_{name}", help_text, labels=["node"])
            for flow, batch in self._facts.batches.items():
                if key in batch:
                    family.add_metric([flow], batch[key])
            yield family
        watermark = GaugeMetricFamily(
            "tidemark_watermark_timestamp_seconds", "Up to here the flow takes readings for late.", labels=["node"]
        )
        for flow, batch in self._facts.batches.items():
            if batch.get("watermark_at"):
                watermark.add_metric([flow], from_iso(batch["watermark_at"]).timestamp())
        yield watermark

    def _of_account(self) -> Iterator[Metric]:
        account = self._facts.account
        measurements = CounterMetricFamily("tidemark_measurements", "What became of each measurement.", labels=["outcome"])
        for kind, count in account.items():
            if kind not in ("events", "waiting"):
                measurements.add_metric([kind], count)
        yield measurements
        yield CounterMetricFamily("tidemark_events", "Events of bronze.", value=account["events"])
        yield GaugeMetricFamily(
            "tidemark_unaccounted_events", "Events of bronze that the ledger has not come to.", value=account["waiting"]
        )
        yield GaugeMetricFamily("tidemark_troubles", "What the page lists as wrong now.", value=len(self._facts.troubles))
        if (snapshot := self._facts.snapshot) is not None:
            help_text = "When the newest snapshot was taken."
            yield GaugeMetricFamily("tidemark_snapshot_timestamp_seconds", help_text, value=snapshot.at.timestamp())

    def _of_parts(self) -> Iterator[Metric]:
        restarts = CounterMetricFamily("tidemark_part_restarts", "Starts of a part of `tidemark up` after it had failed.", labels=["part"])
        running = GaugeMetricFamily("tidemark_part_running", "1 where the part runs.", labels=["part"])
        for part in self._facts.parts:
            restarts.add_metric([part["part"]], part["restarts"])
            running.add_metric([part["part"]], float(part["state"] == "running"))
        yield from (restarts, running)


def text(facts: Overview) -> bytes:
    """In Prometheus' text format."""
    registry = CollectorRegistry()
    registry.register(_Scrape(facts))
    return generate_latest(registry)
