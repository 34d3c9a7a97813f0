"""Retries of the quarantine that another process asks a running pipeline for, which alone may write the lake; it does them between cycles.

`retries/request.json` in the lake names what is asked for, and then what became of it.
"""

import time
import uuid
from dataclasses import dataclass, replace
from typing import Any

from orchestration.errors import TidemarkError
from orchestration.jobs.account.retry import Chosen
from orchestration.location import Location
from orchestration.storage.lease import is_held, sole_writer
from orchestration.storage.state_file import StateFile
from orchestration.supervisor.service_state import last_beat

FOLDER = "retries"
POLL_SECONDS = 0.5
ALIVE_SECONDS = 60.0
"""A pipeline that has not said for so long that it is alive does not take requests up."""


@dataclass(frozen=True)
class RetryRequest:
    """`number`: unlike that of any other request. Once it is answered: `summary`, rows as of the command, or `error`, a sentence."""

    number: str
    chosen: Chosen
    summary: list[dict[str, Any]] | None = None
    error: str | None = None

    @property
    def is_answered(self) -> bool:
        return self.summary is not None or self.error is not None


def takes_requests(lake: Location) -> bool:
    """Whether a pipeline runs that takes requests up."""
    beat = last_beat(lake)
    return beat is not None and time.time() - beat < ALIVE_SECONDS and is_held(lake)


def ask(lake: Location, chosen: Chosen) -> list[dict[str, Any]] | None:
    """Ask the pipeline for a retry and wait for its summary; None where it ends before. TidemarkError where it cannot."""
    request = RetryRequest(uuid.uuid4().hex, chosen)
    with sole_writer(lake / FOLDER, doing="waits for a retry of the quarantine already"):
        _file(lake).write(request)
        try:
            while takes_requests(lake):
                answer = _file(lake).read()
                if answer and answer.number == request.number and answer.is_answered:
                    if answer.error is not None:
                        raise TidemarkError(answer.error)
                    return answer.summary
                time.sleep(POLL_SECONDS)
        finally:
            _file(lake).remove()
    return None


def requested(lake: Location) -> RetryRequest | None:
    """Return the request that waits for an answer."""
    request = _file(lake).read()
    return request if request and not request.is_answered else None


def answer(lake: Location, request: RetryRequest, summary: list[dict[str, Any]] | None, error: str | None = None) -> None:
    _file(lake).write(replace(request, summary=summary, error=error))


def _file(lake: Location) -> StateFile[RetryRequest]:
    return StateFile(lake / FOLDER / "request.json", RetryRequest, "Remove it, and ask again with `tidemark quarantine retry`.")
