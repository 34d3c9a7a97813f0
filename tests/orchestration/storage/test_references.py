"""Tables of the user as references: what each says, when it is read again, and which mistakes are named."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from orchestration.conf.model import Conf
from orchestration.conf.reference_tables import ReferenceSettings
from orchestration.errors import ConfError
from orchestration.location import Location
from orchestration.storage import references
from orchestration.storage.delta import is_table, path_of, table_of
from orchestration.storage.references import ReferenceTables
from orchestration.storage.registry import NOTICE
from tests.lakes import bare_conf

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
CUSTOMERS = "serial,customer,contract\noven,Ada,7\nfridge,Bob,\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "customers.csv"
    file.write_text(CUSTOMERS)
    return file


def conf_of(folder: Path, **tables: ReferenceSettings) -> Conf:
    return bare_conf(folder, references=tables)


def of_devices(path: Path, **columns: str) -> ReferenceSettings:
    return ReferenceSettings(path=path, attributes=columns or {"customer": "customer", "contract": "contract"}, device_id="serial")


def look(tables: ReferenceTables) -> list[str]:
    """Twice, so that what has changed has rested."""
    return [*tables.look_again(), *tables.look_again()]


def recorded(lake: Location) -> dict[str, list[tuple[dict[str, str] | None, datetime]]]:
    """Versions by key, the oldest first."""
    rows = table_of(path_of(lake, references.TABLE)).sort_by("registered_at").to_pylist(maps_as_pydicts="strict")
    return {key: [(row["attributes"], row["registered_at"]) for row in rows if row["key"] == key] for key in {row["key"] for row in rows}}


def mistakes(folder: Path, path: Path, **columns: str) -> str:
    with pytest.raises(ConfError) as raised:
        ReferenceTables(conf_of(folder, customers=of_devices(path, **columns))).begin(NOON)
    return str(raised.value).replace(f"{path}", path.name)


def test_a_row_counts_from_the_instant_at_which_a_run_begins_and_only_changes_are_recorded(tmp_path: Path, file: Path) -> None:
    made = conf_of(tmp_path, customers=of_devices(file))
    later = NOON + timedelta(hours=1)
    assert [ReferenceTables(made).begin(at) for at in (NOON, later)] == [2, 0]
    file.write_text("serial,customer,contract\noven,Ada,8\n")
    assert ReferenceTables(made).begin(later) == 2
    assert recorded(made.lake) == {
        "oven": [({"customer": "Ada", "contract": "7"}, NOON), ({"customer": "Ada", "contract": "8"}, later)],
        "fridge": [({"customer": "Bob"}, NOON), (None, later)],
    }


def test_what_several_tables_say_of_a_key_is_one_version_and_a_table_that_left_conf_says_nothing_more(tmp_path: Path, file: Path) -> None:
    more = tmp_path / "limits.csv"
    more.write_text("serial,limit\noven,9\n")
    both = {"customers": of_devices(file, owner="customer"), "limits": of_devices(more, limit="limit")}
    ReferenceTables(conf_of(tmp_path, **both)).begin(NOON)
    made = conf_of(tmp_path, limits=both["limits"])
    assert recorded(made.lake)["oven"] == [({"limit": "9", "owner": "Ada"}, NOON)]
    ReferenceTables(made).begin(NOON + timedelta(hours=1))
    ReferenceTables(conf_of(tmp_path)).begin(NOON + timedelta(hours=2))
    assert [said for said, _ in recorded(made.lake)["oven"]] == [{"limit": "9", "owner": "Ada"}, {"limit": "9"}, None]


def test_a_lake_without_references_gets_no_table(tmp_path: Path) -> None:
    made = conf_of(tmp_path)
    assert ReferenceTables(made).begin(NOON) == 0
    assert not is_table(path_of(made.lake, references.TABLE))


def test_a_file_that_changed_is_read_again_and_counts_from_shortly_on(tmp_path: Path, file: Path) -> None:
    made = conf_of(tmp_path, customers=of_devices(file))
    tables = ReferenceTables(made)
    tables.begin(NOON)
    begin = datetime.now(UTC)
    assert look(tables) == []
    file.write_text(CUSTOMERS + "press,Cid,9\n")
    assert look(tables) == []
    ((said, since),) = recorded(made.lake)["press"]
    assert said == {"customer": "Cid", "contract": "9"}
    assert begin + NOTICE <= since <= datetime.now(UTC) + NOTICE
    assert len(recorded(made.lake)["oven"]) == 1


def test_a_file_that_is_still_being_written_is_left_alone_until_it_has_rested(tmp_path: Path, file: Path) -> None:
    made = conf_of(tmp_path, customers=of_devices(file))
    tables = ReferenceTables(made)
    tables.begin(NOON)
    counts = []
    for text in ("serial,customer,contract\n", CUSTOMERS + "p,C,\n", None, None):
        if text:
            file.write_text(text)
        assert tables.look_again() == []
        counts.append(len(table_of(path_of(made.lake, references.TABLE))))
    assert counts == [2, 2, 3, 3]


@pytest.mark.parametrize("is_gone", [True, False])
def test_a_file_that_cannot_be_read_during_a_run_is_told_once_and_its_last_rows_go_on_counting(
    tmp_path: Path, file: Path, is_gone: bool
) -> None:
    made = conf_of(tmp_path, customers=of_devices(file))
    tables = ReferenceTables(made)
    tables.begin(NOON)
    if is_gone:
        file.unlink()
    else:
        file.write_text("serial,customer\noven,Zoe\n")
    (problem,), again = look(tables), look(tables)
    assert problem.startswith("what reference customers said last goes on counting: ") and str(file) in problem
    assert again == []
    assert {key: len(said) for key, said in recorded(made.lake).items()} == {"oven": 1, "fridge": 1}
    file.write_text("serial,customer,contract\noven,Zoe,7\nfridge,Bob,\n")
    assert look(tables) == []
    assert [said for said, _ in recorded(made.lake)["oven"]] == [{"customer": name, "contract": "7"} for name in ("Ada", "Zoe")]


def test_a_delta_table_is_read_as_text_and_again_when_it_has_a_new_version(tmp_path: Path) -> None:
    table = tmp_path / "lines"
    rows: dict[str, Any] = {"hall": [1, 2], "foreman": ["Eve", None], "shifts": [3, 2], "is_hot": [True, None]}
    write_deltalake(table, pa.table(rows))
    lines = ReferenceSettings(path=table, attributes={"shift_foreman": "foreman", "shifts": "shifts", "is_hot": "is_hot"}, zone="hall")
    tables = ReferenceTables(made := conf_of(tmp_path, lines=lines))
    tables.begin(NOON)
    assert table_of(path_of(made.lake, references.TABLE))["key_of"].to_pylist() == ["zone", "zone"]
    assert {key: said for key, ((said, _),) in recorded(made.lake).items()} == {
        "1": {"shift_foreman": "Eve", "shifts": "3", "is_hot": "true"},
        "2": {"shifts": "2"},
    }
    DeltaTable(table).delete("hall = 2")
    assert look(tables) == []
    assert [said for said, _ in recorded(made.lake)["2"]] == [{"shifts": "2"}, None]


def test_mistakes_of_a_table_are_named_with_file_line_and_way_out(tmp_path: Path, file: Path) -> None:
    assert mistakes(tmp_path, file, customer="custmer") == (
        "customers.csv:1: has no column 'custmer', which references.customers.attributes.customer names; did you mean 'customer'?"
    )
    file.write_text("device;customer\n")
    assert mistakes(tmp_path, file, customer="customer").splitlines()[0] == (
        "customers.csv:1: has no column 'serial', which references.customers.device_id names; it has 'device;customer'"
    )
    file.write_text('serial,customer,contract\noven,"A\nB",7\n,Bob,\noven,Cid,\n')
    assert mistakes(tmp_path, file).splitlines() == [
        "customers.csv:4: has a row without 'serial'; fill it in, or remove the row",
        "customers.csv:5: serial is 'oven' in two rows, here and in line 2; remove one of them",
    ]
    file.write_text("serial,customer,contract\noven,Ada\n")
    assert mistakes(tmp_path, file) == "customers.csv:2: has 2 cells under 3 columns; quote a cell that holds a comma"
    file.write_text("serial,customer,contract\n" + "oven,Ada,\n" * 30)
    assert mistakes(tmp_path, file).splitlines()[-1] == "customers.csv: has 19 more mistakes"
    file.write_bytes(b"serial,customer,contract\noven,\xff,7\n")
    assert mistakes(tmp_path, file) == "customers.csv:2: is not UTF-8 text; save the file as UTF-8"
    file.write_text("serial,customer,customer,contract\n")
    assert mistakes(tmp_path, file) == (
        "customers.csv:1: has 2 columns 'customer', which references.customers.attributes.customer names; keep one"
    )
    file.write_text('serial,customer,contract\noven,"Ada"x,7\n')
    assert "customers.csv:2: is not CSV" in mistakes(tmp_path, file)


def test_a_table_that_is_not_there_or_no_table_is_named_with_the_setting(tmp_path: Path) -> None:
    assert mistakes(tmp_path, tmp_path / "gone.csv").startswith("gone.csv: cannot be read (No such file or directory); put a CSV")
    (tmp_path / "empty").mkdir()
    assert mistakes(tmp_path, tmp_path / "empty").startswith("empty: cannot be read (")
    write_deltalake(tmp_path / "odd", pa.table({"serial": ["a", "a"], "tags": [["x"], []], "customer": ["A", "B"]}))
    assert mistakes(tmp_path, tmp_path / "odd", tags="tags").startswith("odd: cannot be read (Unsupported cast from list<")
    assert mistakes(tmp_path, tmp_path / "odd", c="customer") == "odd: serial is 'a' in two rows; remove one of them"
    assert mistakes(tmp_path, tmp_path / "odd", c="c").startswith("odd: has no column 'c', which references.customers.attributes.c names; ")


@pytest.mark.parametrize("count", [10_000, pytest.param(200_000, marks=pytest.mark.slow)])
def test_many_rows_are_recorded_and_one_that_changed_is_one_version(count: int, tmp_path: Path, file: Path) -> None:
    lines = [f"device-{n},customer {n % 100},{n}\n" for n in range(count)]
    file.write_text("serial,customer,contract\n" + "".join(lines))
    made = conf_of(tmp_path, customers=of_devices(file))
    assert ReferenceTables(made).begin(NOON) == count
    file.write_text("serial,customer,contract\n" + "".join(lines[:-1]) + f"device-{count - 1},Ada,1\n")
    assert ReferenceTables(made).begin(NOON + timedelta(hours=1)) == 1
