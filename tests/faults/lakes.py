"""Plants whose lake is in a store behind a proxy, what the proxy does to them, and what is in the store."""

import re
from collections import Counter

from tests.chaos.plants import Plant
from tests.s3_proxy import Fault, Proxy

TAKEN_OVER = "took over the lease"
LOSES = (Fault("lose", every=20), Fault("refuse", every=31), Fault("cut", ["PUT"], every=23))
"""One answer in 20, and more that does not go well."""
SAME_WHOEVER_WRITES = re.compile(r"/state/|\.crc$")
"""The state after a batch whose plan is logged, and what a version of a table holds: a late writer may write them again."""


def harm(proxy: Proxy) -> Counter[str]:
    """Count by kind what was done to requests that have ended."""
    return Counter(done for request in proxy.requests() for done in request.done_to_it)


def lake_content(plant: Plant) -> dict[str, str]:
    """Objects and their tags."""
    lake = plant.opened().conf.lake
    return {str(entry.path.relative_to(lake.path)): entry.tag for entry in lake.store.entries(lake.path)}


def assert_nothing_written_since(before: dict[str, str], plant: Plant) -> None:
    content = lake_content(plant)
    changed = {name for name in before.keys() | content.keys() if before.get(name) != content.get(name)}
    written = sorted(name for name in changed if not SAME_WHOEVER_WRITES.search(f"/{name}"))
    assert not written, written
