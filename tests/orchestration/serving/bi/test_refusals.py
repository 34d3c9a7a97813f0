"""What the two commands say when they cannot, or should not, start: a sentence with a hint, and no Spark.

Those that ask Java for its version first start a JVM, so they have the marker `spark`.
"""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestration.conf.starter import write_starter
from orchestration.serving.bi.sandbox import java_home
from tests.commands import Tidemark

COMMANDS = ["thrift-server", "connect-server"]


@pytest.fixture
def conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A lake that is not there yet."""
    write_starter(tmp_path / "conf")
    (tmp_path / "lake").mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return str(tmp_path / "conf")


@pytest.fixture
def port() -> Iterator[str]:
    """One that somebody has."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield str(server.getsockname()[1])


def free() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return str(server.getsockname()[1])


def refused(tidemark: Tidemark, code: int, *words: str) -> str:
    """The sentence, after that exit code."""
    said = tidemark(*words)
    assert (said.code, said.out) == (code, "")
    return said.err.splitlines()[-1]


@pytest.mark.spark
@pytest.mark.parametrize("command", COMMANDS)
def test_without_bubblewrap_they_do_not_start(
    command: str, conf: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tidemark: Tidemark
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java_home()))
    monkeypatch.setenv("PATH", str(tmp_path))
    hint = "install bubblewrap (Debian and Ubuntu: `apt-get install bubblewrap`)"
    assert hint in refused(tidemark, 4, "--conf", conf, command, "--port", free())


@pytest.mark.spark
@pytest.mark.parametrize("command", COMMANDS)
def test_a_port_that_somebody_has_is_reported_at_once(command: str, conf: str, port: str, tidemark: Tidemark) -> None:
    message = f"port {port} of 127.0.0.1 is not available (Address already in use): choose another one with --port."
    assert refused(tidemark, 4, "--conf", conf, command, "--port", port) == f"tidemark: {message}"
    message = refused(tidemark, 4, "--conf", conf, command, "--port", free(), "--host", "no.such.host.invalid")
    assert message.startswith("tidemark: no.such.host.invalid is no address of this machine")


@pytest.mark.spark
def test_a_snapshot_that_is_not_there_is_told(conf: str, tidemark: Tidemark) -> None:
    message = refused(tidemark, 2, "--conf", conf, "thrift-server", "--port", free(), "--snapshot", "7")
    assert message == "tidemark: there is no snapshot 7; the lake has none yet."


def test_a_token_that_others_can_read_is_refused(conf: str, tmp_path: Path, tidemark: Tidemark) -> None:
    (tmp_path / "token").write_text("word\n")
    (tmp_path / "token").chmod(0o644)
    message = refused(tidemark, 4, "--conf", conf, "connect-server", "--port", free(), "--token-file", str(tmp_path / "token"))
    assert f"chmod 600 {tmp_path}/token" in message


@pytest.mark.parametrize(
    "flags", [["--snapshot", "1", "--newest"], ["--memory", "lots"], ["--scratch", "1"], ["--port", "0"], ["--seconds", "-1"]]
)
def test_what_makes_no_sense_is_wrong_usage(flags: list[str], conf: str, tidemark: Tidemark) -> None:
    assert tidemark("--conf", conf, "thrift-server", *flags).code == 2


@pytest.mark.spark
def test_a_server_without_a_sandbox_warns_in_capitals(conf: str, port: str, tidemark: Tidemark) -> None:
    output = tidemark("--conf", conf, "thrift-server", "--port", port, "--without-sandbox", "--host", "0.0.0.0").err
    assert "WITHOUT A SANDBOX: every client can run any command as you" in output
    assert "AND WITHOUT A PASSWORD for other users of this machine" in output
    assert "pass unencrypted between 0.0.0.0 and the clients" in output
