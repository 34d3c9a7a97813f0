"""Errors meant for people: one sentence that says where, what and how to fix it; the command line turns each into its exit code."""

import errno
import re

BROKE = 4

WAYS_OUT = {
    errno.EROFS: "cannot be written: its disk is mounted read-only; mount it for writing",
    errno.EACCES: "cannot be used: permission denied; run as the user that owns it, or change its mode",
    errno.EPERM: "cannot be changed: the system does not permit it; run as the user that owns it",
    errno.ENOSPC: "cannot be written: its disk is full; make room",
    errno.EDQUOT: "cannot be written: the quota of this user is used up; make room",
    errno.EMFILE: "cannot be opened: this process has too many open files; raise `ulimit -n`",
    errno.EIO: "cannot be used: the disk fails; look at the log of the system",
}
"""Errors of the machine, and what to do about them: the words behind the name of the file."""
KEYS = "look at endpoint, region and keys: in `store` of pipeline.yml, or as this machine has them"
EXTRAS = {
    "confluent_kafka": "kafka",
    "fastavro": "kafka",
    "paho": "mqtt",
    "psycopg": "postgres",
    "boto3": "s3",
    "fsspec": "s3",
    "great_expectations": "quality",
    "sqlalchemy": "quality",
    "dbt": "dbt",
    "apprise": "alerts",
    "matplotlib": "plots",
    "opentelemetry": "otel",
}
"""The extra of the package that brings each top-level module."""


class TidemarkError(Exception):
    """It broke, but we know how: shown as one sentence, with a trace only under --debug."""

    exit_code = BROKE
    is_passing = False
    """Whether it may be gone in a while, without anybody's doing."""


class DownError(TidemarkError):
    """A target took nothing. `retry_after`: for how many seconds it wants no request; 0 where it does not say."""

    def __init__(self, what: str, retry_after: float = 0.0) -> None:
        super().__init__(what)
        self.retry_after = retry_after


class ConfError(TidemarkError):
    """Wrong usage or conf: one line per mistake, all of them at once."""

    exit_code = 2


class HeldError(TidemarkError):
    """Someone else holds the lake."""

    exit_code = 3
    is_passing = True


def describe(error: Exception) -> str:
    """Describe an error for people: a line for each mistake of a ConfError, for others a sentence; no trace."""
    match error:
        case ConfError():
            return "\n".join(f"tidemark: {line}" for line in str(error).splitlines())
        case TidemarkError():
            return f"tidemark: {error}"
        case ModuleNotFoundError() if extra := EXTRAS.get((error.name or "").partition(".")[0]):
            return f"tidemark: the Python package of {error.name} is not installed: `pip install 'tidemark[{extra}]'`"
        case OSError() if error.errno == errno.EIO and str(error.filename).startswith("s3://"):
            return f"tidemark: {error.filename}: {error.strerror}; {KEYS}."
        case OSError() if way_out := _way_out(error):
            return f"tidemark: {error.filename or first_line(str(error))} {way_out}."
        case _:
            sentence = error_in_trace(str(error)) or f"{type(error).__name__}: {first_line(str(error))}"
            return f"tidemark: it broke: {sentence} (--debug shows the trace)"


def sentence_of(error: Exception) -> str:
    """Describe an error for a page, which names no program."""
    return str(error) if isinstance(error, TidemarkError) else describe(error).removeprefix("tidemark: ")


def without_secrets(error: Exception) -> str:
    """Describe an error of a target. For an error that is not ours only its kind, as its text may quote an address that is secret."""
    if isinstance(error, TidemarkError | ModuleNotFoundError):
        return sentence_of(error)
    return f"{type(error).__name__} ({error.strerror})" if isinstance(error, OSError) and error.strerror else type(error).__name__


def exit_code_of(error: Exception) -> int:
    """The exit code of the command that ended with this error."""
    return error.exit_code if isinstance(error, TidemarkError) else BROKE


def _way_out(error: OSError) -> str | None:
    """Say what the machine refuses and what to do about it; delta-rs names the number of the error in its text alone."""
    in_text = re.search(r"os error (\d+)", str(error))
    return WAYS_OUT.get(error.errno or (int(in_text[1]) if in_text else 0))


def error_in_trace(message: str) -> str | None:
    """Find the error that ended a Python process of Spark, or a read for DuckDB: the first line without indentation of the last trace in
    the message."""
    _, is_there, trace = message.rpartition("Traceback (most recent call last):")
    return next((line for line in trace.splitlines() if line.strip() and not line[0].isspace()), None) if is_there else None


def first_line(message: str) -> str:
    """Return the cause in a Java error, without the call through which Python met it, and without the trace."""
    lines = (line.strip().removeprefix(": ") for line in message.splitlines())
    return next((line for line in lines if line and not line.startswith("An error occurred while calling")), "without a message")
