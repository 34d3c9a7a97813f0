"""An answer as a table, CSV, JSON or Parquet, on stdout or in a file that is there as a whole or not at all."""

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from orchestration.errors import ConfError, TidemarkError
from orchestration.rendering import show
from orchestration.serving.sql.answer import Answer

if TYPE_CHECKING:
    import pyarrow as pa

FORMATS = ("table", "csv", "json", "parquet")


def write(answer: Answer, format: str, output: Path | None = None) -> None:
    """To the file, which replaces what was there, or to stdout. Says on stderr that rows were cut off. Instants are in UTC."""
    require_place(format, output)
    if output is None:
        display(answer, format)
    else:
        with replacing(output) as draft:
            if format == "parquet":
                _write_parquet(answer, draft)
            else:
                _write_text(answer, format, draft)
    if answer.is_cut_off:
        count = f"{answer.rows.num_rows:,}"
        click.echo(f"only the first {count} rows: the answer has more than one may have; ask for less, or for sums", err=True)


def require_place(format: str, output: Path | None) -> None:
    """Refuse to show what nobody could read."""
    if format == "parquet" and output is None:
        raise ConfError("parquet is nothing for a screen: say where to write it, such as --output answer.parquet")


def display(answer: Answer, format: str) -> None:
    """On sys.stdout."""
    columns = distinct(answer.rows.column_names)
    cells = [values(column) for column in answer.rows.columns]
    show([dict(zip(columns, row, strict=True)) for row in zip(*cells, strict=True)], format, columns)


def distinct(names: Sequence[str]) -> list[str]:
    """Of columns: one that is there several times gets a number, so that none hides another."""
    taken, found = set(names), []
    for place, name in enumerate(names):
        new, number = name, names[:place].count(name) + 1
        while number > 1 and new in taken:
            new, number = f"{name}_{number}", number + 1
        taken.add(new)
        found.append(new)
    return found


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A draft beside the file, which takes its place in the end; what is no plain file, such as a pipe, is written as it is."""
    path = path.resolve()
    try:
        if path.exists() and not stat.S_ISREG(path.stat().st_mode):
            with path.open("wb") as file:
                yield file
            return
        draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
        try:
            with draft.open("wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise TidemarkError(f"{path} cannot be written: {error.strerror or error}.") from error


def _write_text(answer: Answer, format: str, file: IO[bytes]) -> None:
    import io

    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    with contextlib.redirect_stdout(text):
        display(answer, format)
    text.detach()


def _write_parquet(answer: Answer, file: IO[bytes]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = answer.rows.rename_columns(distinct(answer.rows.column_names))
    try:
        pq.write_table(rows, file, compression="zstd")
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
        raise TidemarkError(f"parquet has no place for this answer ({str(error).splitlines()[0]}); cast the column to string.") from None


def values(column: "pa.ChunkedArray") -> list[Any]:
    """Of Python; instants that it has none for, outside of the years 1 to 9999, as text."""
    try:
        found: list[Any] = column.to_pylist(maps_as_pydicts="lossy")
    except (ValueError, OverflowError):
        import pyarrow as pa

        found = column.cast(pa.string()).to_pylist()
    return found
