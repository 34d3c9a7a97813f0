"""Commands that answer at once load neither numpy nor pandas, and work without them."""

import subprocess
import sys

LOADED = """
import sys
sys.modules |= {"numpy": None, "pandas": None}
import orchestration.serving.sql.duckdb_engine, orchestration.storage.marts
"""


def test_what_answers_sql_needs_no_numpy() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_conf_is_loaded_without_numpy_as_sql_over_open_windows_does() -> None:
    program = "import sys; sys.modules |= {'numpy': None, 'pandas': None}; import orchestration.conf.load"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False).stderr == ""
