"""Rows posted to an address as JSON, a bounded number a request: at least once.

Each request has an `Idempotency-Key`: a repeat has the same key and the same rows. Any answer but 2xx means that the sink is down.
"""

import json
from collections.abc import Iterator
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.parse import urlsplit

import pyarrow as pa

from orchestration.conf.secrets import resolved
from orchestration.conf.sink_settings import WebhookSettings
from orchestration.connectors.http_post import post
from orchestration.connectors.sinks.json_text import json_rows
from orchestration.connectors.sinks.sink import FILE, Batch
from orchestration.errors import TidemarkError
from orchestration.storage.sink_states import SinkPosition

TIMEOUT_SECONDS = 30.0


class WebhookSink:
    """Messages name no part of the address: it is mostly a secret."""

    is_ordered = True

    def __init__(self, settings: WebhookSettings) -> None:
        self._settings = settings

    def last(self, known: SinkPosition | None) -> SinkPosition | None:
        """As the lake remembers it."""
        return known

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
        headers = {"Content-Type": "application/json", "User-Agent": "tidemark", "Idempotency-Key": key}
        if self._settings.token:
            headers["Authorization"] = f"Bearer {resolved(self._settings.token, FILE)}"
        _send(resolved(self._settings.url, FILE), body, headers)


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


def _send(url: str, body: bytes, headers: dict[str, str]) -> None:
    """TidemarkError without the address, which messages of the library may quote."""
    try:
        if urlsplit(url).scheme not in ("http", "https"):
            raise TidemarkError("the webhook is no http or https URL; correct what pipeline.yml names.")
        post(url, body, headers, TIMEOUT_SECONDS)
    except HTTPError as error:
        error.close()
        raise TidemarkError(f"the webhook answered {error.code}.") from None
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        said = getattr(reason, "strerror", None) or type(reason).__name__
        raise TidemarkError(f"the webhook was not reached ({said}).") from None
