"""Types of options, and the text of a file that an option names."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import click

from orchestration.errors import ConfError

PATH = click.Path(path_type=Path)
FILE = click.Path(path_type=Path, dir_okay=False)
DAY = click.DateTime(["%Y-%m-%d"])
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


class Duration(click.ParamType[timedelta]):
    """Such as 90m, 2h or 1d."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        match = re.fullmatch(r"([1-9][0-9]{0,5})([smhd])", str(value))
        if match is None:
            self.fail(f"{value!r} is no duration; write for example 90m, 2h or 1d", param, ctx)
        return timedelta(**{UNITS[match[2]]: int(match[1])})


def text_of(file: Path) -> str:
    """Read the file; ConfError if it is not there or no text in UTF-8."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfError(f"{file} cannot be read ({error}); check the path, and that the file is text in UTF-8") from error
