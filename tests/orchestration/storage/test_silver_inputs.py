"""Workers read the registry and references from copies, which are as new as the tables were when a batch was handed out."""

import pickle
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from orchestration.conf.model import Device
from orchestration.errors import TidemarkError
from orchestration.location import Location, lake_at
from orchestration.storage import references, registry
from orchestration.storage.generations import Generation
from orchestration.storage.lake_layout import MAPPED
from orchestration.storage.silver_inputs import publish, reference_data
from orchestration.storage.tables import LakeStore
from orchestration.stores.object_store import ObjectStore
from tests.lakes import conf
from tests.object_store import ACCESS_KEY, SECRET_KEY, Store

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
OVEN, ROOM = Device("oven", ("kitchen",), "hall"), Device("room")


@pytest.fixture
def lake(tmp_path: Path) -> Location:
    """Knows one device."""
    registry.sync(Location(tmp_path), {"oven": OVEN}, NOON)
    return Location(tmp_path)


def of_lake(lake: Location, generation: Generation | None = None) -> LakeStore:
    return LakeStore(conf(lake.local, lake=lake), generation)


def test_each_generation_has_a_copy_with_its_own_corrections(lake: Location) -> None:
    second = Generation(1, 2, places={"silver/device_corrections": 2})
    (registered,) = registry.versions(lake)
    registry.correct(lake, second, [registered | {"groups": ["building"]}])
    loads = [publish(of_lake(lake, generation)) for generation in (None, second)]
    assert [load().devices["groups"].to_pylist() for load in loads] == [[["kitchen"]], [["building"]]]


def test_a_worker_sees_what_was_registered_before_its_batch_was_handed_out(lake: Location) -> None:
    load = pickle.loads(pickle.dumps(publish(of_lake(lake))))
    before = load()
    assert (before.devices["device_id"].to_pylist(), before.references) == (["oven"], None)
    registry.sync(lake, {"oven": OVEN, "room": ROOM}, NOON)
    references.record(lake, {("device_id", "oven"): {"customer": "Ada"}}, NOON)
    assert load().devices.equals(before.devices), "nothing was handed out since"
    publish(of_lake(lake))
    assert load().devices.sort_by("device_id").equals(reference_data(of_lake(lake)).devices.sort_by("device_id"))
    assert load().references["attributes"].to_pylist() == [[("customer", "Ada")]]
    assert before.devices["device_id"].to_pylist() == ["oven"], "a task that is at work goes on with what it has mapped"


def test_a_copy_is_made_anew_only_where_its_table_has_changed(lake: Location) -> None:
    load = publish(of_lake(lake))
    (copy,) = (lake / MAPPED).local.iterdir()
    made = copy.stat().st_ino
    publish(of_lake(lake))
    assert copy.stat().st_ino == made
    registry.sync(lake, {}, NOON + timedelta(days=1))
    publish(of_lake(lake))
    assert [copy] == [*(lake / MAPPED).local.iterdir()], "no draft is left"
    assert len(load().devices) == 2


@pytest.mark.parametrize("left", [None, b"", b"rubbish" * 100, 0.5, -1], ids=str)
def test_a_damaged_copy_is_refused_by_a_worker_and_made_anew_before_the_next_batch(left: bytes | float | None, lake: Location) -> None:
    load = publish(of_lake(lake))
    (copy,) = (lake / MAPPED).local.iterdir()
    whole = copy.read_bytes()
    if left is None:
        copy.unlink()
    else:
        copy.write_bytes(left if isinstance(left, bytes) else whole[: int(len(whole) * left) if left > 0 else -1])
    with pytest.raises(TidemarkError, match=rf"{copy} is gone or is not as it was written: run again, every run makes it anew"):
        load()
    publish(of_lake(lake))
    assert load().devices["device_id"].to_pylist() == ["oven"]


def test_a_copy_in_which_a_byte_is_another_is_made_anew_before_the_next_batch(lake: Location) -> None:
    publish(of_lake(lake))
    (copy,) = (lake / MAPPED).local.iterdir()
    whole = copy.read_bytes()
    copy.write_bytes(whole.replace(b"oven", b"0ven"))
    publish(of_lake(lake))
    assert copy.read_bytes() == whole


def test_a_worker_elsewhere_brings_a_copy_from_the_store_once(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", ACCESS_KEY)
    monkeypatch.setenv("SECRET", SECRET_KEY)
    lake = lake_at(f"s3://{store.bucket()}/lake", ObjectStore(store.endpoint, None, "${env:KEY}", "${env:SECRET}"))
    registry.sync(lake, {"oven": OVEN}, NOON)
    load = publish(of_lake(lake))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another"))
    assert [row["device_id"] for row in load().devices.to_pylist()] == ["oven"]
    assert load().references is None
    (brought,) = (lake / MAPPED).local.iterdir()
    registry.sync(lake, {"oven": OVEN, "room": ROOM}, NOON)
    publish(of_lake(lake))
    assert len(load().devices) == 2
    assert [*(lake / MAPPED).local.iterdir()] != [brought]
    assert len([*(lake / MAPPED).local.iterdir()]) == 1, "the one before is gone"
