"""`tidemark evaluate GROUP`: anomalies beside labelled faults, of a file or of ops.labels."""

from pathlib import Path

import pytest

from orchestration.location import Location
from orchestration.storage.ops_tables import LABELS, Label
from tests.anomaly_lake import COLD, HEADER, HOT, LEARNED, anomaly_lake, end_of, labels
from tests.commands import Tidemark

FAULTS = (("oven-01", HOT, "spike", "temperature"), ("oven-01", COLD, "weak", "power"))


@pytest.fixture(scope="module")
def conf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return anomaly_lake(tmp_path_factory.mktemp("judged"))


def test_faults_of_a_file_are_counted_by_kind_beside_ways_that_know_little(conf: Path, tmp_path: Path, tidemark: Tidemark) -> None:
    (tmp_path / "labels.csv").write_text(labels(*FAULTS))
    said = tidemark("--conf", conf, "evaluate", "kitchen", "--labels", tmp_path / "labels.csv", "--format", "json")
    rows = {row["detector"]: row for row in said.rows}
    assert [*rows] == ["model", "moving z", "alarm clock", "always quiet", "spike", "weak"]
    assert (rows["model"]["found"], rows["model"]["faults"], rows["model"]["named"]) == (2, 2, 1.0)
    assert rows["model"]["false_alarms_per_week"] <= 1
    assert rows["spike"]["delay_seconds"] == 600
    quiet = rows["always quiet"]
    assert (quiet["recall"], quiet["precision"], quiet["false_alarms_per_week"]) == (0, None, 0)
    assert min(rows["model"]["vus_pr"], rows["moving z"]["vus_pr"]) > 0.5
    assert quiet["vus_pr"] < 0.1


def test_a_fault_of_the_learning_time_is_left_out_and_said(conf: Path, tmp_path: Path, tidemark: Tidemark) -> None:
    (tmp_path / "labels.csv").write_text(labels(*FAULTS, ("oven-01", range(LEARNED - 9, LEARNED - 3), "spike", "")))
    said = tidemark("--conf", conf, "evaluate", "kitchen", "--labels", tmp_path / "labels.csv", "--format", "json")
    assert "1 of 3 labels are of times that are not judged" in said.err
    assert said.rows[0]["faults"] == 2


def test_labels_of_a_whole_plant_are_taken_and_entities_of_other_groups_are_named(conf: Path, tmp_path: Path, tidemark: Tidemark) -> None:
    (tmp_path / "labels.csv").write_text(labels(*FAULTS, ("press-01", HOT, "spike", "")))
    said = tidemark("--conf", conf, "evaluate", "kitchen", "--labels", tmp_path / "labels.csv", "--format", "json")
    assert "1 of 3 labels are of times that are not judged, or of entities that kitchen does not have: press-01" in said.err
    assert said.rows[0]["faults"] == 2


def test_labels_of_people_are_taken_and_the_later_of_two_holds(conf: Path, tidemark: Tidemark) -> None:
    none = tidemark("--conf", conf, "evaluate", "kitchen")
    assert "ops.labels has no fault of kitchen yet: label anomalies on the page, or give a file with --labels." in none.err
    begin, end, lake = end_of(HOT[0] - 1), end_of(HOT[0]), Location(conf.parent / "lake")
    for minute, is_fault in enumerate((False, True)):
        LABELS.append(lake, [Label("kitchen", "oven-01", begin, end, is_fault, "spike", "kim", end_of(minute))])
    LABELS.append(lake, [Label("kitchen", "oven-02", begin, end, False, "", "kim", end_of(9))])
    (model, *_) = tidemark("--conf", conf, "evaluate", "kitchen", "--format", "json").rows
    assert (model["found"], model["faults"]) == (1, 1)


def test_the_picture_has_a_panel_for_each_labelled_entity(conf: Path, tmp_path: Path, tidemark: Tidemark) -> None:
    (tmp_path / "labels.csv").write_text(labels(*FAULTS, ("oven-02", HOT, "none", "")))
    said = tidemark("--conf", conf, "evaluate", "kitchen", "--labels", tmp_path / "labels.csv", "--plot", tmp_path / "faults.png")
    assert said.code == 0
    assert (tmp_path / "faults.png").read_bytes().startswith(b"\x89PNG")


def test_labels_as_a_spreadsheet_writes_them_and_of_all_times_are_read_and_drawn(conf: Path, tmp_path: Path, tidemark: Tidemark) -> None:
    of_ever = f"oven-01,0001-01-01T00:00:00+14:00,9999-12-31T23:00:00-14:00,{'k' * 300},"
    (tmp_path / "labels.csv").write_text(f"\ufeff{labels(*FAULTS)}{of_ever}\n", "utf-8")
    said = tidemark("--conf", conf, "evaluate", "kitchen", "--labels", tmp_path / "labels.csv", "--plot", tmp_path / "faults.png")
    assert said.code == 0, said.err
    assert "1 of 3 labels are of times that are not judged" in said.err


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("", "labels.csv has no label."),
        (HEADER, "labels.csv has no label."),
        ("entity,begins_at\noven-01,2026-01-20", "labels.csv has other columns."),
        (f"{HEADER}\noven-01,2026-01-20,soon,spike,", "labels.csv:2: Invalid isoformat string: 'soon'."),
        (f"{HEADER}\noven-01,2026-01-21,2026-01-20,spike,", "labels.csv:2: the fault ends before it begins."),
        (f"{HEADER}\nstove,2026-01-20,2026-01-21,spike,", "gold.kitchen_anomalies has no entity 'stove': it has oven-01, oven-02."),
    ],
)
def test_what_is_no_label_is_told_by_its_line(conf: Path, tmp_path: Path, tidemark: Tidemark, lines: str, said: str) -> None:
    (tmp_path / "labels.csv").write_text(lines)
    answer = tidemark("--conf", conf, "evaluate", "kitchen", "--labels", tmp_path / "labels.csv")
    assert answer.code != 0
    assert said in answer.err
    assert "Traceback" not in answer.err


def test_a_name_that_is_no_group_and_a_group_without_anomalies_are_told(conf: Path, tmp_path: Path, tidemark: Tidemark) -> None:
    assert "there is no folder and no group 'attics'; the groups are kitchen, attic" in tidemark("--conf", conf, "evaluate", "attics").err
    (tmp_path / "labels.csv").write_text(labels(*FAULTS))
    said = tidemark("--conf", conf, "evaluate", "attic", "--labels", tmp_path / "labels.csv")
    assert "gold.attic_anomalies is not there yet: write `anomalies: {}` at the group" in said.err


def test_a_group_of_which_nothing_is_judged_yet_is_told(conf: Path, tmp_path: Path, tidemark: Tidemark) -> None:
    groups, written = conf / "groups.yml", (conf / "groups.yml").read_text()
    (tmp_path / "labels.csv").write_text(labels(*FAULTS))
    groups.write_text(written + "  cellar: {metrics: [temperature], stream: plant, vector: {entity: device}, anomalies: {}}\n")
    said = tidemark("--conf", conf, "evaluate", "cellar", "--labels", tmp_path / "labels.csv")
    assert "gold.cellar_anomalies has no entity 'oven-01': it has none." in said.err
    said = tidemark("--conf", conf, "plot", "cellar", "--anomalies", "--output", tmp_path / "cellar.png")
    assert "gold.cellar_anomalies has no rows yet." in said.err
    groups.write_text(written + "  cellar: {metrics: [temperature], vector: {entity: device}, anomalies: {}}\n")
    assert "the snapshot has no vectors of cellar yet: go on with" in tidemark("--conf", conf, "train", "cellar").err
    groups.write_text(written)
