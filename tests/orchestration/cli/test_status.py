"""`tidemark status` where the conf that is written has mistakes: all is said by the conf that ran last."""

import json
from pathlib import Path

import pytest

from orchestration.cli.app import exit_code
from orchestration.conf.load import load
from orchestration.service.doctor import examine
from orchestration.storage.confs import keep_files
from tests.collectors import FILES, write_conf


def test_of_a_conf_with_mistakes_all_is_said_by_the_one_that_ran_last(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conf = write_conf(tmp_path, plant="path: ./landing")
    status = ["--conf", str(conf), "status", "problems", "--format", "json"]
    for ran in (False, True):
        if ran:
            keep_files(load(conf))
        (conf / "metrics.yml").write_text("metrics: {temperature: {unit: degC}}\n")
        assert exit_code(status) == (1 if ran else 2)
        said = capsys.readouterr()
        assert "metrics.yml:1: temperature" in said.err
        assert [problem["subject"] for problem in json.loads(said.out or "[]")] == (["lake", "source plant"] if ran else [])
        findings = {finding.what: finding.verdict for finding in examine(conf)}
        assert (findings["conf"], "source plant" in findings) == ("bad", ran)
        (conf / "metrics.yml").write_text(FILES["metrics"])
    assert exit_code(status) == 0
