"""`tidemark run` as a command: how it ends where nothing waits."""

import json
import os
import subprocess
import sys
from pathlib import Path

from orchestration.conf.starter import write_starter


def test_a_run_with_nothing_to_do_needs_no_java_and_says_so_on_stdout(tmp_path: Path) -> None:
    write_starter(tmp_path / "conf")
    (tmp_path / "landing").mkdir()
    program = [sys.executable, "-c", "from orchestration.cli.app import main; main()", "--conf", str(tmp_path / "conf")]
    command = [*program, "run", "--once", "--format", "json"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | {"JAVA_HOME": str(tmp_path)})
    assert (ended.returncode, ended.stderr) == (0, "")
    assert json.loads(ended.stdout) == {
        "sources": [],
        "quarantined": [],
        "windows": [],
        "waiting": 0,
        "tidemark": f"tidemark --conf {tmp_path / 'conf'}",
        "sentences": ["Nothing has come to silver since the last run.", f"next: tidemark --conf {tmp_path / 'conf'} status"],
    }
