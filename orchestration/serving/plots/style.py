"""Colours, fonts and the heading that all pictures have in common."""

from typing import Any

from matplotlib.figure import Figure

DOTS_PER_INCH = 120
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
    """Title and subtitle in the top left corner."""
    width, height = figure.get_size_inches()
    figure.text(0.12 / width, 1 - 0.2 / height, title, fontsize=14, fontweight="bold", va="top")
    figure.text(0.12 / width, 1 - 0.5 / height, subtitle, fontsize=8.5, color=PALE, va="top")
