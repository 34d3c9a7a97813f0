"""A stranger's file, as rows of fields by path: the first 1,000 lines are enough to propose a conf from."""

import gzip
import zlib
from dataclasses import dataclass, field
from pathlib import Path

from orchestration.errors import ConfError

MAX_LINES = 1_000
MAX_BYTES = 16_000_000

Scalar = str | int | float | bool
Row = dict[str, Scalar]
"""Values by path, as conf would name it; what is null or blank is absent."""


@dataclass(frozen=True)
class Sample:
    """What the sample is made of. `rows` has one row a measurement or row of measurements; `columns` is empty where the header serves."""

    file: Path
    format: str
    rows: list[Row]
    each: str | None = None
    has_header: bool = False
    columns: tuple[str, ...] = ()
    separator: str = ","
    quote: str = '"'
    notes: list[str] = field(default_factory=list)


def lines_of(file: Path) -> list[str]:
    """The first lines of a text file, gzip unpacked; raises ConfError for what is no such file."""
    try:
        with file.open("rb") as raw:
            is_gzip = raw.read(2) == b"\x1f\x8b"
        with gzip.open(file) if is_gzip else file.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise ConfError(
            f"{file} cannot be read ({getattr(error, 'strerror', None) or error}); check the path and that the file is whole"
        ) from None
    return _complete_lines(file, data)


def _complete_lines(file: Path, data: bytes) -> list[str]:
    is_cut = len(data) > MAX_BYTES
    lines = [line.rstrip(b"\r") for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n")]
    lines = lines[:-1] if is_cut else lines
    try:
        texts = [line.decode("utf-8") for line in lines[:MAX_LINES]]
    except UnicodeDecodeError as error:
        raise ConfError(f"{file} is not UTF-8 text ({error.reason}); convert it first, for example with iconv -t UTF-8") from None
    texts = [text for text in texts if text.strip()]
    if not texts or any("\x00" in text for text in texts):
        what = "is binary" if texts else f"has a line of more than {MAX_BYTES:,} bytes" if is_cut else "is empty"
        raise ConfError(f"{file} {what}; name a file of JSON lines or CSV")
    return texts
