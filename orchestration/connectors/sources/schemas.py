"""What a registry tells is in the lake before the events that need it are in bronze: so who reads these needs no registry, today or ever.

What an id means never changes. One that the registry does not know, or whose schema cannot be used, is kept as unknown, so that its events
are unreadable for every reader; a retry of the quarantine asks again.
"""

from collections.abc import Iterable
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from orchestration.conf.model import Conf
from orchestration.conf.payload_schemas import SchemaError
from orchestration.conf.secrets import resolved
from orchestration.connectors.sources.registry_client import RegistryClient
from orchestration.connectors.sources.source import Notice
from orchestration.storage.payload_formats import payload_formats, remember_schemas
from silver.registry_frames import LENGTH, schema_of
from silver.spec import PayloadFormat, Registry

MAX_ASKED = 100
"""Ids of one piece, the most frequent first: payloads that are none may hold any number."""


class Schemas:
    """Of a source with a registry."""

    def __init__(self, conf: Conf, source: str, shape: PayloadFormat, registry: Registry) -> None:
        self._conf, self._source, self._format, self._registry = conf, source, shape.format, registry
        self._known = dict(shape.schemas)
        self.notices = list[Notice]()

    @classmethod
    def of(cls, conf: Conf, source: str) -> "Schemas | None":
        """None for a source without a registry."""
        shape = payload_formats(conf).get(source)
        return cls(conf, source, shape, shape.registry) if shape and shape.registry else None

    def learn(self, payloads: pa.ChunkedArray) -> None:
        """Ask for what is not known yet, and keep it; SourceDownError where the registry gives no answer."""
        self._ask(self._unknown(payloads))

    def known(self, payloads: pa.ChunkedArray) -> dict[str, tuple[str, ...]]:
        return self._known | {of: self._told(of) for of in self._unknown(payloads)}

    def _unknown(self, payloads: pa.ChunkedArray) -> list[str]:
        frames = pc.value_counts(pc.drop_null(pc.binary_slice(payloads, 0, LENGTH)))
        by_count = frames.take(pc.sort_indices(frames.field("counts"), sort_keys=[("", "descending")])).field("values").to_pylist()
        ids = (str(number) for frame in by_count if (number := schema_of(frame)) is not None)
        return [of for of in ids if of not in self._known][:MAX_ASKED]

    def ask_again(self) -> None:
        self._ask([of for of, texts in self._known.items() if not texts])

    def _ask(self, ids: Iterable[str]) -> None:
        told = {of: self._told(of) for of in ids}
        if told:
            self._known |= told
            remember_schemas(self._conf, self._source, told)

    def _told(self, of: str) -> tuple[str, ...]:
        try:
            return self._client.schema(int(of), self._format)
        except SchemaError as error:
            facts = {"source": self._source, "schema": of, "reason": f"{error}; its events are quarantined until a retry"}
            self.notices.append(Notice("schema unknown", facts))
            return ()

    @cached_property
    def _client(self) -> RegistryClient:
        of = self._registry
        url, *credentials = (resolved(text or "") for text in (of.url, of.username, of.password))
        return RegistryClient(self._source, of.url, url, credentials if any(credentials) else None)
