"""Workers read the registry and references from copies, which are as new as the tables were when a batch was handed out."""

import pickle
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from orchestration.conf.model import Device
from orchestration.errors import TidemarkError
from orchestration.location import Location
from orchestration.storage import references, registry
from orchestration.storage.generations import Generation
from orchestration.storage.lake_layout import MAPPED
from orchestration.storage.silver_inputs import publish, reference_data
from orchestration.storage.tables import LakeStore
from tests.lakes import conf

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
OVEN, ROOM = Device("oven", ("kitchen",), "hall"), Device("room")


@pytest.fixture
def lake(tmp_path: Path) -> Location:
    """Knows one device."""
    registry.sync(Location(tmp_path), {"oven": OVEN}, NOON)
    return Location(tmp_path)


def store(lake: Location, generation: Generation | None = None) -> LakeStore:
    return LakeStore(conf(lake.local, lake=lake), generation)


def test_each_generation_has_a_copy_with_its_own_corrections(lake: Location) -> None:
    second = Generation(1, 2, places={"silver/device_corrections": 2})
    (registered,) = registry.versions(lake)
    registry.correct(lake, second, [registered | {"groups": ["building"]}])
    loads = [publish(store(lake, generation)) for generation in (None, second)]
    assert [load().devices["groups"].to_pylist() for load in loads] == [[["kitchen"]], [["building"]]]


def test_a_worker_sees_what_was_registered_before_its_batch_was_handed_out(lake: Location) -> None:
    load = pickle.loads(pickle.dumps(publish(store(lake))))
    before = load()
    assert (before.devices["device_id"].to_pylist(), before.references) == (["oven"], None)
    registry.sync(lake, {"oven": OVEN, "room": ROOM}, NOON)
    references.record(lake, {("device_id", "oven"): {"customer": "Ada"}}, NOON)
    assert load().devices.equals(before.devices), "nothing was handed out since"
    publish(store(lake))
    assert load().devices.sort_by("device_id").equals(reference_data(store(lake)).devices.sort_by("device_id"))
    assert load().references["attributes"].to_pylist() == [[("customer", "Ada")]]
    assert before.devices["device_id"].to_pylist() == ["oven"], "a task that is at work goes on with what it has mapped"


def test_a_copy_is_made_anew_only_where_its_table_has_changed(lake: Location) -> None:
    load = publish(store(lake))
    (copy,) = (lake / MAPPED).local.iterdir()
    made = copy.stat().st_ino
    publish(store(lake))
    assert copy.stat().st_ino == made
    registry.sync(lake, {}, NOON + timedelta(days=1))
    publish(store(lake))
    assert [copy] == [*(lake / MAPPED).local.iterdir()], "no draft is left"
    assert len(load().devices) == 2


@pytest.mark.parametrize("left", [None, b"", b"rubbish" * 100, 0.5, -1], ids=str)
def test_a_damaged_copy_is_refused_by_a_worker_and_made_anew_before_the_next_batch(left: bytes | float | None, lake: Location) -> None:
    load = publish(store(lake))
    (copy,) = (lake / MAPPED).local.iterdir()
    whole = copy.read_bytes()
    if left is None:
        copy.unlink()
    else:
        copy.write_bytes(left if isinstance(left, bytes) else whole[: int(len(whole) * left) if left > 0 else -1])
    with pytest.raises(TidemarkError, match=rf"{copy} is gone or is not as it was written: run again, every run makes it anew"):
        load()
    publish(store(lake))
    assert load().devices["device_id"].to_pylist() == ["oven"]


def test_a_copy_in_which_a_byte_is_another_is_made_anew_before_the_next_batch(lake: Location) -> None:
    publish(store(lake))
    (copy,) = (lake / MAPPED).local.iterdir()
    whole = copy.read_bytes()
    copy.write_bytes(whole.replace(b"oven", b"0ven"))
    publish(store(lake))
    assert copy.read_bytes() == whole
