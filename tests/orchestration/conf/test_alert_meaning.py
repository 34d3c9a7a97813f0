"""alerts.yml may be absent; what an alert cannot mean is named with file, line and a hint."""

from pathlib import Path

import duckdb
import pytest

from gold.alerts.signals import FIELDS
from gold.alerts.spec import AlertSettings, Escalation, Flapping, Hours, NoData, Signal
from orchestration.conf.channel_settings import ChannelSettings
from orchestration.conf.load import load, summary
from orchestration.quality.store import kind_of
from silver.schema import READINGS
from tests.orchestration.conf.conftest import changed, mistakes_of

REFUSED = {
    "{when: value > 1}": "a sets none of reading, window, vector, count, account; set one",
    "{reading: power, vector: kitchen, when: value > 1}": "a sets reading and vector; keep one of them",
    "{reading: temprature, when: value > 1}": "a.reading names 'temprature', which metrics.yml does not declare; did you mean",
    "{count: {metric: hum}, when: readings = 0}": "a.count.metric names 'hum', which metrics.yml does not declare; ",
    "{reading: power, group: kichen, when: value > 1}": "a.group names 'kichen', which groups.yml does not declare; did you mean ",
    "{vector: hall, when: power > 1}": "a.vector names 'hall', which groups.yml does not declare; ",
    "{window: power, when: value > 1}": "a.group is missing: windows are those of a group; add it",
    "{vector: kitchen, group: kitchen, when: power > 1}": "a.group is for reading, window and count; remove it",
    "{reading: power, when: valu > 1}": "a.when uses 'valu', which is not a column (column 1); did you mean 'value'?",
    "{reading: power, when: value > 9, recover_when: max < 8}": "a.recover_when uses 'max', which is not a column (column 1); there are ",
    "{vector: kitchen, when: vibration > 1}": "a.when uses 'vibration', which is not a column (column 1); there are ",
    "{vector: building, when: oven-01.temperature > 1}": "a.when cannot be read (column 21): something is missing there, ",
    "{reading: power, when: read_text('conf/rules.yml') > ''}": "a.when calls 'read_text', which conditions do not have (column 1); ",
    "{reading: power, when: getenv('HOME') > ''}": "a.when calls 'getenv', which conditions do not have (column 1); ",
    "{reading: power, when: 'value > 1), check (value < 2'}": "a.when cannot be read (column 10): something is missing there, ",
    "{reading: power, when: value > 1, for_seconds: 5, for_times: 2}": "a.for_times is set beside for_seconds; keep one of them",
    "{reading: power, when: value > 1, summary: 'at {valu}'}": "a.summary names 'valu', which an alert does not have; did you mean ",
    "{reading: power, when: value > 1, summary: '{value:q}'}": "a.summary cannot be filled in (",
    "{reading: power, when: value > 1, hours: {zone: Brusels}}": "a.hours.zone is 'Brusels', which is no time zone; did you mean ",
    "{reading: power, when: value > 1, hours: {zone: UTC, from: '6:00'}}": "a.hours.from is '6:00'; write hours and minutes in quotes",
    "{reading: power, when: value > 1, escalate: [{after_seconds: 9, severity: b}, {after_seconds: 5, severity: c}]}": (
        "a.escalate does not have its steps in order of after_seconds; sort them"
    ),
    "{reading: power, when: value > 1, channels: [pager]}": "a.channels names 'pager', which alerts.yml does not declare; declare it",
    "{reading: power, when: value > 1, inhibited_by: [b]}": "a.inhibited_by names 'b', which alerts.yml does not declare; ",
    "{reading: power, when: value > 1, inhibited_by: [a]}": "a.inhibited_by forms a cycle with itself, so none of them would be sent; ",
    "{count: {every_seconds: 60}, when: readings = 0, fast: true}": "a.fast is for reading, and this looks at count; remove it",
    "{reading: power, when: rate > 1, fast: true}": "a.when uses 'rate', which is not a column (column 1); there are value, unit, zone",
    "{reading: power, when: value > 1, for_seconds: 9, fast: true}": "a.for_seconds needs all readings in order of time, ",
    "{reading: power, when: value > 1, no_data: {after_seconds: 9}, fast: true}": "a.no_data.then is 'keep', and a fast alert ",
    "{vector: press_line, when: is_anomaly}": "a.when uses 'is_anomaly', and press_line has no anomalies; add `anomalies: {}` to it",
    "{vector: press_line, when: power > 1, recover_when: score < 2}": "a.recover_when uses 'score', and press_line has no anomalies; ",
    "{reading: power, when: is_anomaly}": "a.when uses 'is_anomaly', which is not a column (column 1); there are ",
    "{reading: power, when: value > 1, severty: high}": "a.severty is not a setting; did you mean 'severity'?",
}
TAKEN = (
    "reading: power, when: abs(rate) > 2 or previous is null",
    "reading: power, when: \"attributes['quality'] = 'bad' and unit = 'W'\"",
    "reading: power, group: building, when: 1 / (value - 3) > 2 # of a division by zero nothing is known",
    "window: power, group: kitchen, when: max - min > 10 and count > 3",
    """vector: kitchen, when: "'power' in missing or humidity > 90" """,
    """vector: building, when: '"oven-01.temperature" > 200 and missing_share < 0.5'""",
    "count: {every_seconds: 60, by: group}, when: readings = 0",
    "account: {}, when: late_share > 0.1 and events > 100",
    "reading: power, when: value > 1 and zone = 'hall', for_times: 3, no_data: {after_seconds: 9, then: fire}, fast: true",
)


@pytest.mark.parametrize("alert", REFUSED)
def test_an_alert_that_means_nothing_is_named_with_file_and_line(alert: str, folder: Path) -> None:
    (folder / "alerts.yml").write_text(f"alerts:\n  a: {alert}\n")
    (mistake,) = mistakes_of(folder)
    assert mistake.startswith(f"conf/alerts.yml:2: {REFUSED[alert]}")


def test_all_other_conditions_are_taken_and_counted(folder: Path) -> None:
    (folder / "alerts.yml").write_text("alerts:\n" + "".join(f"  a{n}:\n    {{{alert}\n    }}\n" for n, alert in enumerate(TAKEN)))
    conf = load(folder)
    assert [alert.signal.kind for alert in conf.alerts.values()] == [alert.split(":")[0] for alert in TAKEN]
    assert summary(conf).endswith(", 9 alerts")


def test_an_alert_on_vectors_is_one_on_anomalies_where_its_conditions_name_them(folder: Path) -> None:
    alerts = {"odd": "when: is_anomaly", "worse": "when: power > 1, recover_when: score < 2", "strong": "when: power > 1"}
    (folder / "alerts.yml").write_text("alerts:\n" + "".join(f"  {name}: {{vector: kitchen, {text}}}\n" for name, text in alerts.items()))
    assert [alert.signal.kind for alert in load(folder).alerts.values()] == ["anomaly", "anomaly", "vector"]
    changed(folder, "metrics", "  power:", "  Score: {unit: percent, aggregation: average, step_seconds: 600}\n  power:")
    changed(folder, "groups", "features: [temperature", "features: [Score, temperature")
    changed(folder, "groups", "metrics: [", "metrics: [Score, ")
    text = "and 'Score' is a feature of kitchen too; name its metric otherwise"
    assert mistakes_of(folder) == [
        f"conf/alerts.yml:2: odd.when uses 'is_anomaly', {text}",
        f"conf/alerts.yml:3: worse.recover_when uses 'score', {text}",
    ]


def test_a_conf_without_the_file_has_no_alerts(folder: Path) -> None:
    assert load(folder).alerts == {}


def test_a_group_without_devices_is_no_mistake(folder: Path) -> None:
    groups = (folder / "groups.yml").read_text()
    (folder / "groups.yml").write_text(f"{groups}\n  empty: {{metrics: [power], vector: {{}}}}\n")
    (folder / "alerts.yml").write_text("alerts:\n  a: {vector: empty, when: power > 1}\n")
    assert load(folder).alerts["a"].signal == Signal("vector", group="empty", features=("power",))


def test_an_unknown_group_is_one_mistake_and_its_conditions_are_not_looked_at(folder: Path) -> None:
    (folder / "alerts.yml").write_text("alerts:\n  a: {vector: kichen, when: power > 1}\n")
    assert len(mistakes_of(folder)) == 1


def test_every_setting_reaches_the_alert(folder: Path) -> None:
    (folder / "alerts.yml").write_text(
        "alerts:\n  a: {window: power, group: kitchen, when: value > 9, recover_when: value < 8, for_seconds: 120,\n"
        "    keep_firing_seconds: 300, severity: info, summary: '{entity}', no_data: {after_seconds: 900, then: resolve},\n"
        "    escalate: [{after_seconds: 5, severity: high}], flapping: {share: 0.4},\n"
        "    hours: {zone: Europe/Berlin, days: [mon, sun], from: '22:00', until: '06:30'},\n"
        "    channels: [pager], repeat_seconds: 60, group_by: zone, inhibited_by: [b], max_per_hour: 3, digest_older_than_seconds: 5}\n"
        "  b: {reading: power, when: value > 1}\nchannels:\n  pager: {apprise: '${env:PAGER_URL}'}\n"
    )
    conf = load(folder)
    assert conf.alerts["a"] == AlertSettings(
        name="a",
        signal=Signal("window", "power", "kitchen"),
        when="value > 9",
        recover_when="value < 8",
        for_seconds=120,
        keep_firing_seconds=300,
        severity="info",
        summary="{entity}",
        no_data=NoData(900, "resolve", 3),
        escalate=(Escalation(5, "high"),),
        hours=Hours("Europe/Berlin", (0, 6), 22 * 60, 6 * 60 + 30),
        flapping=Flapping(0.4, 20),
        window="power",
        group="kitchen",
        channels=("pager",),
        repeat_seconds=60,
        group_by="zone",
        inhibited_by=("b",),
        max_per_hour=3,
        digest_older_than_seconds=5,
    )
    assert list(conf.notice_policies) == ["a", "b"]
    assert conf.channels == {"pager": ChannelSettings(apprise="${env:PAGER_URL}")}


def test_conditions_on_readings_see_the_types_that_silver_has() -> None:
    with duckdb.connect() as store:
        of_silver = dict(zip(READINGS.names, store.from_arrow(READINGS.empty_table()).types, strict=True))
    for name in ("value", "unit", "zone", "attributes"):
        assert kind_of(str(of_silver[name])) is FIELDS["reading"][name]
