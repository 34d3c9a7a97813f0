"""How events come is said exactly once, with the settings that belong to it; a secret is a reference, and shown nowhere."""

from pathlib import Path

import pytest

from orchestration.conf.load import load
from orchestration.conf.secrets import secret
from orchestration.conf.transports import HttpEndpoint, TcpEndpoint, Tls
from orchestration.errors import TidemarkError
from tests.collectors import write_conf
from tests.orchestration.conf.conftest import mistakes_of

HINT = "write ${env:NAME} or ${file:PATH}, so that conf, logs and messages hold no secret"
CASES = [
    ("files: '*'", "plant does not say how its events come; set path (a landing folder), kafka, s3, delta, http or tcp"),
    ("path: ./landing, http: {port: 1}", "plant sets path and http; keep one of them"),
    ("http: {port: 1}, tcp: {port: 2}", "plant sets http and tcp; keep one of them"),
    ("http: {}", "plant.http.port is missing; add for example `port: 8080`"),
    ("tcp: {port: 70000}", "plant.tcp.port is 70000; it must be at most 65535"),
    ("tcp: {port: 1}, files: '*.json'", "plant.files is for files, but events come by tcp; remove it"),
    ("http: {port: 1}, settle_seconds: 1", "plant.settle_seconds is for files, but events come by http; remove it"),
    (
        "http: {port: 1}, format: csv, header: true, columns: [device, ts, metric, value]",
        "plant.header is for files, but events come by http; name the columns in plant.columns",
    ),
    (
        "http: {port: 1}, zone: {file_name: '(.*)'}",
        "plant.zone.file_name is for files, but events come by http; take a field or a constant",
    ),
    ("http: {port: 1, token: hunter2}", f"plant.http.token is a secret in plain text; {HINT}"),
    ("tcp: {port: 1, key: '${HUNTER2}'}", f"plant.tcp.key is a secret in plain text; {HINT}"),
    (
        "tcp: {port: 1, tls: {certificate: '${NOT_THERE_AT_ALL}/a', key: a}}",
        "plant.tcp.tls.certificate names the variable NOT_THERE_AT_ALL, which is not set; set it, or write the path out",
    ),
    ("tcp: {port: 1, tls: {certificate: a.crt}}", "plant.tcp.tls.key is missing; add for example `key: ./tls/server.key`"),
]


@pytest.mark.parametrize(("transport", "mistake"), CASES, ids=[transport for transport, _ in CASES])
def test_what_does_not_fit_is_one_line(transport: str, mistake: str, tmp_path: Path) -> None:
    conf = write_conf(tmp_path, plant=transport)
    assert mistakes_of(conf) == [f"{conf}/sources.yml:2: {mistake}"]


def test_two_sources_cannot_listen_on_one_port(tmp_path: Path) -> None:
    conf = write_conf(tmp_path, plant="tcp: {port: 9000}", annex="http: {port: 9000}", free="http: {port: 0}", other="http: {port: 0}")
    (mistake,) = mistakes_of(conf)
    assert mistake.endswith("annex.http.port is 9000, on which plant listens too; choose another")


def test_endpoints_are_as_conf_says_and_hold_references_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_A_TEST", "hunter2")
    tls = "tls: {certificate: tls/a.crt, key: '${HOME}/a.key'}"
    made = load(write_conf(tmp_path, web=f"http: {{port: 1, token: '${{env:OF_A_TEST}}', {tls}}}", line="tcp: {port: 2, framing: length}"))
    assert made.sources["line"].transport == TcpEndpoint(2, framing="length")
    expected = HttpEndpoint(1, token="${env:OF_A_TEST}", tls=Tls(tmp_path / "tls/a.crt", Path.home() / "a.key"))
    assert made.sources["web"].transport == expected
    assert "hunter2" not in str(made)


def test_references_lead_to_a_variable_or_a_file_beside_conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_A_TEST", "hunter2")
    (tmp_path / "token.txt").write_text("hunter3\n")
    assert secret(tmp_path / "conf", "${env:OF_A_TEST}") == "hunter2"
    assert secret(tmp_path / "conf", "${file:token.txt}") == "hunter3"


@pytest.mark.parametrize("reference", ["${env:NOT_THERE_AT_ALL}", "${file:not/there.txt}", "${file:binary}", "${file:empty}"])
def test_a_reference_that_leads_nowhere_says_so_without_what_it_found(reference: str, tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"hunter2\xff")
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(TidemarkError, match="is missing or empty; set it, then start again") as found:
        secret(tmp_path / "conf", reference)
    assert "hunter2" not in str(found.value)
