"""Colours, fonts, heading, axis of time and file of all pictures."""

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.dates import MONTHLY, AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from orchestration.serving.sql.output import replacing

DOTS_PER_INCH = 120
MAX_DOTS = 60_000  # the renderer ends at 65,536 in each direction
INK, PALE = "#333333", "#8a8a8a"
STYLE: Any = {
    "axes.edgecolor": "#bbbbbb",
    "axes.formatter.useoffset": False,
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 9,
    "grid.color": "#ececec",
    "text.color": INK,
    "text.parse_math": False,  # a dollar in a name is a dollar
    "xtick.color": INK,
    "ytick.color": INK,
}


def draw_heading(figure: Figure, title: str, subtitle: str) -> None:
    width, height = figure.get_size_inches()
    figure.text(0.12 / width, 1 - 0.2 / height, title, fontsize=14, fontweight="bold", va="top")
    figure.text(0.12 / width, 1 - 0.5 / height, subtitle, fontsize=8.5, color=PALE, va="top")


def set_time_axis(panel: Axes) -> None:
    """Instants in UTC below a panel, and few values beside it."""
    locator = AutoDateLocator(tz="UTC", maxticks=8)
    locator.intervald[MONTHLY] = [1, 2, 3, 4, 6, 12]  # of four years, which is also what one instant gets, eight ticks are too many
    panel.xaxis.set_major_locator(locator)
    panel.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz="UTC"))
    panel.tick_params(length=0)
    panel.margins(x=0.01, y=0.12)
    panel.yaxis.set_major_locator(MaxNLocator(4))


def save(figure: Figure, output: Path) -> Path:
    """Write a PNG, which replaces an older one as a whole."""
    output.parent.mkdir(parents=True, exist_ok=True)
    with replacing(output) as file:
        figure.savefig(file, format="png", dpi=min(DOTS_PER_INCH, MAX_DOTS / figure.get_figheight()))
    return output
