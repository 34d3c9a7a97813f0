"""How many values of each format silver and verify read in a second of CPU, and messages: one thread: `make bench NAME=payloads`."""

import gzip
import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from rich.console import Console

from orchestration.audit.verify import measurements as verify
from silver.decoders.sparkplug_b import Payload
from silver.measurements import measurements
from silver.spec import Origin, PayloadFormat, Time
from tests.bench.script import narrow_table, parser_for, script, write_report
from tests.binary_formats import LONG, READING, avro, framed, message_class, shapes
from tests.orchestration.audit.verify.hostile_shapes import DECODED, GOOD, MARKED, SHAPES, decoded

START, AT_ONCE, METRICS = datetime(2026, 1, 1, tzinfo=UTC), 10_000, 10
FORMATS = {"json": PayloadFormat("json", Origin(field="device"), Time("ts", "epoch_ms"), **LONG)} | {
    name: shapes()[name] for name in ("avro", "proto3", "sparkplug")
}
FORMATS |= {name: shape for name, shape in {**DECODED, **MARKED}.items() if not name.startswith(("wide array", "own"))}
FORMATS |= {name: SHAPES[name] for name in ("list", "located")}
FORMATS |= {name: decoded("ts", name) for name in ("gzip", "confluent")} | {"sparkplug of one": FORMATS["sparkplug"]}


def main() -> int:
    options = parser_for(__doc__, "bench-payloads", events=100_000).parse_args()
    columns = ("format", "bytes", "values", "silver", "verify", "messages of silver")
    table, found = narrow_table(*columns), dict[str, Any]()
    for name, shape in FORMATS.items():
        payloads = [_payload(name, n) for n in range(options.events)]
        count, by_silver = _fastest(payloads, shape, measurements)
        _, by_verify = _fastest(payloads[: options.events // 10], shape, lambda *of: iter([verify.measurements(*of)]))
        speeds = [round(count / options.events / seconds) for seconds in (by_silver / options.events, by_verify / (options.events // 10))]
        speeds.append(round(options.events / by_silver))
        table.add_row(name, str(len(payloads[0])), str(count // options.events), *(f"{speed:,}" for speed in speeds))
        found[name] = dict(zip(("silver", "verify", "messages"), speeds, strict=True))
    Console().print(table)
    write_report(options, found)
    return 0


def _payload(name: str, n: int) -> bytes:
    """A temperature of one of 100 devices; of Sparkplug ten metrics."""
    if name in GOOD:
        return GOOD[name][0].encode()
    at, value = START + timedelta(seconds=n), 20 + n % 50 / 7
    reading = {"device": f"oven-{n % 100:02d}", "metric": "temperature", "value": value, "ts": round(at.timestamp() * 1000)}
    if name == "json":
        return json.dumps(reading).encode()
    if name in ("gzip", "confluent"):
        return gzip.compress(_payload("json", n)) if name == "gzip" else framed(7, _payload("json", n))
    if name == "avro":
        return avro(READING, reading)
    if name == "proto3":
        message = message_class("plant", "Reading")(**reading | {"metric": 1, "ts": at})
        return bytes(message.SerializeToString())
    payload: Any = Payload()
    for metric in range(METRICS if name == "sparkplug" else 1):
        payload.metrics.add(name=f"m{metric}", timestamp=reading["ts"], datatype=10, double_value=value)
    return bytes(payload.SerializeToString())


def _fastest(payloads: list[bytes], shape: PayloadFormat, read: Callable[..., Iterator[pa.Table]]) -> tuple[int, float]:
    """Measurements, and seconds of CPU of the best of three."""
    nothing = pa.nulls(len(payloads), pa.string())
    events = pa.table({"payload": pa.array(payloads, pa.binary()), "header": nothing, "position": nothing})
    count, times = 0, []
    for _ in range(3):
        begin = time.process_time()
        count = sum(len(piece) for at in range(0, len(events), AT_ONCE) for piece in read(events.slice(at, AT_ONCE), shape, 1 << 20))
        times.append(time.process_time() - begin)
    return count, min(times)


if __name__ == "__main__":
    script(main)
