"""What a run asks a store for when nothing has come: stores bill each request."""

import io
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from orchestration.engine.lake import Lake
from orchestration.engine.progress import Progress
from orchestration.flows import flows
from orchestration.location import lake_at
from orchestration.storage.lease import sole_writer
from orchestration.stores.object_store import ObjectStore
from orchestration.supervisor import pipeline_run
from orchestration.supervisor.pipeline_run import PipelineRun
from tests.lakes import conf
from tests.object_store import Store
from tests.s3_proxy import Proxy
from tests.store_lakes import ENVIRONMENT


def test_a_cycle_with_nothing_new_asks_a_store_thirty_times_at_most(
    store: Store, proxy: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (ENVIRONMENT | {"XDG_STATE_HOME": str(tmp_path / "state")}).items():
        monkeypatch.setenv(name, value)
    for name in ("PAUSE_SECONDS", "LOOK_SECONDS"):
        monkeypatch.setattr(pipeline_run, name, 0.0)
    bucket = lake_at(f"s3://{store.bucket()}/lake", ObjectStore(proxy.endpoint, None, "${env:STORE_KEY}", "${env:STORE_SECRET}"))
    with sole_writer(bucket):
        lake = Lake(replace(conf(tmp_path), lake=bucket))
        chosen = flows(lake)
        with Progress([flow.name for flow in chosen], Console(file=io.StringIO())) as progress:
            run = PipelineRun(lake, chosen, progress, threading.Event())
            run.prepare()
            run.gold_cycle()
            proxy.forget()
            for _ in range(3):
                run.gold_cycle()
            asked = [request for request in proxy.requests() if not request.key.endswith("writer.json")]
    assert len(asked) <= 3 * 30, asked
