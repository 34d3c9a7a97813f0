"""Draws an alert over a history: a panel for each entity with its values, where the condition was true, and when the alert fired."""

import re
from collections import Counter
from pathlib import Path

import matplotlib as mpl
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from gold.alerts.signals import shown
from gold.alerts.spec import Alert
from orchestration.conf.model import Conf
from orchestration.serving.alerts import Trial
from orchestration.serving.plots.style import PALE, STYLE, draw_heading, save, set_time_axis

MAX_ENTITIES = 12
WIDTH, PANEL_INCHES, HEAD_INCHES, FOOT_INCHES = 10.0, 1.35, 0.8, 0.75
VALUE, TRUE, FIRING, OVER = "#0072B2", "#D55E00", "#f7d9c8", "#009E73"
THRESHOLDS = (("when", TRUE), ("recover_when", OVER))


def plot(conf: Conf, trial: Trial, output: Path) -> Path:
    """Draw it into a PNG, which is replaced: the entities for which it fired longest, then others by name."""
    return save(draw(conf, trial), output)


def draw(conf: Conf, trial: Trial) -> Figure:
    """The picture; its height grows with the number of entities."""
    length = Counter[str](dict.fromkeys(sorted(trial.samples["entity"].unique().to_pylist()), 0))
    for span in trial.firing:
        length[span.entity] += int((span.end - span.begin).total_seconds())
    drawn = [entity for entity, _ in length.most_common(MAX_ENTITIES)]
    height = HEAD_INCHES + FOOT_INCHES + PANEL_INCHES * max(len(drawn), 1)
    with mpl.rc_context(STYLE):
        figure = Figure((WIDTH, height))
        panels = figure.subplots(max(len(drawn), 1), 1, sharex=True, squeeze=False)[:, 0]
        for panel, entity in zip(panels, drawn, strict=False):
            draw_entity(panel, trial, entity, trial.samples.filter(pc.equal(trial.samples["entity"], entity)))
        if not drawn:
            panels[0].text(0.5, 0.5, "no samples", transform=panels[0].transAxes, ha="center", va="center", color=PALE)
        finish(figure, list(panels), trial.alert)
        left_out = f", {len(length) - len(drawn)} left out" if len(length) > len(drawn) else ""
        metric = conf.metrics.get(trial.alert.signal.metric or "")
        unit = f" in {metric.unit}" if metric and metric.unit and shown(trial.alert) == "value" else ""
        counts = f"{shown(trial.alert)}{unit}, UTC  ·  {len(drawn)} of {len(length)}{left_out}"
        draw_heading(figure, trial.alert.name, f"{trial.alert.when}  ·  {counts}")
    return figure


def draw_entity(panel: Axes, trial: Trial, entity: str, samples: pa.Table) -> None:
    """Values as a line, true samples as dots, thresholds dashed, and the times in which it fired shaded."""
    at, values = (samples[name].to_numpy() for name in ("at", "value"))
    is_true = pc.fill_null(samples["verdict"], False).to_numpy()
    spans = [span for span in trial.firing if span.entity == entity]
    for span in spans:
        panel.axvspan(span.begin, span.end, color=FIRING, linewidth=0)  # type: ignore[arg-type]
        panel.axvline(span.begin, color=TRUE, linewidth=0.8)  # type: ignore[arg-type]
    panel.plot(at, values, color=VALUE, linewidth=0.9)
    panel.plot(at[is_true], values[is_true], ".", color=TRUE, markersize=2.5)
    for condition, colour in THRESHOLDS:
        for threshold in thresholds(trial.alert, condition):
            panel.axhline(threshold, color=colour, linewidth=0.8, linestyle=(0, (4, 3)))
    panel.set_title(entity, loc="left", fontweight="bold", fontsize=9)
    panel.set_title(f"fired {len(spans)} x" if spans else "never fired", loc="right", color=PALE, fontsize=8)


def thresholds(alert: Alert, condition: str) -> list[float]:
    """Numbers that `when` or `recover_when` compares the value with."""
    text = getattr(alert, condition) or ""
    return [float(number) for number in re.findall(rf'\b{re.escape(shown(alert))}"?\s*[<>]=?\s*(-?\d+(?:\.\d+)?)', text)]


def finish(figure: Figure, panels: list[Axes], alert: Alert) -> None:
    """One time axis for all panels, and what the colours mean below it."""
    for panel in panels:
        set_time_axis(panel)
    height = figure.get_figheight()
    handles = [
        Line2D([], [], color=VALUE, linewidth=1.5, label=shown(alert)),
        Line2D([], [], color=TRUE, marker=".", linestyle="", label="when is true"),
        Patch(color=FIRING, label="firing"),
        *(Line2D([], [], color=colour, linestyle=(0, (4, 3)), label=label) for label, colour in THRESHOLDS if thresholds(alert, label)),
    ]
    figure.legend(handles=handles, loc="lower center", ncols=len(handles), frameon=False, fontsize=8.5)
    figure.tight_layout(rect=(0, (FOOT_INCHES - 0.4) / height, 1, 1 - HEAD_INCHES / height), h_pad=0.7)
