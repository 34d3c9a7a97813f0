"""Rows posted to an address as JSON, a bounded number a request: at least once.

Each request has an `Idempotency-Key`: a repeat has the same key and the same rows. Any answer but 2xx means that the sink is down, but for
those that refuse what rows hold.
"""

import json
from collections.abc import Iterator, Sequence
from functools import partial
from hashlib import sha256

import pyarrow as pa

from orchestration.column_texts import json_rows
from orchestration.conf.sink_settings import WebhookSettings
from orchestration.connectors.http_client import PostError, post_json
from orchestration.connectors.sinks.dead_rows import RowError, sieve
from orchestration.connectors.sinks.sink import FILE, Batch, Sink, parts
from orchestration.errors import DownError
from orchestration.secrets import resolved

TIMEOUT_SECONDS = 15.0
OF_CONTENT = (413, 422)
"""Answers that are about what a request holds: content too large, unprocessable content. A bad request (400) may be every one."""


class WebhookSink(Sink):
    """Messages name no part of the address: it is mostly a secret."""

    is_ordered = True

    def __init__(self, settings: WebhookSettings) -> None:
        self._settings = settings

    def write(self, batch: Batch, rows: Iterator[pa.Table]) -> bool:
        """Request after request; none where nothing is new."""
        number = 0
        for number, part in enumerate(parts(rows, self._settings.rows_per_request), start=1):
            key = f"{batch.sink}-{batch.number}-{number}"
            # A part of a request has a key of its own, which its rows make.
            for _ in sieve(part, partial(self._post_part, batch, number, key, len(part)), batch.refused):
                pass
        if not number and batch.is_complete:
            self._post(batch, 1, f"{batch.sink}-{batch.number}-1", [])
        return True

    def _post_part(self, batch: Batch, number: int, key: str, whole: int, rows: pa.Table) -> None:
        """Send one request; RowError where the answer is about what they hold."""
        texts = json_rows(rows)
        own = "" if len(rows) == whole else f"-{sha256(b','.join(texts)).hexdigest()[:16]}"
        try:
            self._post(batch, number, f"{key}{own}", texts)
        except PostError as error:
            if error.status in OF_CONTENT:
                raise RowError(f"the webhook {error}.") from None
            raise DownError(f"the webhook {error}.", error.retry_after) from None

    def _post(self, batch: Batch, number: int, key: str, rows: Sequence[bytes]) -> None:
        facts = {
            "sink": batch.sink,
            "table": batch.table,
            "snapshot_id": batch.position.snapshot_id,
            "request": number,
            "is_complete": batch.is_complete,
        }
        body = json.dumps(facts)[:-1].encode() + b', "rows": [' + b",".join(rows) + b"]}"
        token = self._settings.token and resolved(self._settings.token, FILE)
        post_json(resolved(self._settings.url, FILE), body, TIMEOUT_SECONDS, token, {"Idempotency-Key": key})
