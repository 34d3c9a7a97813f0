"""The picture of a soak: what it took over time, with a line for each disturbance."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from orchestration.serving.plots.style import DOTS_PER_INCH, PALE, STYLE, draw_heading
from tests.soak.samples import BATCHES, BYTES, DESCRIPTORS, FILES, LAKE, MEMORY, PROCESSES, Samples

COLOURS = dict(zip(PROCESSES, ("#333333", "#0072B2", "#D55E00", "#009E73", "#CC79A7"), strict=True))
SIZE = (11.0, 9.6)
Mark = tuple[float, str]
"""Seconds since the begin, and the name of what happened then."""


def draw(samples: Samples, marks: Sequence[Mark], subtitle: str, output: Path) -> None:
    """Into a PNG."""
    with mpl.rc_context(STYLE):
        figure = Figure(SIZE)
        happened, memory, descriptors, files, batches = figure.subplots(5, 1, sharex=True, height_ratios=[1.1, 2, 1.4, 1.4, 1.4])
        _draw_marks(happened, marks)
        _draw_processes(memory, samples, MEMORY, "memory of each process, bytes")
        _draw_processes(descriptors, samples, DESCRIPTORS, "open descriptors of each process")
        _draw_lake(files, samples, FILES, "files of the lake, and")
        _draw_lake(files.twinx(), samples, BYTES, "their bytes (dashed)", at="right")
        _draw_lake(batches, samples, BATCHES, "batches of bronze")
        for panel in (memory, descriptors, files, batches):
            for at, _ in marks:
                panel.axvline(at / 60, color="#e4e4e4", linewidth=0.7, zorder=0)
        batches.set_xlabel("minutes", color=PALE)
        memory.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=len(PROCESSES), frameon=False, fontsize=8.5, borderaxespad=0.1)
        figure.tight_layout(rect=(0, 0, 1, 0.93), h_pad=0.6)
        draw_heading(figure, "A soak of tidemark up", subtitle)
        output.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(output, format="png", dpi=DOTS_PER_INCH)


def _draw_marks(panel: Axes, marks: Sequence[Mark]) -> None:
    """Names in three rows, so that they do not cover each other."""
    panel.set_ylim(0, 1)
    panel.axis("off")
    for number, (at, name) in enumerate(marks):
        panel.text(at / 60, (number % 5) / 5, name, fontsize=6, color=PALE, va="bottom")


def _draw_processes(panel: Axes, samples: Samples, measure: str, title: str) -> None:
    for of in PROCESSES:
        series = samples.series(of, measure)
        panel.plot([at / 60 for at, _ in series], [value for _, value in series], ".", markersize=2.5, color=COLOURS[of], label=of)
    _finish(panel, title, "left")


def _draw_lake(panel: Axes, samples: Samples, measure: str, title: str, at: str = "left") -> None:
    """Dashed where its scale is at the right."""
    series, style = samples.series(LAKE, measure), "-" if at == "left" else "--"
    panel.plot([instant / 60 for instant, _ in series], [value for _, value in series], style, color="#0072B2", linewidth=1.2)
    _finish(panel, title, at)


def _finish(panel: Axes, title: str, at: str) -> None:
    panel.set_ylim(bottom=0)
    panel.yaxis.set_major_formatter(EngFormatter(sep=""))
    panel.set_title(title, loc="left" if at == "left" else "right", fontweight="bold", fontsize=9)
    panel.tick_params(length=0)
