"""Platforms of conf/platforms: their confs have no mistakes, their tests hold, and their messages are recognised."""

import doctest
import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from orchestration.audit.conf_tests.from_sample import write_first_test
from orchestration.cli.app import exit_code
from orchestration.conf.load import load
from orchestration.conf.platforms import messages_of, platform_keys, platform_of, recognised
from orchestration.conf.starter import write_conf
from orchestration.jobs.platform_sample import platform_conf
from silver.decoders.user_code import module_of

WANTED = {
    *("the_things_stack", "chirpstack", "zigbee2mqtt", "tasmota", "shelly", "home_assistant", "thingsboard", "azure_iot_hub", "aws_iot"),
    *("telegraf", "opcua_pubsub", "sparkplug", "ocpp", "senml", "campbell_toa5", "wincc", "davis", "teltonika"),
}


def payload_of(message: dict[str, Any]) -> str:
    return message["payload"] if isinstance(message["payload"], str) else json.dumps(message["payload"])


def test_there_is_a_file_for_each_platform_with_two_messages_at_least() -> None:
    platforms = [platform_of(key) for key in platform_keys()]
    assert {platform.key for platform in platforms} >= WANTED
    assert [platform.key for platform in platforms if len([message for test in platform.tests for message in test["given"]]) < 2] == []


@pytest.mark.parametrize("key", platform_keys())
def test_the_conf_of_a_platform_has_no_mistakes_and_no_warnings_and_passes_its_tests(
    key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "conf"
    assert exit_code(["init", str(folder), "--platform", key]) == 0
    assert capsys.readouterr().out.startswith(f"{folder}: no mistakes; pipeline tidemark with 1 source, ")
    assert load(folder).warnings == ()
    assert exit_code(["--conf", str(folder), "test"]) == 0
    assert capsys.readouterr().out.startswith(f"{len(platform_of(key).tests)} of {len(platform_of(key).tests)} tests passed in ")


@pytest.mark.parametrize("key", [key for key in platform_keys() if platform_of(key).recognise])
def test_messages_of_a_platform_are_recognised_as_its_own_and_of_no_other(key: str) -> None:
    for test in platform_of(key).tests:
        lines = [line for message in test["given"] for line in payload_of(message).splitlines()]
        platform = recognised(lines)
        assert platform is not None and platform.key == key, lines


@pytest.mark.parametrize("key", [key for key in platform_keys() if platform_of(key).modules])
def test_the_example_of_a_decoder_holds(key: str) -> None:
    for name, text in platform_of(key).modules.items():
        module = module_of(name.removesuffix(".py"), text)
        assert doctest.testmod(module).failed == 0 < doctest.testmod(module).attempted


def test_whoever_names_a_platform_wrongly_is_shown_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["init", str(tmp_path / "conf"), "--platform", "shely"]) == 2
    shown = capsys.readouterr().err
    assert all(f"'{key}'" in shown for key in platform_keys())
    assert exit_code(["init", str(tmp_path / "conf"), "--platform", "shelly", "--source", "mqtt"]) == 2
    assert "--platform and --source both say how events come" in capsys.readouterr().err


def proposed(tmp_path: Path, lines: list[Any], *options: str, name: str = "sample.jsonl") -> tuple[int, Path]:
    file = tmp_path / name
    file.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return exit_code(["init", str(tmp_path / "conf"), "--from", str(file), *options]), tmp_path / "conf"


UPLINK = {
    "end_device_ids": {"device_id": "cellar-1"},
    "received_at": "2026-03-02T08:00:01Z",
    "uplink_message": {
        "f_cnt": 7,
        "received_at": "2026-03-02T08:00:00Z",
        "decoded_payload": {"temperature": 21.5, "co2": 610, "door": "x"},
    },
}


def test_a_sample_of_a_platform_brings_fields_of_its_own_that_are_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, folder = proposed(tmp_path, [UPLINK], "--copy")
    captured = capsys.readouterr().err
    assert (code, captured.splitlines()[0]) == (0, "found: messages of The Things Stack; the conf is that of --platform the_things_stack")
    assert "preview: 1 event: 2 of 2 measurements would be readings\n" in captured
    conf = load(folder)
    assert conf.sources["the_things_stack"].payload_format.metrics == {
        "co2": "uplink_message.decoded_payload.co2",
        "temperature": "uplink_message.decoded_payload.temperature",
    }
    assert ([*conf.devices], conf.metrics["temperature"].unit, conf.metrics["co2"].unit) == (["cellar-1"], "C", None)
    assert (tmp_path / "landing/sample.jsonl").is_file()


def test_a_sample_gives_a_test_of_its_first_messages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, folder = proposed(tmp_path, [UPLINK] * 20)
    test = yaml.safe_load((folder / "tests/the_things_stack.yml").read_text())["tests"][0]
    assert len(test["given"][0]["payload"].splitlines()) == 12
    assert test["expect"]["readings"][0] == {
        "device_id": "cellar-1",
        "metric": "co2",
        "event_time": "2026-03-02T08:00:00Z",
        "value": 610,
    }
    assert f"test: {folder}/tests/the_things_stack.yml has what comes of the first messages" in capsys.readouterr().err
    assert exit_code(["--conf", str(folder), "test"]) == 0


@pytest.mark.parametrize(("note", "has_test"), [("x" * 9_000, True), ("x" * 10_000, False), ("b\u2028c", False)])
def test_lines_that_nobody_can_read_give_no_test(note: str, has_test: bool, tmp_path: Path) -> None:
    code, folder = proposed(tmp_path, ["ts,temp,note", f"2026-03-02T08:00:00Z,1,{note}"], name="a.csv")
    assert (code, (folder / "tests").exists()) == (0, has_test)


def test_a_sample_as_mosquitto_sub_writes_it_has_its_topics(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f'zigbee2mqtt/{room} {{"temperature": 2{n}.5, "linkquality": 99}}' for n, room in enumerate(("bath", "attic"))]
    code, folder = proposed(tmp_path, lines)
    assert (code, [*load(folder).devices]) == (0, ["attic", "bath"])
    assert "the preview takes the lines for messages of zigbee2mqtt/bath" in capsys.readouterr().err


def test_messages_without_a_time_of_their_own_are_no_repeats_of_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, folder = proposed(tmp_path, [{"temperature": 21.5 + n, "linkquality": 99} for n in range(3)])
    assert (code, load(folder).sources["zigbee2mqtt"].transport.kind) == (0, "mqtt")
    assert "preview: 3 events: 6 of 6 measurements would be readings\n" in capsys.readouterr().err


def test_units_of_long_rows_are_those_of_the_sample(tmp_path: Path) -> None:
    pack = [{"bn": "mote-7:", "bt": 1772438400, "n": "co2", "u": "ppm", "v": 610}, {"n": "temperature", "u": "Cel", "v": 21.5}]
    _, folder = proposed(tmp_path, [pack])
    assert {name: metric.unit for name, metric in load(folder).metrics.items()} == {"co2": "ppm", "temperature": "Cel"}


def test_a_csv_of_a_platform_is_read_with_the_marks_that_it_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = ["VarName,TimeString,VarValue,Validity,Time_ms", "Flow,02.03.2026 08:00:00,66.25,1,46083333333.33"]
    code, folder = proposed(tmp_path, lines, name="panel.csv")
    assert (code, load(folder).sources["wincc"].payload_format.separator, [*load(folder).metrics]) == (0, ",", ["Flow"])


def test_what_the_conf_of_a_platform_cannot_read_is_proposed_as_ever(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = ["VarName;TimeString;VarValue", "Flow;2026-03-02T08:00:00Z;66.25", "Flow;2026-03-02T08:01:00Z;66.5"]
    code, folder = proposed(tmp_path, lines, name="panel.csv")
    assert (code, [*load(folder).sources]) == (0, ["sample"])
    assert "found: messages of" not in capsys.readouterr().err
    assert exit_code(["init", str(tmp_path / "other"), "--from", str(tmp_path / "panel.csv"), "--platform", "wincc"]) == 2
    assert "would be a reading by the conf of wincc; leave --platform out" in capsys.readouterr().err


def test_old_messages_are_no_defects(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = {**UPLINK, "uplink_message": {**UPLINK["uplink_message"], "received_at": "2014-03-02T08:00:00Z"}}  # type: ignore[dict-item]
    proposed(tmp_path, [old])
    assert "2 of 2 measurements would be readings" in capsys.readouterr().err


VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(), lambda inner: st.dictionaries(st.text(), inner) | st.lists(inner)
)


@settings(max_examples=25, deadline=None)
@example([{"0E0": False, "0o7": 1, "1e3": 2}], "the_things_stack")
@given(
    st.lists(st.dictionaries(st.text(), VALUES), max_size=3), st.sampled_from(["the_things_stack", "zigbee2mqtt", "thingsboard", "tasmota"])
)
def test_fields_of_any_name_and_value_are_no_obstacle(own: list[dict[str, Any]], key: str) -> None:
    """What cannot be a metric is left out, and what is recognised has a conf without mistakes."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "sample.jsonl"
        file.write_text(
            "\n".join(json.dumps(payload, ensure_ascii=False) for payload in [WHOLE[key]({}), *map(WHOLE[key], own)]),
            encoding="utf-8",
            errors="replace",
        )
        known = platform_conf(file, key)
        assert known is not None
        write_conf(Path(folder) / "conf", known.texts)
        conf = load(Path(folder) / "conf")
        assert conf.metrics
        if write_first_test(conf, file, known.topic):
            assert exit_code(["--conf", str(conf.folder), "test"]) == 0


WHOLE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "the_things_stack": lambda own: {
        **UPLINK,
        "uplink_message": {"received_at": "2026-03-02T08:00:00Z", "decoded_payload": {**own, "temperature": 1}},
    },
    "zigbee2mqtt": lambda own: {**own, "linkquality": 5},
    "thingsboard": lambda own: {"oven": [{"ts": 1772438400000, "values": {**own, "temperature": 1}}]},
    "tasmota": lambda own: {**own, "Time": "2026-03-02T08:00:00", "TempUnit": "C", "ENERGY": {"Power": 1}},
}


@given(st.lists(st.text(), max_size=5))
def test_any_text_has_a_platform_or_none(lines: list[str]) -> None:
    assert len(messages_of(lines)) == len([line for line in lines if line.strip()])
    assert recognised(lines) is None or lines


@pytest.mark.parametrize("line", ["02/03/2026 08:00;1", "cpu,path=/ used=1 17", '{"a": "b/c {"}', "plant/a/b 21.5"])
def test_a_line_without_a_topic_stays_whole(line: str) -> None:
    assert messages_of([line]) == [(None, line)]
