"""One POST when something changes its state. It may fail as it likes: that is a warning in the log, and nothing else."""

import json
import logging
import time
from collections.abc import Sequence
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from orchestration.quality.formatting import cut
from orchestration.quality.outcome import Run
from orchestration.quality.trend import Change
from orchestration.rendering import visible

TIMEOUT_SECONDS = 5.0
PAUSES_SECONDS = (0.5, 2.0)
"""Before the second try and the third; with the timeouts a call ends within 20 s where nobody answers."""

log = logging.getLogger(__name__)


class _NoRedirect(HTTPRedirectHandler):
    """A redirected POST goes on as a GET without its document, and would be taken for delivered."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """The answer is then an error."""


def tell(url: str, run: Run, changed: Sequence[Change], report: Path | None, pauses: Sequence[float] = PAUSES_SECONDS) -> bool:
    """POST what changed, once more after each pause while that fails; whether it was taken. Never raises, and never shows the URL.

    What comes after the host in it is mostly a secret. `report`: None where a gate found it, which writes no page.
    """
    body = json.dumps(_document(run, changed, report)).encode()
    for pause in (*pauses, None):
        trouble, is_final = _post(url, body)
        if not trouble:
            return True
        if is_final or pause is None:
            break
        time.sleep(pause)
    log.warning("quality.webhook: %s was not told of run %s: %s", _host(url), run.run_id, trouble)
    return False


def _post(url: str, body: bytes) -> tuple[str, bool]:
    """What went wrong, nothing if all is well, and whether another try is of no use.

    Messages of errors may quote the URL, so they are not told.
    """
    try:
        if urlsplit(url).scheme not in ("http", "https"):
            return "it is no http or https URL", True
        request = Request(url, body, {"Content-Type": "application/json", "User-Agent": "tidemark"}, method="POST")
        build_opener(_NoRedirect).open(request, timeout=TIMEOUT_SECONDS).close()
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
    now = "ok" if outcome.is_success else "failed"
    return {
        "table": change.table.table,
        "table_version": change.table.version,
        "suite": change.result.suite,
        "expectation": expectation.type,
        "columns": list(expectation.columns),
        "description": cut(expectation.description),
        "severity": expectation.severity.value,
        "before": None if change.is_new else ("failed" if outcome.is_success else "ok"),
        "now": now,
        "observed": cut(outcome.observed),
    }
