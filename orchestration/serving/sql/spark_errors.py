"""Translates Spark's errors into a sentence for the user: what is wrong and where, without a stack trace."""

import re

from orchestration.errors import TidemarkError
from orchestration.serving.sql.refusal import RefusedError, pointed

PLACE = re.compile(r"line (\d+),? pos(ition)? (\d+)")
"""Spark counts a `pos` from 0 and a `position` from 1."""
CONDITION = re.compile(r"\[([A-Z0-9_.]+)\] ")
INTERNAL_ADVICE = re.compile(r"\s*(?:If necessary,? set .*? to bypass this error\.|SQLSTATE: \w+.*)", re.DOTALL)
"""Advice on Spark's settings, which users of the server cannot change."""


def translate(error: Exception, query: str) -> TidemarkError:
    """A RefusedError if the query is wrong, a TidemarkError if the engine failed."""
    text = str(error).strip()
    condition = CONDITION.search(text)
    if "spark.driver.maxResultSize" in text:
        return RefusedError("the answer is too large: select fewer rows or columns, or aggregate.")
    if "OutOfMemoryError" in text or "SparkOutOfMemoryError" in text:
        return RefusedError("the query needs more memory than a query may use: read less at once.")
    if "StackOverflowError" in text:
        return RefusedError("the query is too large: split it.")
    if condition is None:
        return TidemarkError(_cause(text))
    # An error in a task comes inside the trace of the task; the message begins at the condition.
    message = INTERNAL_ADVICE.sub("", text[condition.end() :].split("\n\n")[0].split("\n==")[0].split("\n\tat ")[0]).strip()
    place = PLACE.search(text)
    start = None if place is None else _start(query, int(place[1]), int(place[3]) - (place[2] is not None))
    return RefusedError(message if start is None else f"{message}\n{pointed(query, start)}")


def _cause(text: str) -> str:
    """The innermost cause of an error without a condition, without its trace."""
    causes = [line.strip() for line in text.splitlines() if line.strip().startswith("Caused by: ")]
    lines = [*reversed(causes), *(line.strip().removeprefix(": ") for line in text.splitlines())]
    first = next((line for line in lines if line and not line.startswith("An error occurred")), "Spark gave no reason")
    return first.removeprefix("Caused by: ")


def _start(query: str, line: int, column: int) -> int | None:
    """The index in the query; None if the place is not in the query, as for an error inside a view."""
    lines = query.split("\n")
    if not (1 <= line <= len(lines) and 0 <= column <= len(lines[line - 1])):
        return None
    return sum(len(before) + 1 for before in lines[: line - 1]) + column
