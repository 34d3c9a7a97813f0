"""A picture of a group's vectors over time: a panel for each feature, a line for each entity; no Spark.

A point stands where its window ends, in UTC. Hollow points (of a long line, some) are carried forward from an earlier window, gaps are
missing values. Of each vector the highest revision is drawn.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, QueryBuilder
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from gold.spec import Group
from orchestration.conf.model import Conf
from orchestration.errors import TidemarkError
from orchestration.storage.generations import active_generation
from silver.spec import Aggregation, Metric

MOST_ENTITIES = 12
# Okabe and Ito's colours, which the colour-blind tell apart, less the yellow that is too pale for a line; the second six are dashed.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
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
PANEL_INCHES = (8.6, 1.7)
HEAD_INCHES, FOOT_INCHES, LEGEND_INCHES = 0.8, 0.45, 1.9
PANELS_IN_A_COLUMN = 6
MOST_COLUMNS = 3
DOTS_PER_INCH = 120
MOST_HOLLOW = (
    80  # of a longer line only every so many carried forward are marked: a metric coarser than the vector has more of them than not
)
MOST_DOTS = 60_000  # the renderer ends at 65,536 in each direction
GAP = 3  # times the usual distance of two vectors
FEW_POINTS = 60  # a line of so few is drawn with a dot for each


@dataclass(frozen=True)
class Series:
    """The vectors of one entity in order of time: `values` and `filled` have a row a window and a column a feature; NaN is missing."""

    at: npt.NDArray[np.datetime64]
    values: npt.NDArray[np.float64]
    filled: npt.NDArray[np.bool_]


def plot(conf: Conf, group: Group, entities: Sequence[str], output: Path) -> Path:
    """Draw the group's vectors into a PNG; without `entities` the first twelve by name. TidemarkError where there is nothing to draw."""
    if group.vector is None:
        raise TidemarkError(f"{group.name} has no vector to draw: declare one in {conf.folder / 'groups.yml'}.")
    table = active_generation(conf.lake).table(conf.lake, f"gold.{group.name}_vectors")
    known = entities_of(table)
    if not known:
        raise TidemarkError(f"gold.{group.name}_vectors holds no vectors yet: bring it up to date with `tidemark run --once`.")
    if strangers := sorted(set(entities) - set(known)):
        raise TidemarkError(f"gold.{group.name}_vectors knows no entity {strangers[0]!r}: it has {shortened(known)}.")
    drawn = (sorted(set(entities)) or known)[:MOST_ENTITIES]
    series = series_of(table, drawn, group.vector.features)
    wanted = len(set(entities)) or len(known)
    figure = draw(group, conf.metrics, series, note(len(drawn), wanted))
    output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(output, format="png", dpi=min(DOTS_PER_INCH, MOST_DOTS / figure.get_figheight()))
    return output


def entities_of(table: Path) -> list[str]:
    """The names in a table of vectors, sorted; empty where there is no table."""
    if not DeltaTable.is_deltatable(str(table)):
        return []
    names: list[str] = query(table, "select distinct entity from vectors order by entity")["entity"].to_pylist()
    return names


def series_of(table: Path, entities: Sequence[str], features: Sequence[str]) -> dict[str, Series]:
    """The vectors of each entity; those written under a conf with another number of features are left out."""
    names = ", ".join("'" + entity.replace("'", "''") + "'" for entity in entities)
    newest = "row_number() over (partition by entity, window_start order by revision desc) = 1"
    chosen = f"select *, {newest} as is_newest from vectors where entity in ({names}) and cardinality(vector) = {len(features)}"
    rows = query(table, f"select entity, window_end, vector, filled from ({chosen}) where is_newest order by entity, window_end")
    names_of_rows = rows["entity"].to_numpy(zero_copy_only=False)
    at = rows["window_end"].cast(pa.timestamp("us")).to_numpy()
    values = pc.list_flatten(rows["vector"]).to_numpy(zero_copy_only=False).astype(float).reshape(-1, len(features))
    filled = np.array([[feature in names for feature in features] for names in rows["filled"].to_pylist()], bool).reshape(-1, len(features))
    mine = {entity: names_of_rows == entity for entity in entities}
    return {entity: with_gaps(Series(at[rows_of], values[rows_of], filled[rows_of])) for entity, rows_of in mine.items()}


def with_gaps(series: Series) -> Series:
    """A row of NaN where vectors stay away for much longer than they usually do, so that no line bridges a device that was offline."""
    apart = np.diff(series.at)
    gaps = np.flatnonzero(apart > GAP * np.median(apart)) + 1 if len(apart) else np.array([], int)
    return Series(
        np.insert(series.at, gaps, series.at[gaps - 1] + apart[gaps - 1] // 2),
        np.insert(series.values, gaps, np.nan, axis=0),
        np.insert(series.filled, gaps, False, axis=0),
    )


def query(table: Path, sql: str) -> pa.Table:
    """Rows of a query over the latest version, under the name `vectors`."""
    return pa.table(QueryBuilder().register("vectors", DeltaTable(table)).execute(sql))


def draw(group: Group, metrics: Mapping[str, Metric], series: Mapping[str, Series], remark: str) -> Figure:
    """The picture; its size grows with the number of features."""
    features = group.vector.features if group.vector else ()
    columns = min(-(-len(features) // PANELS_IN_A_COLUMN), MOST_COLUMNS)
    lines = -(-len(features) // columns)
    width = PANEL_INCHES[0] * (1 if columns == 1 else 0.6 * columns) + LEGEND_INCHES
    height = PANEL_INCHES[1] * lines + HEAD_INCHES + FOOT_INCHES
    looks = dict(zip(series, looks_of(len(series)), strict=True))
    with mpl.rc_context(STYLE):
        figure = Figure((width, height))
        panels = figure.subplots(lines, columns, sharex=True, squeeze=False).T.flatten()
        for number, feature in enumerate(features):
            title(panels[number], feature, metrics)
            for entity, vectors in series.items():
                draw_line(panels[number], vectors.at, vectors.values[:, number], vectors.filled[:, number], looks[entity])
            if all(np.isnan(vectors.values[:, number]).all() for vectors in series.values()):
                panels[number].text(0.5, 0.5, "no values", transform=panels[number].transAxes, ha="center", va="center", color=PALE)
                panels[number].tick_params(labelleft=False)
        finish(figure, list(panels), len(features), list(series.values()))
        head(figure, group, remark)
        legend(figure, looks, any(vectors.filled.any() for vectors in series.values()))
    return figure


def draw_line(panel: Axes, at: Any, values: Any, filled: Any, look: dict[str, Any]) -> None:
    """One entity in one panel: a line that breaks at gaps, hollow points where filled, and a dot where a point would have no line."""
    panel.plot(at, values, linewidth=1.3, **look)
    known = ~np.isnan(values)
    beside = np.concatenate([[False], known]), np.concatenate([known, [False]])
    is_alone = known & ~beside[0][:-1] & ~beside[1][1:]
    dotted = known & ~filled & (is_alone | (len(at) <= FEW_POINTS))
    panel.plot(at[dotted], values[dotted], "o", markersize=3, color=look["color"])
    hollow = np.flatnonzero(filled)[:: -(-len(at) // MOST_HOLLOW)]
    panel.plot(at[hollow], values[hollow], "o", markersize=3.4, color=look["color"], markerfacecolor="white", markeredgewidth=0.8)


def title(panel: Axes, feature: str, metrics: Mapping[str, Metric]) -> None:
    """Feature and unit, and more faintly how its value comes about."""
    metric = metric_of(feature, metrics)
    unit = f" [{metric.unit}]" if metric and metric.unit and metric.aggregation is not Aggregation.COUNT else ""
    panel.set_title(feature + unit, loc="left", fontweight="bold", fontsize=9)
    if metric:
        panel.set_title(f"{metric.aggregation} of {metric.step_seconds} s", loc="right", color=PALE, fontsize=8)


def metric_of(feature: str, metrics: Mapping[str, Metric]) -> Metric | None:
    """The metric behind `metric` or `device.metric`, where either name may hold dots itself; None for one that left conf."""
    fitting = [name for name in metrics if feature == name or feature.endswith(f".{name}")]
    return metrics[max(fitting, key=len)] if fitting else None


def finish(figure: Figure, panels: Sequence[Axes], used: int, series: Sequence[Series]) -> None:
    """One time axis for all panels, labelled below the last of each column."""
    at = np.concatenate([vectors.at for vectors in series])
    if len(np.unique(at)) == 1:  # a single instant has no width to draw
        panels[0].set_xlim(at[0] - np.timedelta64(1, "h"), at[0] + np.timedelta64(1, "h"))
    for number, panel in enumerate(panels):
        panel.set_visible(number < used)
        locator = AutoDateLocator(tz="UTC", maxticks=8)
        panel.xaxis.set_major_locator(locator)
        panel.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz="UTC"))
        panel.tick_params(length=0)
        panel.margins(x=0.01, y=0.12)
        panel.yaxis.set_major_locator(MaxNLocator(4))
    panels[used - 1].tick_params(labelbottom=True)  # its column may be shorter than the others
    width, height = figure.get_size_inches()
    figure.tight_layout(rect=(0, 0, 1 - LEGEND_INCHES / width, 1 - HEAD_INCHES / height), h_pad=0.9, w_pad=1.5)


def head(figure: Figure, group: Group, remark: str) -> None:
    """What the picture is of, and what it leaves out."""
    width, height = figure.get_size_inches()
    figure.text(0.12 / width, 1 - 0.2 / height, group.label or group.name, fontsize=14, fontweight="bold", va="top")
    figure.text(0.12 / width, 1 - 0.5 / height, remark, fontsize=8.5, color=PALE, va="top")


def legend(figure: Figure, looks: Mapping[str, dict[str, Any]], has_filled: bool) -> None:
    """To the right, which line is which entity."""
    width, height = figure.get_size_inches()
    labels = [shorter(entity) for entity in looks]
    handles = [Line2D([], [], linewidth=2, **look) for look in looks.values()]
    if has_filled:
        labels.append("carried forward")
        handles.append(Line2D([], [], linestyle="", marker="o", color=PALE, markerfacecolor="white", markersize=4))
    corner = (1 - (LEGEND_INCHES - 0.1) / width, 1 - HEAD_INCHES / height)
    figure.legend(handles, labels, loc="upper left", bbox_to_anchor=corner, frameon=False, fontsize=8.5)


def looks_of(count: int) -> list[dict[str, Any]]:
    """Colour and line style of each entity."""
    return [
        {"color": COLOURS[number % len(COLOURS)], "linestyle": "-" if number < len(COLOURS) else (0, (4, 1.5))} for number in range(count)
    ]


def note(drawn: int, wanted: int) -> str:
    """What the picture shows, and what it leaves out."""
    left_out = f"{drawn} of {wanted} entities, {wanted - drawn} left out (choose with --entity)" if drawn < wanted else f"entities: {drawn}"
    return f"vectors at the end of their windows, UTC  ·  {left_out}"


def shortened(names: Sequence[str]) -> str:
    """The first few of many names."""
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def shorter(name: str) -> str:
    """A name as the legend has room for; matplotlib leaves out labels that begin with an underscore."""
    cut = name if len(name) <= 24 else name[:23] + "…"
    return f"\u200a{cut}" if cut.startswith("_") else cut
