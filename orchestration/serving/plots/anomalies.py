"""Draws anomalies: values with the band that was expected, scores with the threshold, each anomaly with its reason; or labelled faults."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from expectations.wording import counted
from gold.anomalies.tail import Floats
from gold.windows.spec import Group
from orchestration.audit.evaluation.group_evaluation import Evaluation, History, judged_vectors, matrix
from orchestration.conf.model import Conf
from orchestration.errors import TidemarkError
from orchestration.serving.plots.style import PALE, STYLE, draw_heading, save, set_time_axis
from orchestration.serving.plots.vectors import Series, shorter, title, with_gaps

MAX_ENTITIES, MAX_SCORED, MAX_REASONS = 3, 12, 6
BEFORE, BEHIND = 200, 60
"""Vectors that are drawn before the newest anomaly of an entity and behind it."""
COLUMN_INCHES, PANEL_INCHES, HEAD_INCHES, FOOT_INCHES, REASON_INCHES = 6.4, 1.5, 0.8, 0.3, 0.2
VALUE, BAND, ANOMALY, FAULT = "#0072B2", "#b9d7ec", "#D55E00", "#f7e3b5"


def plot(conf: Conf, group: Group, entities: Sequence[str], output: Path) -> Path:
    """Draw judged vectors into a PNG; without `entities` those with the newest anomalies. TidemarkError if there is nothing to draw."""
    rows = judged_vectors(conf, group)
    if missing := [entity for entity in entities or ("",) if entity not in rows and (entities or not rows)]:
        of_entity = f" of {missing[0]!r}: it has {', '.join([*rows][:8]) or 'none'}" if entities else " yet"
        raise TidemarkError(f"gold.{group.name}_anomalies has no rows{of_entity}.")
    newest = {entity: pc.max(_anomalies(of_entity)["window_end"].cast(pa.int64())).as_py() or 0 for entity, of_entity in rows.items()}
    ordered = sorted(rows, key=lambda entity: (-newest[entity], entity))
    drawn = ([*dict.fromkeys(entities)] or [entity for entity in ordered if newest[entity]] or ordered)[:MAX_ENTITIES]
    return save(draw(conf, group, {entity: around_newest(rows[entity]) for entity in drawn}, len(rows)), output)


def around_newest(rows: pa.Table) -> pa.Table:
    """Return vectors around the newest anomaly; where there is none, the newest ones."""
    anomalies = np.flatnonzero(rows["is_anomaly"].to_numpy(zero_copy_only=False))
    end = min((int(anomalies[-1]) if len(anomalies) else len(rows)) + BEHIND, len(rows))
    return rows.slice(max(end - BEFORE - BEHIND, 0), end - max(end - BEFORE - BEHIND, 0))


def draw(conf: Conf, group: Group, rows: Mapping[str, pa.Table], every: int) -> Figure:
    """The picture: a column an entity, a panel a feature, its score below, and at the foot the newest reasons in words."""
    features = group.vector.features if group.vector else ()
    anomalies = [row | {"entity": entity} for entity, of_entity in rows.items() for row in _anomalies(of_entity).to_pylist()]
    shown = sorted(anomalies, key=lambda row: row["window_end"])[-MAX_REASONS:]
    foot = FOOT_INCHES + REASON_INCHES * max(len(shown), 1)
    height = HEAD_INCHES + PANEL_INCHES * (len(features) + 1) + foot
    with mpl.rc_context(STYLE):
        figure = Figure((max(COLUMN_INCHES * len(rows), 10.0), height))
        panels = figure.subplots(len(features) + 1, len(rows), sharex="col", squeeze=False)
        for column, (entity, of_entity) in zip(panels.T, rows.items(), strict=True):
            numbers = {row["window_end"]: str(number) for number, row in enumerate(shown, 1) if row["entity"] == entity}
            draw_entity(column, of_entity, features, numbers)
            for panel, feature in zip(column, features, strict=False):
                title(panel, feature, conf.metrics)
            column[0].set_title(f"{shorter(entity)}: {column[0].get_title('left')}", loc="left", fontweight="bold", fontsize=9)
        _finish(figure, panels.ravel().tolist(), (foot - 0.15) / height, [("value", VALUE), ("threshold", PALE)], [("expected", BAND)])
        lines = [f"{number}   {row['window_end']:%Y-%m-%d %H:%M}   {row['entity']}: {row['reason']}" for number, row in enumerate(shown, 1)]
        text = "\n".join(lines) or "no anomaly"
        figure.text(0.12 / figure.get_figwidth(), 0.1 / height, text, fontsize=8.5, linespacing=1.5, va="bottom")
        drawn = f"around the newest anomaly of {len(rows)} of {counted(every, 'entity')}, at the end of windows, UTC"
        draw_heading(figure, f"{group.label or group.name}: anomalies", drawn)
    return figure


def draw_entity(panels: Sequence[Axes], rows: pa.Table, features: Sequence[str], numbers: Mapping[Any, str]) -> None:
    """Lines with their bands, a dot where an anomaly has its first feature, and the score with its threshold in the last panel."""
    count, at = len(features), rows["window_end"].cast(pa.timestamp("us")).to_numpy()
    values, expected, band, share = (matrix(rows[name], count) for name in ("vector", "expected", "band", "share"))
    scores = np.column_stack([rows[name].to_numpy(zero_copy_only=False).astype(float) for name in ("score", "threshold")])
    drawn = _with_gaps(at, np.hstack([values, scores]))
    for number, panel in enumerate(panels[:-1]):
        is_known = ~np.isnan(expected[:, number] + band[:, number])  # of a metric with longer windows, each hour or so
        edges = np.stack([expected[:, number] - band[:, number], expected[:, number] + band[:, number]], axis=1)
        drawn_band = _with_gaps(at[is_known], edges[is_known])
        panel.fill_between(drawn_band.at, *drawn_band.values.T, color=BAND, linewidth=0)
        panel.plot(drawn.at, drawn.values[:, number], color=VALUE, linewidth=0.9)
    draw_score(panels[-1], drawn.at, drawn.values[:, -2], drawn.values[:, -1])
    for row in np.flatnonzero(rows["is_anomaly"].to_numpy(zero_copy_only=False)).tolist():
        first = int(np.nan_to_num(share[row]).argmax())
        for panel, value in ((panels[first], values[row, first]), (panels[-1], scores[row, 0])):
            panel.plot(at[row], value, "o", color=ANOMALY, markersize=4)
        mark = numbers.get(rows["window_end"][row].as_py(), "")
        beside = (4 if mark in "2468" else -10, 4)  # two that are near each other
        panels[first].annotate(mark, (at[row], values[row, first]), beside, textcoords="offset points", color=ANOMALY, fontweight="bold")


def _with_gaps(at: Any, values: Floats) -> Series:
    return with_gaps(Series(at, values, np.zeros((len(at), 1), bool)))


def draw_score(panel: Axes, at: Any, scores: Any, thresholds: Any) -> None:
    panel.plot(at, scores, color=VALUE, linewidth=0.9)
    panel.plot(at, thresholds, color=PALE, linewidth=0.9, linestyle=(0, (4, 3)))
    panel.set_title("score", loc="left", fontweight="bold", fontsize=9)


def plot_evaluation(group: Group, evaluation: Evaluation, output: Path) -> Path:
    """Draw the scores of labelled entities into a PNG: their labels shaded, the threshold, alarms as dots."""
    drawn = [(entity, history) for entity, history in evaluation.histories.items() if history.faults][:MAX_SCORED]
    height = HEAD_INCHES + FOOT_INCHES + PANEL_INCHES * max(len(drawn), 1)
    with mpl.rc_context(STYLE):
        figure = Figure((10.0, height))
        panels = figure.subplots(max(len(drawn), 1), 1, sharex=True, squeeze=False)[:, 0]
        for panel, (entity, history) in zip(panels, drawn, strict=False):
            _draw_labelled(panel, history)
            panel.set_title(shorter(entity), loc="left", fontweight="bold", fontsize=9)
        _finish(figure, panels.tolist(), 0, [("score", VALUE), ("threshold", PALE)], [("labelled fault", FAULT)])
        draw_heading(
            figure,
            f"{group.label or group.name}: labelled faults",
            f"scores at the end of windows, UTC  ·  {counted(len(drawn), 'entity')}",
        )
    return save(figure, output)


def _draw_labelled(panel: Axes, history: History) -> None:
    at, scores = history.series.ends.astype("datetime64[us]"), history.raised.scores
    judged = slice(history.begin, None)
    for fault in (fault for fault in history.faults if fault.ends_at >= history.series.ends[history.begin]):
        span = np.clip([fault.begins_at, fault.ends_at], history.series.ends[history.begin], history.series.ends[-1])  # axes end there
        begin, end = span.astype("datetime64[us]")
        panel.axvspan(begin, end, color=FAULT, linewidth=0)
        panel.annotate(
            shorter(fault.kind),
            (begin, 1),
            (2, -9),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            fontsize=7.5,
            color=PALE,
        )
    draw_score(panel, at[judged], scores[judged], history.thresholds[judged])
    alarms = [row for row in history.raised.alarms if row >= history.begin]
    panel.plot(at[alarms], scores[alarms], "o", color=ANOMALY, markersize=4)


def _anomalies(rows: pa.Table) -> pa.Table:
    return rows.select(["window_end", "reason"]).filter(rows["is_anomaly"])


def _finish(
    figure: Figure, panels: Iterable[Axes], foot: float, lines: Iterable[tuple[str, str]], areas: Iterable[tuple[str, str]]
) -> None:
    """One time axis for all panels; what the colours mean at the upper right."""
    for panel in panels:
        set_time_axis(panel)
    handles = [
        *(Line2D([], [], color=colour, label=label) for label, colour in lines),
        *(Patch(color=colour, label=label) for label, colour in areas),
    ]
    dot = Line2D([], [], color=ANOMALY, marker="o", linestyle="", markersize=4, label="anomaly")
    figure.legend(handles=[*handles, dot], loc="upper right", ncols=len(handles) + 1, frameon=False, fontsize=8.5)
    figure.tight_layout(rect=(0, foot, 1, 1 - HEAD_INCHES / figure.get_figheight()), h_pad=0.7)
