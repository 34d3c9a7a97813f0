"""A copy of a lake tells the same times: they come from what its files hold, and not from when they were written."""

import os
from pathlib import Path

import pytest
from starlette.datastructures import QueryParams

from orchestration.conf.load import load
from orchestration.conf.model import Conf
from orchestration.connectors.outages import answers_since
from orchestration.utc import EPOCH
from orchestration.web.last_hour import LastHour
from orchestration.web.overview import Overview, overview
from orchestration.web.queries import Queries, ViewRequest
from tests.built import copy_of
from tests.commands import Tidemark
from tests.rows import at

NOW = at("2999-01-01")
FLOWS = {"bronze.events", "silver.readings", "silver.ledger", "gold.kitchen", "gold.attic", "gold.flows"}
pytestmark = pytest.mark.lakes


def shown(conf: Conf) -> Overview:
    return overview(ViewRequest(conf, NOW, QueryParams(), Queries(conf)), LastHour())


def test_a_lake_tells_the_same_times_whatever_times_its_files_have(tmp_path: Path, tidemark: Tidemark) -> None:
    conf = load(copy_of("views", tmp_path) / "conf")
    commands = [("--conf", conf.folder, *words, "--format", "json") for words in (("status",), ("status", "sources"), ("ledger",))]
    answered, before, printed = answers_since(conf.lake, "source", "plant"), shown(conf), [tidemark(*words) for words in commands]
    for file in conf.lake.local.rglob("*"):
        os.utime(file, (0, 0))
    assert (answers_since(conf.lake, "source", "plant"), shown(conf), [tidemark(*words) for words in commands]) == (
        answered,
        before,
        printed,
    )
    assert answered is not None
    assert {node.name for node in before.nodes if node.last_at and node.last_at > EPOCH} >= FLOWS
