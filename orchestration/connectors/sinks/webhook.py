"""Rows posted to an address as JSON, a bounded number a request: at least once.

Each request has an `Idempotency-Key`: a repeat has the same key and the same rows. Any answer but 2xx means that the sink is down.
"""

import json
from collections.abc import Iterator

import pyarrow as pa

from orchestration.conf.secrets import resolved
from orchestration.conf.sink_settings import WebhookSettings
from orchestration.connectors.http_client import PostError, post_json
from orchestration.connectors.sinks.json_text import json_rows
from orchestration.connectors.sinks.sink import FILE, Batch, Sink
from orchestration.errors import DownError

TIMEOUT_SECONDS = 15.0


class WebhookSink(Sink):
    """Messages name no part of the address: it is mostly a secret."""

    is_ordered = True

    def __init__(self, settings: WebhookSettings) -> None:
        self._settings = settings

    def write(self, batch: Batch, rows: Iterator[pa.Table]) -> bool:
        """Request after request; none where nothing is new."""
        number = 0
        for number, part in enumerate(_parts(rows, self._settings.rows_per_request), start=1):
            self._post(batch, number, part)
        if not number and batch.is_complete:
            self._post(batch, 1, batch.schema.empty_table())
        return True

    def _post(self, batch: Batch, number: int, rows: pa.Table) -> None:
        facts = {
            "sink": batch.sink,
            "table": batch.table,
            "snapshot_id": batch.position.snapshot_id,
            "request": number,
            "is_complete": batch.is_complete,
        }
        body = json.dumps(facts)[:-1].encode() + b', "rows": [' + b",".join(json_rows(rows)) + b"]}"
        key = f"{batch.sink}-{batch.number}-{number}"
        token = self._settings.token and resolved(self._settings.token, FILE)
        try:
            post_json(resolved(self._settings.url, FILE), body, TIMEOUT_SECONDS, token, {"Idempotency-Key": key})
        except PostError as error:
            raise DownError(f"the webhook {error}.", error.retry_after) from None


def _parts(rows: Iterator[pa.Table], size: int) -> Iterator[pa.Table]:
    """Parts of exactly so many rows but the last, however the rows come."""
    left: pa.Table | None = None
    for chunk in rows:
        whole = chunk if left is None else pa.concat_tables([left, chunk])
        end = len(whole) - len(whole) % size
        yield from (whole.slice(at, size) for at in range(0, end, size))
        left = whole.slice(end)
    if left is not None and len(left):
        yield left
