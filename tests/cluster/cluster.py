"""Machines of a cluster on an object store, which a proxy on its machine counts for."""

from contextlib import ExitStack
from pathlib import Path

from tests.cluster.machines import HEAD, Machine, joined
from tests.object_store import Store
from tests.s3_proxy import Proxy


class Cluster:
    """Two machines with workers, and two that can run Tidemark; they share a bucket of the store, and nothing else."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        head, *others = (Machine(number, folder) for number in range(HEAD, HEAD + 5))
        self.workers, self.hosts = others[:2], others[2:]
        stack.enter_context(joined(head, *others))
        (head.folder / "store").mkdir()
        self._store = stack.enter_context(Store(head.folder / "store", head.address, head.inside).running())
        self.proxy = stack.enter_context(Proxy(head.folder, self._store.endpoint, head.address, head.inside).running())
        for machine in (head, *self.workers):
            machine.start()
        self.bucket = self._store.bucket()

    def land(self, name: str, content: bytes) -> None:
        """Put an object where sources look for them."""
        self._store.put(self.bucket, {f"landing/{name}": content})
