"""What Spark says of a query, as a sentence for who asked: what is wrong, where, and no trace."""

import re

from orchestration.errors import TidemarkError
from orchestration.serving.sql.refusal import RefusedError, pointed

PLACE = re.compile(r"line (\d+),? pos(ition)? (\d+)")
"""Spark counts a `pos` from 0 and a `position` from 1."""
CONDITION = re.compile(r"\[([A-Z0-9_.]+)\] ")
NOT_FOR_ASKERS = re.compile(r"\s*(?:If necessary,? set .*? to bypass this error\.|SQLSTATE: \w+.*)", re.DOTALL)


def told(error: Exception, query: str) -> TidemarkError:
    """As an error for people; one of a query is a RefusedError, one of the engine is not."""
    text = str(error).strip()
    found = CONDITION.search(text)
    if "spark.driver.maxResultSize" in text:
        return RefusedError("the answer is too large: ask for fewer rows or columns, or for sums.")
    if "OutOfMemoryError" in text or "SparkOutOfMemoryError" in text:
        return RefusedError("the query needs more memory than a query may take: ask for less at once.")
    if "StackOverflowError" in text:
        return RefusedError("the query is too large: ask it in parts.")
    if found is None:
        return TidemarkError(_cause(text))
    # An error of a task is told with the trace of the task around it; the condition begins what is meant.
    what = NOT_FOR_ASKERS.sub("", text[found.end() :].split("\n\n")[0].split("\n==")[0].split("\n\tat ")[0]).strip()
    place = PLACE.search(text)
    start = None if place is None else _start(query, int(place[1]), int(place[3]) - (place[2] is not None))
    return RefusedError(what if start is None else f"{what}\n{pointed(query, start)}")


def _cause(text: str) -> str:
    """Of an error without a condition the innermost cause, without its trace; a class of Java is named where it says nothing more."""
    causes = [line.strip() for line in text.splitlines() if line.strip().startswith("Caused by: ")]
    lines = [*reversed(causes), *(line.strip().removeprefix(": ") for line in text.splitlines())]
    first = next((line for line in lines if line and not line.startswith("An error occurred")), "Spark gave no reason")
    return first.removeprefix("Caused by: ")


def _start(query: str, line: int, column: int) -> int | None:
    """As an index into the query; None where it has no such place, as for an error inside a view."""
    lines = query.split("\n")
    if not (1 <= line <= len(lines) and 0 <= column <= len(lines[line - 1])):
        return None
    return sum(len(each) + 1 for each in lines[: line - 1]) + column
