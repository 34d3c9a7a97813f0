"""One POST when the state of an expectation changes. A failed POST is a warning in the log, and nothing else."""

import json
import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from orchestration.connectors.http_client import PostError, post_json
from orchestration.quality.formatting import shorten
from orchestration.quality.history import Change
from orchestration.quality.outcome import Run
from orchestration.rendering import visible

TIMEOUT_SECONDS = 5.0
PAUSES_SECONDS = (0.5, 2.0)
"""Before the second try and the third; with the timeouts a call ends within 20 s where nobody answers."""

log = logging.getLogger(__name__)


def post_changes(url: str, run: Run, changed: Sequence[Change], report: Path | None, pauses: Sequence[float] = PAUSES_SECONDS) -> bool:
    """POST the changes, with a retry after each pause; returns whether the host accepted. Never raises, and never logs the URL.

    The path of a webhook URL is mostly a secret. `report`: None for a gate, which writes no page.
    """
    body = json.dumps(_document(run, changed, report)).encode()
    for pause in (0, *pauses):
        time.sleep(pause)
        try:
            post_json(url, body, TIMEOUT_SECONDS)
            return True
        except PostError as error:
            trouble = error
        if trouble.is_final:
            break
    log.warning("quality.webhook: %s did not get run %s: it %s", _host(url), run.run_id, trouble)
    return False


def _host(url: str) -> str:
    try:
        return visible(urlsplit(url).hostname or "its host")
    except ValueError:
        return "its host"


def _document(run: Run, changed: Sequence[Change], report: Path | None) -> dict[str, Any]:
    page = str(report.resolve()) if report else None
    failed = sum(change.result.outcome.is_success is False for change in changed)
    return {
        "text": f"Data quality of {run.pipeline}: {failed} failed, {len(changed) - failed} mended. {page or 'More: tidemark status'}",
        "pipeline": run.pipeline,
        "run_id": run.run_id,
        "run_at": run.run_at.isoformat(),
        "cause": run.cause.value,
        "is_passed": run.is_passed,
        "report": page,
        "changes": [_change(change) for change in changed],
    }


def _change(change: Change) -> dict[str, Any]:
    expectation, outcome = change.result.expectation, change.result.outcome
    before, now = ("failed", "ok") if outcome.is_success else ("ok", "failed")
    return {
        "table": change.table.table,
        "table_version": change.table.version,
        "suite": change.result.suite,
        "expectation": expectation.type,
        "columns": list(expectation.columns),
        "description": shorten(expectation.description),
        "severity": expectation.severity.value,
        "before": None if change.is_new else before,
        "now": now,
        "observed": shorten(outcome.observed),
    }
