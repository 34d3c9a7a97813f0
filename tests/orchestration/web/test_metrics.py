"""What Prometheus gets: of a real lake, read by promtool and by a real server; the alerting rules and the dashboard that ask for it."""

import json
import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from expectations.suite import Expectation, Severity
from orchestration.cli.app import COMMANDS
from orchestration.conf.load import load
from orchestration.engine.lake import Lake
from orchestration.location import Location
from orchestration.quality.history import append_results
from orchestration.quality.outcome import Cause, Outcome, Result, Run, TableResult
from orchestration.storage.delta import table_id
from orchestration.storage.gate_state import GATED, Failure, GateState, write_gate_state
from orchestration.storage.lease import sole_writer
from orchestration.storage.tables import LakeStore
from orchestration.supervisor.history import note
from orchestration.supervisor.service_state import PartState, ServiceState, folder_of, write_service
from tests.built import copy_of
from tests.lakes import write
from tests.pages import Served, served
from tests.prometheus import Prometheus, promtool
from tests.rows import at
from tests.test_readme import blocks
from tests.waiting import until

DEPLOY = Path(__file__).parents[3] / "orchestration/service/deploy"
RULES, DASHBOARD = DEPLOY / "tidemark.rules.yml", json.loads((DEPLOY / "tidemark.dashboard.json").read_text())
ALERTS = [alert for group in yaml.safe_load(RULES.read_text())["groups"] for alert in group["rules"]]
TOKEN = "correct-horse-battery-staple"
SETTINGS = "page: {port: 0, token: '${env:PAGE_TOKEN}'}\nquality: {gates: {silver.readings: hold}}\n"
LABELS = {"about", "node", "layer", "part", "outcome", "rule", "source", "table", "suite", "severity"}
pytestmark = [pytest.mark.lakes, pytest.mark.prometheus]


@pytest.fixture(scope="module")
def conf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Of a lake that one run has filled, with a closed gate, a failed expectation, and parts one of which does not run."""
    folder = copy_of("page", tmp_path_factory.mktemp("metrics"))
    written, lake = folder / "conf", Location(folder / "lake")
    with (written / "pipeline.yml").open("a") as file:
        file.write(SETTINGS)
    note(lake, {"flow": "silver.readings", "batch": 0, "rows": 15, "seconds": 1.5, "state_rows": 12, "state_bytes": 4096})
    readings = LakeStore(load(written)).table_path(GATED)
    write_gate_state(lake, GateState(GATED, table_id(readings), -1, Failure(-1, 1, "2026-01-01 12:00:00Z", ("critical",))))
    failed = Result("own", Expectation("expect_x", "x", Severity.CRITICAL, {}), Outcome(False, "1 row"))
    append_results(lake, Run("1", at("13:00"), "test", Cause.ASKED, (TableResult(GATED, 1, table_id(readings), 12, (failed,)),)))
    parts = [
        PartState("streams", "running", None, None, "2026-01-01T12:00:00Z", 3, None),
        PartState("page", "stopped", None, None, "2026-01-01T12:00:00Z", 0, "odd"),
    ]
    with sole_writer(lake), sole_writer(folder_of(lake)):
        write_service(lake, ServiceState(1, parts))
        yield written


@pytest.fixture(scope="module")
def server(conf: Path) -> Iterator[Served]:
    with served(conf, PAGE_TOKEN=TOKEN) as running:
        yield running


def scraped(server: Served) -> str:
    status, headers, text = server.ask("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert (status, headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    return text


def samples(server: Served) -> dict[tuple[str, ...], float]:
    """By the name of the metric and the values of its labels, in the order of the labels' names."""
    families = text_string_to_metric_families(scraped(server))
    found = [sample for family in families for sample in family.samples]
    assert {label for sample in found for label in sample.labels} <= LABELS
    return {
        (sample.name.removeprefix("tidemark_"), *(value for _, value in sorted(sample.labels.items()))): sample.value for sample in found
    }


def test_promtool_has_nothing_to_say_about_the_metrics_of_a_lake(server: Served) -> None:
    assert promtool("check", "metrics", text=scraped(server)) == (0, "")
    odd = "# TYPE odd counter\nodd 1\n"
    assert promtool("check", "metrics", text=odd)[0] != 0  # so that nothing to say means that it looked


def test_the_metrics_are_those_of_the_lake(server: Served) -> None:
    found = samples(server)
    expected = {
        ("up", "sources", "plant"): 1,
        ("table_rows", "silver", "silver.readings"): 12,
        ("lag_seconds", "silver", "silver.readings"): 0,
        ("watermark_timestamp_seconds", "silver", "silver.readings"): at("12:45").timestamp(),
        ("batch_seconds", "silver.readings"): 1.5,
        ("state_rows", "silver.readings"): 12,
        ("state_bytes", "silver.readings"): 4096,
        ("events_total",): 16,
        ("unaccounted_events",): 0,
        ("measurements", "duplicates"): 1,
        ("quarantined_rows", "payload_is_readable", "plant"): 1,
        ("quarantined_rows", "device_is_known", "plant"): 1,
        ("quality_failed_expectations", "critical", "own", GATED): 1,
        ("quality_failed_expectations", "warning", "own", GATED): 0,
        ("quality_checked_timestamp_seconds", "own"): at("13:00").timestamp(),
        ("quality_gate_closed", GATED): 1,
        ("quality_gate_closed", "silver.late"): 0,
        ("part_restarts_total", "streams"): 3,
        ("part_running", "streams"): 1,
        ("part_running", "page"): 0,
        ("problems", "part", "critical"): 1,
        ("problems", "gate", "critical"): 1,
        ("problems", "quality", "critical"): 1,
        ("problems", "device", "warning"): 1,
        ("problems", "source", "critical"): 0,
    }
    assert {key: found.get(key) for key in expected} == expected
    delay = found["watermark_delay_seconds", "silver", "silver.readings"]
    assert 0 <= found["snapshot_timestamp_seconds",] - at("12:45").timestamp() <= delay


def test_a_row_that_comes_into_quarantine_is_counted_at_the_next_scrape(server: Served, conf: Path) -> None:
    before = samples(server)
    write(Lake(load(conf)), "silver.quarantine", {"broken_rules": ["payload_is_readable"], "source": "plant", "ingested_at": at("14:00")})
    key = ("quarantined_rows", "payload_is_readable", "plant")
    assert samples(server)[key] == before[key] + 1


def test_promtool_reads_the_rules_and_each_names_a_command_that_there_is() -> None:
    code, said = promtool("check", "rules", str(RULES))
    assert (code, f"{len(ALERTS)} rules found" in said) == (0, True), said
    for alert in ALERTS:
        commands = re.findall(r"`tidemark (\w+)", alert["annotations"]["summary"])
        assert commands and {*commands} <= {*COMMANDS}


def test_promtool_reads_the_conf_on_the_page(tmp_path: Path) -> None:
    (block,) = [block for block in blocks("orchestration/web/README.md", "yaml") if block.startswith("# prometheus.yml\n")]
    for name, text in (("prometheus.yml", block), ("page.token", TOKEN), (RULES.name, RULES.read_text())):
        (tmp_path / name).write_text(text)
    code, said = promtool("check", "config", str(tmp_path / "prometheus.yml"))
    assert (code, "1 rule files found" in said) == (0, True), said


def test_rules_fire_when_they_should_and_not_before(tmp_path: Path) -> None:
    """Rows wait too long and the watermark stands still; parts run, and snapshots are taken."""
    series = {
        'tidemark_lag_seconds{node="gold.kitchen"}': "700x60",
        'tidemark_lag_seconds{node="silver.readings"}': "599x60",
        'tidemark_watermark_timestamp_seconds{node="silver.readings"}': "1000x60",
        'tidemark_watermark_timestamp_seconds{node="gold.kitchen"}': "0+60x60",
        "tidemark_events_total": "0+100x60",
        'tidemark_part_running{part="page"}': "1x60",
        "tidemark_snapshot_timestamp_seconds": "0+60x60",
    }
    lag = "Rows wait for gold.kitchen for 11m 40s. `tidemark status` says how many."
    still = "Events come, but the watermark of silver.readings stands still, so that no window closes. `tidemark status` shows it."
    fired = {"TidemarkLag": ("gold.kitchen", lag), "TidemarkWatermarkStandsStill": ("silver.readings", still)}

    def expected(alert: str, minutes: int) -> dict[str, Any]:
        node, summary = fired.get(alert, ("", ""))
        alerts = [{"exp_labels": {"severity": "warning", "node": node}, "exp_annotations": {"summary": summary}}]
        return {"eval_time": f"{minutes}m", "alertname": alert, "exp_alerts": alerts if node and minutes > 5 else []}

    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "alert_rule_test": [expected(alert["alert"], minutes) for alert in ALERTS for minutes in (5, 50)],
    }
    (tmp_path / "test.yml").write_text(json.dumps({"rule_files": [str(RULES)], "tests": [test]}))
    assert promtool("test", "rules", str(tmp_path / "test.yml"))[0] == 0, promtool("test", "rules", str(tmp_path / "test.yml"))[1]


def test_rules_and_dashboard_ask_only_for_metrics_that_there_are(server: Served, tmp_path: Path) -> None:
    """And each query of a panel is one that Prometheus reads."""
    queries = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
    there = {f"tidemark_{key[0]}" for key in samples(server)}
    asked = {name for query in (*queries, *(alert["expr"] for alert in ALERTS)) for name in re.findall(r"\btidemark_\w+", query)}
    assert asked <= there
    filled = [query.replace("$instance", ".*").replace("$__rate_interval", "5m") for query in queries]
    rules = [{"record": f"query:{number}", "expr": query} for number, query in enumerate(filled)]
    (tmp_path / "queries.yml").write_text(json.dumps({"groups": [{"name": "queries", "rules": rules}]}))
    assert promtool("check", "rules", str(tmp_path / "queries.yml"))[0] == 0


def test_panels_of_the_dashboard_do_not_overlap_and_ask_the_source_that_is_chosen() -> None:
    panels = DASHBOARD["panels"]
    places = [(panel["title"], *(panel["gridPos"][side] for side in "xywh")) for panel in panels]
    assert all(x >= 0 and x + wide <= 24 for _, x, _, wide, _ in places)
    assert [
        (one, other)
        for (one, x, y, wide, high), (other, left, top, width, height) in combinations(places, 2)
        if x < left + width and left < x + wide and y < top + height and top < y + high
    ] == []
    assert len({panel["id"] for panel in panels}) == len(panels) >= 10
    assert {part["datasource"]["uid"] for panel in panels for part in (panel, *panel["targets"])} == {"${datasource}"}
    assert [variable["name"] for variable in DASHBOARD["templating"]["list"]] == ["datasource", "instance"]


def test_a_prometheus_that_has_the_token_scrapes_the_page_and_one_that_has_not_gets_nothing(server: Served, tmp_path: Path) -> None:
    for token, is_up in ((TOKEN, "1"), ("wrong", "0")):
        with Prometheus(tmp_path / token, server.port, token, RULES).running() as prometheus:
            until(lambda: bool(prometheus.ask("query", query="up").get("result")), lambda: prometheus.ask("targets"))
            assert [row["value"][1] for row in prometheus.ask("query", query="up")["result"]] == [is_up]
            readings = prometheus.ask("query", query='tidemark_table_rows{node="silver.readings"}')["result"]
            assert [row["value"][1] for row in readings] == (["12"] if token == TOKEN else [])
            loaded = [rule["name"] for group in prometheus.ask("rules")["groups"] for rule in group["rules"]]
            assert loaded == [alert["alert"] for alert in ALERTS]
