"""Views of a lake in a store: what a query asks the store to learn which tables there are."""

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from orchestration.conf.place import Place
from orchestration.location import lake_at
from orchestration.storage.commit import create
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.views import views
from orchestration.stores.object_store import ObjectStore
from tests.object_store import ACCESS_KEY, SECRET_KEY, Store
from tests.s3_proxy import Proxy

SNAPSHOT = Snapshot(1, datetime(2026, 1, 5, tzinfo=UTC), 1, 0, {"silver.readings": 0, "bronze.events": 0}, {})


@pytest.fixture
def place(store: Store, proxy: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    for name, value in {"KEY": ACCESS_KEY, "SECRET": SECRET_KEY, "XDG_STATE_HOME": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    lake = lake_at(f"s3://{store.bucket()}/lake", ObjectStore(proxy.endpoint, None, "${env:KEY}", "${env:SECRET}"))
    create(lake / "silver/devices", pa.schema([("n", pa.int64())]))
    proxy.forget()
    return Place(lake, {"kitchen": "kitchen"}, {}, dict)


def test_of_a_query_of_tables_that_a_snapshot_pins_a_store_is_not_asked(place: Place, proxy: Proxy) -> None:
    assert {*views(place, SNAPSHOT, "select 1 from silver.readings, Bronze.Events")} == {"silver.readings", "bronze.events"}
    assert not proxy.counts()


@pytest.mark.parametrize("other", ["silver.devices", '"silver"."devices"'])
def test_a_query_that_names_another_one_beside_them_sees_it(place: Place, other: str) -> None:
    assert {*views(place, SNAPSHOT, f"select 1 from silver.readings, {other}")} == {"silver.readings", "silver.devices"}
