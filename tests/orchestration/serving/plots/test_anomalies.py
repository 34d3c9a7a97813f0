"""`tidemark plot GROUP --anomalies`: what stands in the picture."""

from pathlib import Path

import numpy as np
import pytest

from orchestration.audit.evaluation.group_evaluation import judged_vectors
from orchestration.conf.load import load
from orchestration.conf.model import Conf
from orchestration.serving.plots.anomalies import ANOMALY, BEFORE, BEHIND, around_newest, draw
from orchestration.serving.plots.style import save
from tests.anomaly_lake import COLD, anomaly_lake, end_of
from tests.commands import Tidemark


@pytest.fixture(scope="module")
def conf(tmp_path_factory: pytest.TempPathFactory) -> Conf:
    return load(anomaly_lake(tmp_path_factory.mktemp("judged")))


def test_an_entity_is_drawn_around_its_newest_anomaly_with_its_reason_in_words(conf: Conf) -> None:
    rows = {"oven-01": around_newest(judged_vectors(conf, conf.groups["kitchen"])["oven-01"])}
    figure = draw(conf, conf.groups["kitchen"], rows, 2)
    at = rows["oven-01"]["window_end"].to_pylist()
    assert len(at) == BEFORE + BEHIND
    assert at[BEFORE] in [end_of(row) for row in COLD]
    assert [panel.get_title("left") for panel in figure.axes] == ["oven-01: temperature [degC]", "power [W]", "score"]
    dots = [[line for line in panel.get_lines() if line.get_color() == ANOMALY] for panel in figure.axes]
    assert [len(of_panel) for of_panel in dots] == [0, 1, 1]
    assert float(np.asarray(dots[1][0].get_ydata())[0]) < 750
    words = "\n".join(text.get_text() for text in figure.texts)
    assert f"{at[BEFORE]:%Y-%m-%d %H:%M}   oven-01: power " in words
    assert "% of the score)" in words


def test_the_picture_is_written_and_an_entity_that_is_not_there_is_told(conf: Conf, tmp_path: Path, tidemark: Tidemark) -> None:
    command = ("--conf", conf.folder, "plot", "kitchen", "--anomalies", "--output", tmp_path / "a.png")
    assert tidemark(*command).code == 0
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    said = tidemark(*command, "--entity", "stove")
    assert "gold.kitchen_anomalies has no rows of 'stove': it has oven-01, oven-02." in said.err
    assert "is not there yet: write `anomalies: {}`" in tidemark("--conf", conf.folder, "plot", "attic", "--anomalies").err


@pytest.mark.parametrize("count", [1, 2, 150])
def test_few_vectors_are_drawn_without_a_warning(conf: Conf, tmp_path: Path, count: int) -> None:
    rows = {"oven-02": judged_vectors(conf, conf.groups["kitchen"])["oven-02"].slice(0, count)}
    assert save(draw(conf, conf.groups["kitchen"], rows, 1), tmp_path / "few.png").exists()
