"""`tidemark run` as a command: how it ends where nothing waits."""

import json
import os
import subprocess
import sys
from pathlib import Path

from orchestration.conf.starter import write_starter
from tests.collectors import write_conf
from tests.lakes import land_bytes


def run_once(conf: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """In a process that finds no Java."""
    program = [sys.executable, "-c", "from orchestration.cli.app import main; main()", "--conf", str(conf), "run", "--once", *words]
    return subprocess.run(program, capture_output=True, text=True, check=False, env=os.environ | {"JAVA_HOME": str(conf)})


def test_a_run_with_nothing_to_do_needs_no_java_and_says_so_on_stdout(tmp_path: Path) -> None:
    write_starter(tmp_path / "conf")
    (tmp_path / "landing").mkdir()
    ended = run_once(tmp_path / "conf", "--format", "json")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert json.loads(ended.stdout) == {
        "sources": [],
        "quarantined": [],
        "windows": [],
        "left_out": [],
        "waiting": 0,
        "tidemark": f"tidemark --conf {tmp_path / 'conf'}",
        "sentences": ["Nothing has come to silver since the last run.", f"next: tidemark --conf {tmp_path / 'conf'} status"],
    }


def test_files_that_are_left_out_stand_in_the_summary_and_a_run_without_a_reading_ends_with_1(tmp_path: Path) -> None:
    conf = write_conf(tmp_path, plant="path: ./landing, settle_seconds: 0, format: csv, header: true")
    file = land_bytes(tmp_path, "mac.csv", b"ts,device,metric,value\r2026-03-02 08:00:00,oven,temperature,21.5\r\n")
    ended = run_once(conf, "--format", "json")
    why = "its header has a carriage return at place 23, where its line goes on; let its lines end alike, by line feeds"
    left_out = [{"source": "plant", "left_out": str(file), "reason": why}]
    assert (ended.returncode, json.loads(ended.stdout)["left_out"]) == (1, left_out)
    assert (len([line for line in run_once(conf).stdout.splitlines() if "mac.csv" in line]), run_once(conf).returncode) == (1, 1)
