"""Shows an answer as a table, CSV, JSON or Parquet, on stdout, in a pager, or in a file that appears as a whole or not at all."""

import contextlib
import io
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

import click

from orchestration.errors import ConfError, TidemarkError
from orchestration.rendering import show, values
from orchestration.serving.sql.answer import Answer, RefusedError

FORMATS = ("table", "csv", "json", "parquet")


def write(answer: Answer, format: str, output: Path | None = None) -> None:
    """Write to the file, which is replaced, or to stdout; says on stderr if rows were cut off. Instants are in UTC."""
    require_place(format, output)
    if output is None:
        display(answer, format)
    else:
        with replacing(output) as draft:
            if format == "parquet":
                write_parquet(answer, draft)
            else:
                text = io.TextIOWrapper(draft, encoding="utf-8", newline="", write_through=True)
                with contextlib.redirect_stdout(text):
                    display(answer, format)
                text.detach()
    if answer.is_cut_off:
        click.echo(f"only the first {answer.rows.num_rows:,} rows: the answer exceeds the limit; add a filter, or aggregate", err=True)


def require_place(format: str, output: Path | None) -> None:
    """ConfError for Parquet without a file: it cannot be printed."""
    if format == "parquet" and output is None:
        raise ConfError("parquet cannot be printed: give a file, such as --output answer.parquet")


def display(answer: Answer, format: str) -> None:
    """Print to sys.stdout."""
    columns = unique_names(answer.rows.column_names)
    cells = [values(column) for column in answer.rows.columns]
    show([dict(zip(columns, row, strict=True)) for row in zip(*cells, strict=True)], format, columns)


def unique_names(names: Sequence[str]) -> list[str]:
    """Column names; a repeated one gets a number, so that none hides another."""
    taken, unique = set(names), []
    for index, name in enumerate(names):
        new, number = name, names[:index].count(name) + 1
        while number > 1 and new in taken:
            new, number = f"{name}_{number}", number + 1
        taken.add(new)
        unique.append(new)
    return unique


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A draft next to the file, which replaces it at the end. What is no regular file, such as a pipe, is written directly."""
    path = path.resolve()
    is_special = path.exists() and not path.is_file()
    draft = path if is_special else path.with_name(f".{path.name}.{os.getpid()}.draft")
    try:
        with draft.open("wb") as file:
            yield file
            if not is_special:
                file.flush()
                os.fsync(file.fileno())
        draft.replace(path)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise TidemarkError(f"{path} cannot be written: {error.strerror or error}.") from error
    finally:
        if not is_special:
            draft.unlink(missing_ok=True)


def write_parquet(answer: Answer, file: IO[bytes]) -> None:
    """RefusedError for a type that Parquet does not have."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = answer.rows.rename_columns(unique_names(answer.rows.column_names))
    try:
        pq.write_table(rows, file, compression="zstd")
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
        raise RefusedError(f"parquet cannot hold this answer ({str(error).splitlines()[0]}); cast the column to string.") from None


class Terminal(io.StringIO):
    """A buffer that says it is a terminal, so that writers escape control characters."""

    def isatty(self) -> bool:
        return True


def page(write: Callable[[], None], is_wide: bool) -> None:
    """Show what `write` prints, through $PAGER or less if it is longer than the screen. `is_wide`: a table, whose lines less cuts."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        write()
        return
    text = io.StringIO() if is_wide else Terminal()
    with contextlib.redirect_stdout(text):
        write()
    lines = text.getvalue().split("\n")
    size = shutil.get_terminal_size()
    is_long = len(lines) >= size.lines or (is_wide and max(map(len, lines)) > size.columns)
    if is_long and os.environ.get("PAGER") != "":
        os.environ.setdefault("LESS", "-S")
        click.echo_via_pager(text.getvalue())
    elif is_wide:
        write()
    else:
        sys.stdout.write(text.getvalue())
