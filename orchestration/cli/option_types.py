"""Types of options."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import click

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
