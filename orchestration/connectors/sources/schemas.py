"""Schemas of a registry with Confluent's interface, stored in the lake before the events that need them are in bronze: reading these needs
no registry, today or ever.

An id never changes its meaning. An id that the registry does not know, or whose schema cannot be used, is stored as unknown, so that its
events are unreadable for every reader; a retry of the quarantine asks again.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from orchestration.conf.avro_schemas import avro_schemas
from orchestration.conf.model import Conf
from orchestration.conf.protobuf_schemas import of_texts
from orchestration.conf.schema_members import SchemaError
from orchestration.connectors.http_client import NoAnswerError, ask, basic
from orchestration.connectors.sources.source import Notice, SourceDownError
from orchestration.secrets import resolved
from orchestration.storage.payload_formats import payload_formats, remember_schemas
from silver.decoders.confluent import FRAME_LENGTH, schema_in_frame
from silver.spec import PayloadFormat, Registry

MAX_ASKED = 100  # ids of one piece, the most frequent first: payloads that are none may hold any number
PATIENCE_SECONDS, MAX_BYTES, MAX_REFERENCES = 10.0, 16 * 1024 * 1024, 200
NO_SUCH_SCHEMA = 40403
MAIN = "main.proto"


class Schemas:
    def __init__(self, conf: Conf, source: str, shape: PayloadFormat, registry: Registry) -> None:
        self._conf, self._source, self._format, self._registry = conf, source, shape.written_in, registry
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
    def _client(self) -> "RegistryClient":
        registry = self._registry
        url, *credentials = (resolved(text or "") for text in (registry.url, registry.username, registry.password))
        return RegistryClient(self._source, registry.url, url, credentials if any(credentials) else None)


class _UnknownError(Exception):
    """The registry has no such thing."""


class RegistryClient:
    """A client for one source. `named`: the address as conf has it, for messages. `credentials`: name and password, or None."""

    def __init__(self, source: str, named: str, url: str, credentials: Sequence[str] | None) -> None:
        self._source, self._named, self._url = source, named, url.rstrip("/")
        self._headers = {"Accept": "application/vnd.schemaregistry.v1+json"}
        if credentials:
            self._headers["Authorization"] = basic(*credentials)

    def schema(self, number: int, format: str) -> tuple[str, ...]:
        """The texts of an id, as PayloadFormat.schemas has them.

        SchemaError where the registry knows no such id, or readers could not use its schema; SourceDownError where it gives no answer.
        """
        try:
            schema = self._get(f"/schemas/ids/{number}")
        except _UnknownError:
            raise SchemaError("the registry does not know it") from None
        kind = schema.get("schemaType", "AVRO")
        if kind != format.upper():
            raise SchemaError(f"it is {kind}, but the format of the source is {format}")
        needed: dict[str, str] = {}
        self._collect(schema, needed)
        if format == "protobuf":
            return (of_texts(needed | {MAIN: schema["schema"]}, MAIN),)
        texts = (*needed.values(), schema["schema"])
        avro_schemas(texts)
        return texts

    def _collect(self, schema: Mapping[str, Any], needed: dict[str, str]) -> None:
        """Schemas that one refers to, each behind those that it needs itself."""
        for reference in schema.get("references") or ():
            if (name := reference["name"]) in needed:
                continue
            if len(needed) >= MAX_REFERENCES:
                raise SchemaError(f"it needs more than {MAX_REFERENCES} other schemas")
            needed[name] = ""  # a circle ends here
            try:
                referred = self._get(f"/subjects/{quote(reference['subject'], safe='')}/versions/{reference['version']}")
            except _UnknownError:
                raise SchemaError(f"the registry does not know {name}, which it needs") from None
            self._collect(referred, needed)
            del needed[name]
            needed[name] = referred["schema"]

    def _get(self, path: str) -> dict[str, Any]:
        """_UnknownError only where there is no such thing; a wrong address says otherwise."""
        try:
            answer = ask("GET", self._url + path, self._headers, PATIENCE_SECONDS, most=MAX_BYTES)
            if answer.status == 404 and _error_code(answer.content) // 100 == NO_SUCH_SCHEMA // 100:
                raise _UnknownError
            if answer.status // 100 != 2:
                hint = "; see username and password of the registry in sources.yml" if answer.status in (401, 403) else ""
                raise self._down(f"it answers {answer.status} to {path}{hint}")
            schema: dict[str, Any] = json.loads(answer.content)
        except NoAnswerError as error:
            raise self._down(str(error)) from None
        except ValueError as error:
            raise self._down(type(error).__name__) from None
        if not isinstance(schema, dict) or not isinstance(schema.get("schema"), str):
            raise self._down(f"its answer to {path} has no schema")
        return schema

    def _down(self, reason: str) -> SourceDownError:
        return SourceDownError(f"source {self._source} cannot be read, as its registry at {self._named} tells no schemas: {reason}.")


def _error_code(content: bytes) -> int:
    try:
        return int(json.loads(content)["error_code"])
    except (ValueError, LookupError, TypeError):
        return 0
