"""Schemas of a registry, stored in the lake before the events that need them are in bronze: reading these needs no registry, today or
ever.

An id never changes its meaning. An id that the registry does not know, or whose schema cannot be used, is stored as unknown, so that its
events are unreadable for every reader; a retry of the quarantine asks again.
"""

from collections.abc import Iterable
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from orchestration.conf.model import Conf
from orchestration.conf.schema_members import SchemaError
from orchestration.conf.secrets import resolved
from orchestration.connectors.sources.registry_client import RegistryClient
from orchestration.connectors.sources.source import Notice
from orchestration.storage.payload_formats import payload_formats, remember_schemas
from silver.binary_rows import FRAME_LENGTH, schema_in_frame
from silver.spec import PayloadFormat, Registry

MAX_ASKED = 100
"""Ids of one piece, the most frequent first: payloads that are none may hold any number."""


class Schemas:
    """The schemas of one source with a registry."""

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
        return self._known | {number: self._texts(number) for number in self._unknown(payloads)}

    def _unknown(self, payloads: pa.ChunkedArray) -> list[str]:
        frames = pc.value_counts(pc.drop_null(pc.binary_slice(payloads, 0, FRAME_LENGTH)))
        by_count = frames.take(pc.sort_indices(frames.field("counts"), sort_keys=[("", "descending")])).field("values").to_pylist()
        ids = (str(schema) for frame in by_count if (schema := schema_in_frame(frame)) is not None)
        return [number for number in ids if number not in self._known][:MAX_ASKED]

    def ask_again(self) -> None:
        self._ask([number for number, texts in self._known.items() if not texts])

    def _ask(self, ids: Iterable[str]) -> None:
        answers = {number: self._texts(number) for number in ids}
        if answers:
            self._known |= answers
            remember_schemas(self._conf, self._source, answers)

    def _texts(self, number: str) -> tuple[str, ...]:
        try:
            return self._client.schema(int(number), self._format)
        except SchemaError as error:
            facts = {"source": self._source, "schema": number, "reason": f"{error}; its events are quarantined until a retry"}
            self.notices.append(Notice("schema unknown", facts))
            return ()

    @cached_property
    def _client(self) -> RegistryClient:
        registry = self._registry
        url, *credentials = (resolved(text or "") for text in (registry.url, registry.username, registry.password))
        return RegistryClient(self._source, registry.url, url, credentials if any(credentials) else None)
