"""Workers read the registry and references from copies, which are as new as the tables were when a batch was handed out."""

import pickle
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from orchestration.conf.model import Device
from orchestration.location import Location
from orchestration.storage import reference_data, references, registry
from orchestration.storage.lake_layout import mapped_folder
from orchestration.storage.reference_data import publish

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
OVEN, ROOM = Device("oven", ("kitchen",), "hall"), Device("room")


def test_a_worker_sees_what_was_registered_before_its_batch_was_handed_out(tmp_path: Path) -> None:
    lake = Location(tmp_path)
    registry.sync(lake, {"oven": OVEN}, NOON)
    load = pickle.loads(pickle.dumps(publish(lake)))
    before = load()
    assert (before.devices["device_id"].to_pylist(), before.references) == (["oven"], None)
    registry.sync(lake, {"oven": OVEN, "room": ROOM}, NOON)
    references.record(lake, {("device_id", "oven"): {"customer": "Ada"}}, NOON)
    assert load().devices.equals(before.devices), "nothing was handed out since"
    publish(lake)
    assert load().devices.sort_by("device_id").equals(reference_data.reference_data(lake).devices.sort_by("device_id"))
    assert load().references["attributes"].to_pylist() == [[("customer", "Ada")]]
    assert before.devices["device_id"].to_pylist() == ["oven"], "a task that is at work goes on with what it has mapped"


def test_a_copy_is_made_anew_only_where_its_table_has_changed_or_it_is_gone(tmp_path: Path) -> None:
    lake = Location(tmp_path)
    registry.sync(lake, {"oven": OVEN}, NOON)
    load = publish(lake)
    (copy,) = mapped_folder(lake).local.iterdir()
    made = copy.stat().st_ino
    publish(lake)
    assert copy.stat().st_ino == made
    copy.unlink()
    with pytest.raises(FileNotFoundError, match="the copy of the device registry for workers is not there"):
        load()
    publish(lake)
    assert len(load().devices) == 1
    registry.sync(lake, {}, NOON + timedelta(days=1))
    publish(lake)
    assert [copy] == [*mapped_folder(lake).local.iterdir()], "no draft is left"
    assert len(load().devices) == 2
