"""`tidemark plot`: what stands in the picture."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gold.schema import VECTORS
from gold.windows.spec import Group, Vector
from orchestration.conf.model import Conf
from orchestration.errors import TidemarkError
from orchestration.serving.plots.vectors import COLOURS, Series, draw, entities_of, looks_of, metric_of, note, plot, series_of
from orchestration.storage.tables import LakeStore
from orchestration.storage.views import View, views
from silver.aggregation import Aggregation
from silver.metric import Metric
from tests.lakes import bare_conf, write

START = datetime(2026, 1, 5, tzinfo=UTC)
METRICS = {
    "temperature": Metric("temperature", Aggregation.AVERAGE, 600, "degC"),
    "door.temperature": Metric("door.temperature", Aggregation.COUNT, 3600, "degC"),
}
FEATURES = tuple(METRICS)
KITCHEN = Group("kitchen", FEATURES, 600, "kitchen", Vector("device", FEATURES, 3600), label="The $kitchen$")


def row(entity: str, window: int, vector: list[float | None], filled: tuple[str, ...] = (), revision: int = 0) -> dict[str, Any]:
    start = START + timedelta(seconds=600 * window)
    missing = [name for name, value in zip(FEATURES, vector, strict=False) if value is None]
    end = start + timedelta(seconds=600)
    return dict(zip(VECTORS.names, ("kitchen", entity, start, end, vector, missing, list(filled), revision, 0), strict=True))


def conf_with(folder: Path, *rows: dict[str, Any]) -> Conf:
    made = bare_conf(folder, metrics=METRICS, groups={"kitchen": KITCHEN})
    write(LakeStore(made), "gold.kitchen_vectors", *rows)
    return made


def view_of(made: Conf) -> View:
    return views(made, None)["gold.kitchen_vectors"]


def test_a_vector_is_drawn_in_its_highest_revision_in_order_of_time(tmp_path: Path) -> None:
    conf = conf_with(
        tmp_path, row("oven", 1, [3.0, 4.0]), row("oven", 0, [1.0, None]), row("oven", 0, [9.0, 2.0], ("temperature",), revision=1)
    )
    drawn = series_of(view_of(conf), ["oven"], FEATURES)["oven"]
    assert drawn.values.tolist() == [[9.0, 2.0], [3.0, 4.0]]
    assert drawn.filled.tolist() == [[True, False], [False, False]]
    assert [str(at)[:16] for at in drawn.at] == ["2026-01-05T00:10", "2026-01-05T00:20"]


def test_missing_features_and_absent_vectors_are_gaps(tmp_path: Path) -> None:
    rows = [row("oven", window, [float(window), None]) for window in (0, 1, 2, 3, 4, 20, 21)]
    drawn = series_of(view_of(conf_with(tmp_path, *rows)), ["oven"], FEATURES)["oven"]
    assert np.isnan(drawn.values[:, 0]).tolist() == [False] * 5 + [True] + [False] * 2
    assert np.isnan(drawn.values[:, 1]).all()


def test_vectors_of_an_earlier_conf_with_other_features_are_left_out(tmp_path: Path) -> None:
    conf = conf_with(tmp_path, row("oven", 0, [1.0]), row("oven", 1, [1.0, 2.0]))
    assert series_of(view_of(conf), ["oven"], FEATURES)["oven"].values.tolist() == [[1.0, 2.0]]


def test_a_hostile_name_is_only_a_name(tmp_path: Path) -> None:
    name = "o'ven\" or 1=1 --$\\frac$"
    conf = conf_with(tmp_path, row(name, 0, [1.0, 2.0]), row("oven", 0, [3.0, 4.0]))
    assert list(series_of(view_of(conf), [name], FEATURES)) == [name]
    assert plot(conf, KITCHEN, [name], tmp_path / "new" / "a.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("count", [1, 12, 20])
def test_at_most_twelve_entities_are_drawn_and_the_rest_is_counted(tmp_path: Path, count: int) -> None:
    conf = conf_with(tmp_path, *(row(f"oven-{number:02d}", 0, [1.0, None]) for number in range(count)))
    assert len(entities_of(view_of(conf))) == count
    assert plot(conf, KITCHEN, (), tmp_path / "a.png").stat().st_size > 10_000
    assert note(min(count, 12), count).endswith(
        {1: "entities: 1", 12: "entities: 12", 20: "12 of 20 entities, 8 left out (choose with --entity)"}[count]
    )


def test_every_entity_has_its_own_look() -> None:
    looks = [(look["color"], look["linestyle"]) for look in looks_of(12)]
    assert len(set(looks)) == 12
    assert {colour for colour, _ in looks} == set(COLOURS)


def test_the_picture_grows_with_the_features() -> None:
    at = np.array(["2026-01-05T00:10"], "datetime64[us]")

    def size(count: int) -> tuple[float, int]:
        features = tuple(f"oven-{number}.temperature" for number in range(count))
        group = Group("g", ("temperature",), 600, "g", Vector("group", features))
        figure = draw(group, METRICS, {"g": Series(at, np.ones((1, count)), np.zeros((1, count), bool))}, "")
        return figure.get_figheight(), sum(panel.get_visible() for panel in figure.axes)

    counts = [1, 4, 7, 13]
    heights, panels = zip(*map(size, counts), strict=True)
    assert list(panels) == counts
    assert heights[0] < heights[1] < heights[3]


def test_an_entity_without_a_vector_is_an_empty_line() -> None:
    nothing = Series(np.array([], "datetime64[us]"), np.ones((0, 2)), np.zeros((0, 2), bool))
    figure = draw(KITCHEN, METRICS, {"oven": nothing}, "")
    assert [len(np.asarray(line.get_ydata())) for panel in figure.axes for line in panel.get_lines()] == [0] * 6


def test_each_kind_of_device_has_a_scale_of_its_own_and_states_are_steps() -> None:
    at = np.array(["2026-01-05T00:10", "2026-01-05T00:20"], "datetime64[us]")
    values = {"oven-1": 200.0, "oven-2": 210.0, "fridge-1": 4.0, "fridge-2": 5.0}
    series = {name: Series(at, np.array([[value, 1.0], [value, 0.0]]), np.zeros((2, 2), bool)) for name, value in values.items()}
    metrics = {"temperature": METRICS["temperature"], "door": Metric("door", Aggregation.LATEST, 600)}
    features = tuple(metrics)
    figure = draw(Group("kitchen", features, 600, "kitchen", Vector("device", features, 3600)), metrics, series, "")
    drawn = [[line for line in panel.get_lines() if line.get_linestyle() != "None"] for panel in figure.axes]
    first = [sorted(float(np.asarray(line.get_ydata())[0]) for line in lines) for lines in drawn]
    assert sorted(first) == [[1.0, 1.0], [1.0, 1.0], [4.0, 5.0], [200.0, 210.0]]
    assert [{line.get_drawstyle() for line in lines} for lines in drawn] == [{"default"}] * 2 + [{"steps-pre"}] * 2


def test_a_feature_finds_its_metric_though_names_hold_dots() -> None:
    assert metric_of("temperature", METRICS) is METRICS["temperature"]
    assert metric_of("oven.1.temperature", METRICS) is METRICS["temperature"]
    assert metric_of("oven.door.temperature", METRICS) is METRICS["door.temperature"]
    assert metric_of("pressure", METRICS) is None


def test_nothing_to_draw_is_one_sentence_with_the_way_out(tmp_path: Path) -> None:
    conf = conf_with(tmp_path, row("oven", 0, [1.0, 2.0]))
    with pytest.raises(TidemarkError, match=r"has no entity 'stove': it has oven\."):
        plot(conf, KITCHEN, ["stove"], tmp_path / "a.png")
    with pytest.raises(TidemarkError, match=r"halls has no vector to draw: declare one in .*groups\.yml"):
        plot(conf, Group("halls", ("temperature",), 600, "halls"), (), tmp_path / "a.png")
    with pytest.raises(TidemarkError, match=r"gold\.yard_vectors holds no vectors yet: .*tidemark run --once"):
        plot(conf, Group("yard", FEATURES, 600, "yard", KITCHEN.vector), (), tmp_path / "a.png")
