"""One POST when the state of an expectation changes. A failed POST is a warning in the log, and nothing else."""

import json
import logging
import time
from collections.abc import Sequence
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit

from orchestration.connectors.http_post import post
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
        trouble, is_final = _post(url, body)
        if not trouble:
            return True
        if is_final:
            break
    log.warning("quality.webhook: %s did not get run %s: %s", _host(url), run.run_id, trouble)
    return False


def _post(url: str, body: bytes) -> tuple[str, bool]:
    """What went wrong, empty on success, and whether a retry is of no use.

    Error messages may quote the URL, so they are left out.
    """
    try:
        if urlsplit(url).scheme not in ("http", "https"):
            return "it is no http or https URL", True
        post(url, body, {"Content-Type": "application/json", "User-Agent": "tidemark"}, TIMEOUT_SECONDS)
    except HTTPError as error:
        error.close()
        return f"it answered {error.code}", error.code < 500 and error.code not in (408, 429)
    except (OSError, HTTPException) as error:
        reason = error.reason if isinstance(error, URLError) else error
        return f"it was not reached ({getattr(reason, 'strerror', None) or type(reason).__name__})", False
    except ValueError as error:
        return f"it is no URL ({type(error).__name__})", True
    return "", False


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
