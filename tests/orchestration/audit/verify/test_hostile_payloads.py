"""Both evaluators agree: what silver makes of a payload, verify makes of it too, whatever the payload."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from bronze.schema import EVENTS
from expectations.rule import Rule
from orchestration.audit.verify.silver_evaluator import Registered, SilverEvaluator
from orchestration.conf.model import Source
from orchestration.conf.transport_settings import LandingFolder
from silver import account
from silver.aggregation import Aggregation
from silver.enrich import ReferenceData
from silver.judging import judged
from silver.metric import Conversion, Metric
from silver.policy import Policy, SilverConfig, Unknown
from silver.schema import DEVICES, REFERENCES
from tests.lakes import conf
from tests.orchestration.audit.verify.hostile import payloads
from tests.orchestration.audit.verify.hostile_shapes import SHAPES
from tests.rows import INGESTED_AT

SEED = 20260101
MUTATIONS = 150
METRICS = {
    metric.name: metric
    for metric in (
        Metric(
            "temperature", Aggregation.AVERAGE, 60, "degC", minimum=-50.0, maximum=500.0, conversions={"degF": Conversion(5 / 9, -17.7)}
        ),
        Metric("humidity", Aggregation.MAX, 60, minimum=0.0),
        Metric("power", Aggregation.SUM, 3600, "W"),
    )
}
RULES = (Rule("not_minus_one", "value <> -1 or metric = 'power'"), Rule("since_2000", "event_time >= timestamp '2000-01-01 00:00:00'"))
ALWAYS = datetime(1970, 1, 1, tzinfo=UTC)
REGISTRY = [
    ("oven", "hall", ["kitchen"], None, True, "conf", ALWAYS),
    ("oven", "cellar", ["kitchen", "site"], None, True, "file", INGESTED_AT + timedelta(seconds=5)),
    ("room", None, [], None, True, "conf", ALWAYS),
    ("ghost", "attic", ["kitchen"], None, True, "conf", ALWAYS),
    ("ghost", "attic", ["kitchen"], None, False, "conf", INGESTED_AT),
]


def test_both_evaluators_treat_hostile_payloads_alike(tmp_path: Path, seed: int | None) -> None:
    events = list(hostile_events(seed or SEED))
    sent, devices = as_table(events, EVENTS), as_table([(*row, None) for row in REGISTRY], DEVICES)
    for unknown in Unknown:
        policy = Policy(600, 300, max_payload_bytes=1100, unknown_device=unknown, unknown_metric=unknown)
        sources = {name: Source(name, shape, LandingFolder(tmp_path)) for name, shape in SHAPES.items()}
        made = conf(tmp_path, policy=policy, sources=sources, metrics=METRICS, rules=RULES)
        broken, good = account.split(pa.concat_tables(judged(sent, ReferenceData(devices), SilverConfig(SHAPES, policy, METRICS, RULES))))
        found = SilverEvaluator.of(made, Registered(devices, REFERENCES.empty_table())).evaluate(sent)
        assert differences(events, found.accepted, good) == {}
        assert differences(events, found.rejected, pa.concat_tables(account.quarantine(broken, sent))) == {}
        assert found.accepted.num_rows > 300 < found.rejected.num_rows


def hostile_events(seed: int) -> Iterator[tuple[Any, ...]]:
    for n, (source, payload, header) in enumerate(payloads(seed, MUTATIONS)):
        ingested_at = INGESTED_AT + timedelta(seconds=n % 10)
        yield payload, header, source, f"{'oven' if n % 3 else 'room'}.json", INGESTED_AT, None, None, ingested_at, INGESTED_AT.date(), 0, n


def as_table(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)


def differences(events: list[tuple[Any, ...]], found: pa.Table, expected: pa.Table) -> dict[Any, Any]:
    """By payload, what only one of the two has: (the second evaluator, silver)."""
    left, right = ({(row["bronze_row"], row["part"]): content(row) for row in plain_rows(side)} for side in (found, expected))
    return {
        (events[key[0]][2], events[key[0]][0], key[1]): (left.get(key), right.get(key))
        for key in sorted({*left, *right})
        if left.get(key) != right.get(key)
    }


def plain_rows(rows: pa.Table) -> list[dict[str, Any]]:
    """Instants as numbers, because Python's end in the year 9999."""
    fields = [pa.field(f.name, pa.int64()) if pa.types.is_timestamp(f.type) else f for f in rows.schema]
    plain: list[dict[str, Any]] = rows.cast(pa.schema(fields)).to_pylist()
    return plain


def content(row: dict[str, Any]) -> dict[str, str]:
    """Cells as text: NaN equals itself then; broken rules are a set."""
    return {name: repr(sorted(cell) if name == "broken_rules" else cell) for name, cell in row.items()}
