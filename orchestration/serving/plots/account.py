"""Plots the account: what became of the measurements of each bronze batch, and every rare fate again on a scale of its own.

So a few late rows are visible beside a million readings, and no bar is cut. Many batches share a bar, in order. Without Spark.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from expectations.wording import counted
from orchestration.audit.reconciliation.account import Rows
from orchestration.errors import TidemarkError
from orchestration.serving.plots.style import INK, PALE, STYLE, draw_heading, save

# Okabe and Ito's colours, which colour-blind people can tell apart; the hatches differ without any colour.
FATES: dict[str, dict[str, Any]] = {
    "readings": {"color": "#56B4E9"},
    "duplicates": {"color": "#CC79A7", "hatch": "...."},
    "late": {"color": "#E69F00", "hatch": "////"},
    "quarantined": {"color": "#0072B2", "hatch": "xxxx"},
    "without_measurements": {"color": "#999999"},
    "waiting": {"color": "#d9d9d9"},
    "missing": {"color": "#D55E00"},
    "duplicated": {"color": "#D55E00", "hatch": "||||"},
    "orphaned": {"color": "#D55E00", "hatch": "----"},
}
STACKED = ("readings", "duplicates", "late", "quarantined", "without_measurements", "waiting", "missing")
ALWAYS = {"duplicates", "late", "quarantined"}
"""Fates with a panel even if there are none, which is an answer too. The others have a panel only if there are some."""
MAX_BARS = 60
WIDTH, HEAD_INCHES, FOOT_INCHES = 9.2, 0.65, 0.55
ALL_INCHES, FATE_INCHES = 2.6, 0.85
MIN_PLACES = 5  # a few bars are no rectangles as wide as the picture
MAX_NUMBERED_BARS = 12  # more bars leave no room for a number above each
BAR = 0.82


def plot(batches: Rows, output: Path) -> Path:
    """Draw the account into a PNG; TidemarkError if there is nothing to draw."""
    if all(batch["bronze_batch"] is None for batch in batches):
        raise TidemarkError("the account holds no event, so there is nothing to draw: leave --plot or --since out.")
    return save(draw(batches), output)


def draw(batches: Rows) -> Figure:
    """The picture; a panel for all measurements, and one for each fate but the first."""
    bars = bars_of(batches)
    drawn = [fate for fate in FATES if fate in ALWAYS or (fate != "readings" and any(bar[fate] for bar in bars))]
    heights = [ALL_INCHES, *[FATE_INCHES] * len(drawn)]
    with mpl.rc_context(STYLE | {"hatch.linewidth": 0.5, "axes.grid.axis": "y"}):
        figure = Figure((WIDTH, HEAD_INCHES + sum(heights) + FOOT_INCHES))
        panels = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
        draw_stacked(panels[0], bars)
        for panel, fate in zip(panels[1:], drawn, strict=True):
            draw_fate(panel, fate, bars)
        finish(figure, list(panels), bars)
        draw_heading(figure, "What became of the measurements", subtitle(batches))
    return figure


def bars_of(batches: Sequence[Mapping[str, Any]]) -> Rows:
    """Batches, all sources together, as at most MAX_BARS runs of equally many batches; `first` and `last` are the batches of a run."""
    listed = [batch for batch in batches if batch["bronze_batch"] is not None]  # the table of the account shows the others
    numbers = sorted({batch["bronze_batch"] for batch in listed})
    size = max(-(-len(numbers) // MAX_BARS), 1)
    bars: Rows = []
    for start in range(0, len(numbers), size):
        run = numbers[start : start + size]
        inside = [batch for batch in listed if run[0] <= batch["bronze_batch"] <= run[-1]]
        bars.append({"first": run[0], "last": run[-1]} | {fate: sum(batch[fate] for batch in inside) for fate in FATES})
    return bars


def draw_stacked(panel: Axes, bars: Rows) -> None:
    """All measurements on one scale from zero."""
    below = [0] * len(bars)
    for fate in STACKED:
        heights = [bar[fate] for bar in bars]
        if any(heights):
            panel.bar(range(len(bars)), heights, BAR, below, label=fate, edgecolor="white", linewidth=0, **FATES[fate])
        below = [low + height for low, height in zip(below, heights, strict=True)]
    panel.set_ylim(0, max([*below, 1]) * 1.06)
    panel.set_title("all, on one scale", loc="left", fontweight="bold", fontsize=9)
    panel.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=len(STACKED), frameon=False, fontsize=8.5, borderaxespad=0.1)


def draw_fate(panel: Axes, fate: str, bars: Rows) -> None:
    """One fate on a scale of its own, from zero, with its sum and share."""
    heights = [bar[fate] for bar in bars]
    drawn = panel.bar(range(len(bars)), heights, BAR, edgecolor="white", linewidth=0, **FATES[fate])
    total, whole = sum(heights), sum(bar[kind] for bar in bars for kind in STACKED)
    panel.set_title(fate, loc="left", fontweight="bold", fontsize=9)
    share = f"{total / whole:.2%}" if whole and total / whole >= 0.0001 else "less than 0.01%"
    panel.set_title(f"{total:,}, {share}" if total else "none", loc="right", color=PALE, fontsize=8.5)
    panel.tick_params(labelleft=total > 0)
    if len(bars) <= MAX_NUMBERED_BARS and total:
        panel.bar_label(drawn, [f"{height:,}" if height else "" for height in heights], padding=1, fontsize=7.5, color=INK)
    panel.set_ylim(0, max([*heights, 1]) * 1.3)


def finish(figure: Figure, panels: Sequence[Axes], bars: Rows) -> None:
    """One axis of batches for all panels, with labels below the last one."""
    for panel in panels:
        panel.tick_params(length=0)
        panel.set_axisbelow(True)
        panel.yaxis.set_major_locator(MaxNLocator(4 if panel is panels[0] else 2, integer=True))
        panel.yaxis.set_major_formatter(EngFormatter(sep=""))
        beside = max(MIN_PLACES - len(bars), 0) / 2
        panel.set_xlim(-0.6 - beside, len(bars) - 0.4 + beside)
    step = -(-len(bars) // MAX_NUMBERED_BARS)
    labels = [str(bar["first"]) if bar["first"] == bar["last"] else f"{bar['first']}\u2013{bar['last']}" for bar in bars[::step]]
    panels[-1].set_xticks(range(0, len(bars), step), labels)
    panels[-1].set_xlabel("bronze batch, in the order of ingestion", color=PALE)
    figure.tight_layout(rect=(0, 0, 1, 1 - HEAD_INCHES / figure.get_figheight()), h_pad=0.6)


def subtitle(batches: Rows) -> str:
    """Number of events and the time in which they were ingested."""
    at = sorted(batch["ingested_at"] for batch in batches if batch["ingested_at"] is not None)
    when = f"ingested {at[0]:%Y-%m-%d %H:%M} to {at[-1]:%Y-%m-%d %H:%M} UTC" if at else "of no batch in bronze"
    return f"{counted(sum(batch['events'] for batch in batches), 'event')}, {when}"
