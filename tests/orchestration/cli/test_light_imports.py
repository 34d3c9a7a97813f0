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
