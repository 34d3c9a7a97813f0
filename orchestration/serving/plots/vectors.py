"""Plots a group's vectors over time: a panel for each feature and kind of entity, a line for each entity; without Spark.

A point is at the end of its window, in UTC. A hollow point is carried forward from an earlier window; a long line marks only some of them.
Gaps are missing values. The highest revision of each vector is drawn.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gold.windows.spec import Group
from orchestration.conf.model import Conf
from orchestration.errors import TidemarkError
from orchestration.serving.plots.style import PALE, STYLE, draw_heading, save, set_time_axis
from orchestration.storage.delta import ask, literal, open_table
from orchestration.storage.views import View, views
from silver.aggregation import Aggregation
from silver.metric import Metric

MAX_ENTITIES = 12
# Okabe and Ito's colours, which colour-blind people can tell apart, without the yellow, too pale for a line; entities 7 to 12 are dashed.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
PANEL_INCHES = (8.6, 1.7)
HEAD_INCHES, FOOT_INCHES, LEGEND_INCHES = 0.8, 0.45, 1.9
PANELS_IN_A_COLUMN = 6
MAX_COLUMNS = 3
MAX_HOLLOW = 80  # marks on a line: most values of a metric coarser than the vector are carried forward, so only some are marked
GAP = 3  # times the median distance of two vectors
MAX_DOTTED_POINTS = 60  # a line of at most so many points has a dot for each


@dataclass(frozen=True)
class Series:
    """The vectors of one entity in order of time: `values` and `filled` have a row a window and a column a feature; NaN is missing."""

    at: npt.NDArray[np.datetime64]
    values: npt.NDArray[np.float64]
    filled: npt.NDArray[np.bool_]


def plot(conf: Conf, group: Group, entities: Sequence[str], output: Path) -> Path:
    """Draw the group's vectors into a PNG; without `entities` the first twelve by name. TidemarkError if there is nothing to draw."""
    if group.vector is None:
        raise TidemarkError(f"{group.name} has no vector to draw: declare one in {conf.folder / 'groups.yml'}.")
    name = f"gold.{group.name}_vectors"
    view = views(conf, None, name).get(name)
    existing = entities_of(view) if view else []
    if view is None or not existing:
        raise TidemarkError(f"gold.{group.name}_vectors holds no vectors yet: bring it up to date with `tidemark run --once`.")
    if unknown := sorted(set(entities) - set(existing)):
        names = ", ".join(existing[:8]) + (f" and {len(existing) - 8} more" if len(existing) > 8 else "")
        raise TidemarkError(f"gold.{group.name}_vectors has no entity {unknown[0]!r}: it has {names}.")
    drawn = (sorted(set(entities)) or existing)[:MAX_ENTITIES]
    series = series_of(view, drawn, group.vector.features)
    wanted = len(set(entities)) or len(existing)
    return save(draw(group, conf.metrics, series, note(len(drawn), wanted)), output)


def entities_of(view: View) -> list[str]:
    """The names in a view of vectors, sorted."""
    return list(query(view, "select distinct entity from vectors order by entity")["entity"].to_pylist())


def series_of(view: View, entities: Sequence[str], features: Sequence[str]) -> dict[str, Series]:
    """The vectors of each entity; vectors with another number of features, from an earlier conf, are left out."""
    chosen = f"entity in {literal(list(entities))} and cardinality(vector) = {len(features)}"
    rows = query(view, f"select entity, window_end, vector, filled from vectors where {chosen} order by entity, window_end")
    names_of_rows = rows["entity"].to_numpy(zero_copy_only=False)
    at = rows["window_end"].cast(pa.timestamp("us")).to_numpy()
    values = pc.list_flatten(rows["vector"]).to_numpy(zero_copy_only=False).astype(float).reshape(-1, len(features))
    filled = np.array([[feature in names for feature in features] for names in rows["filled"].to_pylist()], bool).reshape(-1, len(features))
    mine = {entity: names_of_rows == entity for entity in entities}
    return {entity: with_gaps(Series(at[rows_of], values[rows_of], filled[rows_of])) for entity, rows_of in mine.items()}


def with_gaps(series: Series) -> Series:
    """Insert a row of NaN where vectors are missing for much longer than usual, so that no line bridges the time a device was offline."""
    apart = np.diff(series.at)
    gaps = np.flatnonzero(apart > GAP * np.median(apart)) + 1 if len(apart) else np.array([], int)
    return Series(
        np.insert(series.at, gaps, series.at[gaps - 1] + apart[gaps - 1] // 2),
        np.insert(series.values, gaps, np.nan, axis=0),
        np.insert(series.filled, gaps, False, axis=0),
    )


def query(view: View, sql: str) -> pa.Table:
    """Rows of a query over the latest version, which it calls `vectors`."""
    (part,) = view.parts
    return ask(f"with vectors as ({view.select(['recorded'])}) {sql}", {"recorded": open_table(part.location)}).read_all()


def draw(group: Group, metrics: Mapping[str, Metric], series: Mapping[str, Series], remark: str) -> Figure:
    """The picture; its size grows with the number of features."""
    features = group.vector.features if group.vector else ()
    kinds = kinds_of([*series]) if len(features) <= PANELS_IN_A_COLUMN else [[*series]]
    places = [(number, entities) for entities in kinds for number in range(len(features))]
    columns = len(kinds) if len(kinds) > 1 else min(-(-len(features) // PANELS_IN_A_COLUMN), MAX_COLUMNS)
    lines = -(-len(places) // columns)
    width = PANEL_INCHES[0] * (1 if columns == 1 else 0.6 * columns) + LEGEND_INCHES
    height = PANEL_INCHES[1] * lines + HEAD_INCHES + FOOT_INCHES
    looks = dict(zip(series, looks_of(len(series)), strict=True))
    with mpl.rc_context(STYLE):
        figure = Figure((width, height))
        panels = figure.subplots(lines, columns, sharex=True, squeeze=False).T.flatten()
        for panel, (number, entities) in zip(panels, places, strict=False):
            metric = metric_of(features[number], metrics)
            title(panel, features[number], metrics)
            steps = {"drawstyle": "steps-pre"} if metric and metric.is_state else {}  # a point is at the end of its window
            for entity in entities:
                vectors = series[entity]
                draw_line(panel, vectors.at, vectors.values[:, number], vectors.filled[:, number], looks[entity] | steps)
            if all(np.isnan(series[entity].values[:, number]).all() for entity in entities):
                panel.text(0.5, 0.5, "no values", transform=panel.transAxes, ha="center", va="center", color=PALE)
                panel.tick_params(labelleft=False)
        finish(figure, list(panels), len(places), list(series.values()))
        draw_heading(figure, group.label or group.name, remark)
        legend(figure, looks, any(vectors.filled.any() for vectors in series.values()))
    return figure


def kinds_of(entities: Sequence[str]) -> list[list[str]]:
    """Divide entities by their names without the number, where each kind has several and there is a column for it; else all are one."""
    kinds: dict[str, list[str]] = {}
    for entity in entities:
        kinds.setdefault(re.sub(r"[\W_]*\d+$", "", entity), []).append(entity)
    is_divided = len(kinds) <= MAX_COLUMNS and all(len(members) > 1 for members in kinds.values())
    return [*kinds.values()] if is_divided else [[*entities]]


def draw_line(panel: Axes, at: Any, values: Any, filled: Any, look: dict[str, Any]) -> None:
    """One entity in one panel: a line that breaks at gaps, hollow points where filled, and a dot where a point would have no line."""
    panel.plot(at, values, linewidth=1.3, **look)
    has_value = ~np.isnan(values)
    before, after = np.concatenate([[False], has_value[:-1]]), np.concatenate([has_value[1:], [False]])
    is_alone = has_value & ~before & ~after
    dotted = has_value & ~filled & (is_alone | (len(at) <= MAX_DOTTED_POINTS))
    panel.plot(at[dotted], values[dotted], "o", markersize=3, color=look["color"])
    hollow = np.flatnonzero(filled)[:: max(1, -(-len(at) // MAX_HOLLOW))]
    panel.plot(at[hollow], values[hollow], "o", markersize=3.4, color=look["color"], markerfacecolor="white", markeredgewidth=0.8)


def title(panel: Axes, feature: str, metrics: Mapping[str, Metric]) -> None:
    """Feature and unit, and in a paler colour its aggregation and step."""
    metric = metric_of(feature, metrics)
    unit = f" [{metric.unit}]" if metric and metric.unit and metric.aggregation is not Aggregation.COUNT else ""
    panel.set_title(feature + unit, loc="left", fontweight="bold", fontsize=9)
    if metric:
        panel.set_title(f"{metric.aggregation} of {metric.window}", loc="right", color=PALE, fontsize=8)


def metric_of(feature: str, metrics: Mapping[str, Metric]) -> Metric | None:
    """The metric of the feature `metric` or `device.metric`, whose names may hold dots; None if it is no longer in conf."""
    matching = [name for name in metrics if feature == name or feature.endswith(f".{name}")]
    return metrics[max(matching, key=len)] if matching else None


def finish(figure: Figure, panels: Sequence[Axes], used: int, series: Sequence[Series]) -> None:
    """One time axis for all panels, with labels below the last panel of each column."""
    at = np.concatenate([vectors.at for vectors in series])
    if len(np.unique(at)) == 1:  # a single instant has no width to draw
        panels[0].set_xlim(at[0] - np.timedelta64(1, "h"), at[0] + np.timedelta64(1, "h"))
    for number, panel in enumerate(panels):
        panel.set_visible(number < used)
        set_time_axis(panel)
    panels[used - 1].tick_params(labelbottom=True)  # its column may be shorter than the others
    width, height = figure.get_size_inches()
    figure.tight_layout(rect=(0, 0, 1 - LEGEND_INCHES / width, 1 - HEAD_INCHES / height), h_pad=0.9, w_pad=1.5)


def legend(figure: Figure, looks: Mapping[str, dict[str, Any]], has_filled: bool) -> None:
    """On the right: the line of each entity."""
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
    styles = ("-", (0, (4, 1.5)))
    return [{"color": colour, "linestyle": style} for style in styles for colour in COLOURS][:count]


def note(drawn: int, wanted: int) -> str:
    """Describe the picture, and what it leaves out."""
    left_out = f"{drawn} of {wanted} entities, {wanted - drawn} left out (choose with --entity)" if drawn < wanted else f"entities: {drawn}"
    return f"vectors at the end of their windows, UTC  ·  {left_out}"


def shorter(name: str) -> str:
    """A name cut to the width of the legend. A hair space keeps matplotlib from hiding labels that begin with an underscore."""
    label = name if len(name) <= 24 else name[:23] + "…"
    return f"\u200a{label}" if label.startswith("_") else label
