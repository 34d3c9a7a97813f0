"""Types of options that several commands have."""

from pathlib import Path

import click

PATH = click.Path(path_type=Path)
FILE = click.Path(path_type=Path, dir_okay=False)
DAY = click.DateTime(["%Y-%m-%d"])
