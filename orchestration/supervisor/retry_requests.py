"""Retries of the quarantine that another process asks a running pipeline for, which alone may write the lake; it does them between cycles.

`retries/requested.json` in the lake names what is asked for, `retries/answered.json` what became of it.
"""

import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from orchestration.errors import TidemarkError
from orchestration.jobs.account.retry import Chosen
from orchestration.location import Location
from orchestration.storage.lease import is_held, sole_writer
from orchestration.storage.state_file import StateFile
from orchestration.supervisor.service_state import last_beat

FOLDER = "retries"
WAY_OUT = "Remove it, and ask again with `tidemark quarantine retry`."
POLL_SECONDS = 0.5
ALIVE_SECONDS = 60.0
"""A pipeline that has not said for so long that it is alive does not take requests up."""


@dataclass(frozen=True)
class RetryRequest:
    """`number`: unlike that of any other request."""

    number: str
    rule: str | None
    source: str | None


@dataclass(frozen=True)
class RetryAnswer:
    """`number`: of the request. `summary`: rows as of the command; `error`: a sentence, where nothing was done."""

    number: str
    summary: list[dict[str, Any]]
    error: str | None = None


def is_answered(lake: Location) -> bool:
    """Whether a pipeline runs that takes requests up."""
    beat = last_beat(lake)
    return beat is not None and time.time() - beat < ALIVE_SECONDS and is_held(lake)


def ask(lake: Location, chosen: Chosen) -> list[dict[str, Any]] | None:
    """Ask the pipeline for a retry and wait for its summary; None where it ends before. TidemarkError where it cannot."""
    request = RetryRequest(uuid.uuid4().hex, chosen.rule, chosen.source)
    with sole_writer(lake / FOLDER, doing="waits for a retry of the quarantine already"):
        _requested(lake).write(request)
        try:
            while is_answered(lake):
                if (answer := _answered(lake).read()) and answer.number == request.number:
                    if answer.error is not None:
                        raise TidemarkError(answer.error)
                    return answer.summary
                time.sleep(POLL_SECONDS)
        finally:
            with suppress(FileNotFoundError):
                _requested(lake).remove()
    return None


def requested(lake: Location) -> RetryRequest | None:
    """Return the request that waits for an answer."""
    request = _requested(lake).read()
    answer = _answered(lake).read() if request else None
    return request if request and not (answer and answer.number == request.number) else None


def answer(lake: Location, answer: RetryAnswer) -> None:
    _answered(lake).write(answer)


def _requested(lake: Location) -> StateFile[RetryRequest]:
    return StateFile(lake / FOLDER / "requested.json", RetryRequest, WAY_OUT)


def _answered(lake: Location) -> StateFile[RetryAnswer]:
    return StateFile(lake / FOLDER / "answered.json", RetryAnswer, WAY_OUT)
