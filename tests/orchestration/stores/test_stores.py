"""Disks and object stores alike: what a location is asked, and what is true after a write whose answer is lost."""

from contextlib import closing
from pathlib import Path, PurePosixPath
from socket import socket
from threading import Barrier, Thread

import pytest

from orchestration.cli.app import exit_code
from orchestration.location import Location, lake_at
from orchestration.stores.object_store import ObjectStore
from orchestration.stores.store import ChangedError, Condition
from tests.collectors import write_conf
from tests.object_store import ACCESS_KEY, SECRET_KEY, Store
from tests.s3_proxy import Fault, Proxy


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", ACCESS_KEY)
    monkeypatch.setenv("SECRET", SECRET_KEY)


@pytest.fixture(params=["disk", "store"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    return Location(tmp_path / "lake") if request.param == "disk" else _in(request.getfixturevalue("store"))


def _in(store: Store, endpoint: str | None = None) -> Location:
    place = ObjectStore(endpoint or store.endpoint, None, "${env:KEY}", "${env:SECRET}", answer_seconds=3)
    return lake_at(f"s3://{store.bucket()}/lake", place)


def test_a_file_is_written_read_listed_and_deleted(lake: Location) -> None:
    file = lake / "a/b.json"
    assert (file.exists(), file.tag(), lake.is_dir()) == (False, None, False)
    file.write(b"one")
    tag = file.tag()
    file.write(b"more")
    assert (file.read(), file.read_range(1, 2), file.size(), file.exists(), lake.is_dir()) == (b"more", b"or", 4, True, True)
    assert file.tag() not in {None, tag}
    assert [(entry.below(lake), size) for entry, size, _ in lake.entries()] == [("a/b.json", 4)]
    file.delete()
    file.delete()
    assert [*lake.entries()] == []
    with pytest.raises(FileNotFoundError):
        file.read()


def test_files_and_folders_are_found_by_a_pattern_each_once(lake: Location) -> None:
    for name in ("gold/a/_delta_log/0.json", "gold/a/_delta_log/1.json", "gold/a-b/x", "silver/c/_delta_log/0.json", "other"):
        (lake / name).write(b"")
    assert sorted(folder.below(lake) for folder in lake.glob("*/*/_delta_log")) == ["gold/a/_delta_log", "silver/c/_delta_log"]
    assert sorted(file.name for file in (lake / "gold/a").glob("_delta_log/*.json")) == ["0.json", "1.json"]
    (lake / "gold/a").delete_all()
    assert sorted(folder.name for folder in lake.glob("gold/*") if folder.is_dir() and any(folder.entries())) == ["a-b"]


def test_a_write_happens_only_where_its_condition_holds(lake: Location) -> None:
    file = lake / "state.json"
    tag = file.write(b"1", Condition.ABSENT)
    with pytest.raises(ChangedError):
        file.write(b"2", Condition.ABSENT)
    following = file.write(b"3", tag)
    with pytest.raises(ChangedError):
        file.write(b"4", tag)
    assert file.read_tagged() == (b"3", following)


def test_arrow_reads_and_writes_the_same_files(lake: Location) -> None:
    with (lake / "t/x.bin").open_output() as output:
        output.write(b"0123456789")
    with (lake / "t/x.bin").open_input() as source:
        assert (source.size(), source.read_at(3, 4)) == (10, b"456")
    assert (lake / "t/x.bin").read() == b"0123456789"


@pytest.mark.parametrize("condition", [None, Condition.ABSENT, "the tag"])
def test_a_write_whose_answer_is_lost_is_known_as_done(condition: Condition | str | None, store: Store, proxy: Proxy) -> None:
    file = _in(store, proxy.endpoint) / "state.json"
    if condition == "the tag":
        condition = file.write(b"0")
    proxy.set_faults(Fault("lose", ("PUT",), "state.json", most=1))
    try:
        tag = file.write(b"mine", condition)
    finally:
        proxy.set_faults()
    assert file.read_tagged() == (b"mine", tag)


def test_of_many_that_create_a_file_at_once_one_does(store: Store) -> None:
    lake = _in(store)
    for n in range(4):
        won, start = list[int](), Barrier(6)

        def create(writer: int, n: int = n, won: list[int] = won, start: Barrier = start) -> None:
            start.wait()
            try:
                (lake / str(n)).write(f"of {writer}".encode(), Condition.ABSENT)
                won.append(writer)
            except ChangedError:
                pass

        threads = [Thread(target=create, args=(writer,)) for writer in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [f"of {writer}".encode() for writer in won] == [(lake / str(n)).read()]


def test_an_error_of_a_store_names_the_file_and_no_secret(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "wrong-4711")
    lake = Location(PurePosixPath("nowhere/lake"), ObjectStore(store.endpoint, None, "${env:KEY}", "${env:SECRET}", 4))
    with pytest.raises(OSError, match=r"s3://nowhere/lake/x") as refused:
        (lake / "x").read()
    assert "wrong-4711" not in str(refused.value)


@pytest.mark.parametrize("command", ["check", "models"])
def test_a_store_that_cannot_be_asked_is_said_with_what_to_look_at(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    conf = write_conf(tmp_path, plant="path: ./landing")
    with closing(socket()) as unheard:
        unheard.bind(("127.0.0.1", 0))
        store = f'{{endpoint: "http://127.0.0.1:{unheard.getsockname()[1]}", access_key: "${{env:KEY}}", secret_key: "${{env:SECRET}}"}}'
        (conf / "pipeline.yml").write_text(f"pipeline: plant\nlake: s3://plant/lake\nstore: {store}\npolicy: {{lateness_seconds: 600}}\n")
        exit_code(["--conf", str(conf), command])
    said = capsys.readouterr().err
    assert "tidemark: s3://plant/lake" in said
    assert ": the store cannot be asked: " in said
    assert "; look at endpoint, region and keys: in `store` of pipeline.yml" in said
