"""`tidemark sql-server` as a command: its address, its users, what it says about mistakes; and `tidemark sql --server`."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from tests.certificates import self_signed
from tests.orchestration.serving.postgres.served import Served
from tests.services import tidemark


@pytest.fixture
def conf(server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A conf of the lake of the server that runs, with its port."""
    monkeypatch.setenv("XDG_STATE_HOME", str(server.folder / "state"))
    copy = shutil.copytree(server.conf, tmp_path / "conf")
    pipeline = (copy / "pipeline.yml").read_text().replace("lake: ./lake", f"lake: {server.folder / 'lake'}")
    (copy / "pipeline.yml").write_text(f"{pipeline}\nsql_server: {{port: {server.port}}}\n")
    return copy


def refused(conf: Path, *arguments: str) -> str:
    """The last line of a command that ends because of a mistake."""
    ended = tidemark(conf, *arguments)
    assert (ended.returncode in (2, 4), "Traceback" in ended.stderr) == (True, False), ended.stderr
    return ended.stderr.splitlines()[-1]


def test_the_address_it_prints_is_one_to_connect_with(server: Served, conf: Path) -> None:
    address = tidemark(conf, "sql-server", "--url").stdout.strip()
    assert f"@127.0.0.1:{server.port}/tidemark" in address
    with psycopg.connect(address) as connection:
        assert connection.execute("select 1").fetchone() == (1,)


def test_commands_that_begin_at_once_make_one_password(conf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with ThreadPoolExecutor(3) as pool:
        assert len({*pool.map(lambda _: tidemark(conf, "sql-server", "--url").stdout, range(3))}) == 1
    assert {file.stat().st_mode & 0o777 for file in tmp_path.rglob("*.password")} == {0o600}


def test_where_no_server_runs_the_command_line_says_how_to_start_one(server: Served) -> None:
    assert "`tidemark sql-server` starts a server where none runs" in refused(server.conf, "sql", "--server", "select 1")


@pytest.mark.parametrize("line", ["ann:short", "ann and bob:0123456789abcdef", "bob:0123456789abcdef"])
def test_mistakes_in_the_file_of_users_are_named(conf: Path, tmp_path: Path, line: str) -> None:
    file = tmp_path / "users.txt"
    file.write_text(f"# of this plant\nbob:0123456789abcdef\n{line}\n")
    assert refused(conf, "sql-server", "--users", str(file)) == f"tidemark: other users can read {file}: chmod 600 {file}"
    file.chmod(0o600)
    assert refused(conf, "sql-server", "--users", str(file)).startswith(f"tidemark: {file}:3 is not NAME:PASSWORD")


def test_an_address_that_cannot_be_served_is_named(server: Served, conf: Path, tmp_path: Path) -> None:
    certificate, _ = map(str, self_signed(tmp_path))
    assert "set certificate and key" in refused(conf, "sql-server", "--host", "0.0.0.0")
    assert "set both" in refused(conf, "sql-server", "--cert", certificate)
    assert "cannot be used for TLS" in refused(conf, "sql-server", "--cert", certificate, "--key", certificate)
    assert f"cannot listen on 127.0.0.1, port {server.port}" in refused(conf, "sql-server", "--port", str(server.port))


def test_the_command_line_has_the_same_answer_by_the_server_as_without_it(conf: Path) -> None:
    query = "select device_id, event_time, value, groups, bronze_batch, null as nothing, 1.50 as price from silver.readings order by all"
    for options in ([], ["--snapshot", "0"], ["--at", "2026-01-05T01:00:30"]):
        alone, asked = (tidemark(conf, "sql", *engine, *options, "--format", "json", query).stdout for engine in ([], ["--server"]))
        assert asked == alone != ""
    mistake = tidemark(conf, "sql", "--server", "select *\nfrom silver.reading")
    assert (mistake.returncode, "line 2, column 6" in mistake.stderr, "did you mean silver.readings" in mistake.stderr) == (2, True, True)
