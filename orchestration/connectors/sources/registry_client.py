"""A client of schema registries with Confluent's interface: schemas by the ids in payloads, as readers need them."""

import json
from collections.abc import Mapping, Sequence
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, build_opener

from orchestration.conf.avro_schemas import avro_schemas
from orchestration.conf.payload_schemas import SchemaError
from orchestration.conf.protobuf_schemas import of_texts
from orchestration.connectors.http_post import NoRedirect, basic, reason_of
from orchestration.connectors.sources.source import SourceDownError

PATIENCE_SECONDS, MAX_BYTES, MAX_REFERENCES = 10.0, 16 * 1024 * 1024, 200
NO_SUCH_SCHEMA = 40403
MAIN = "main.proto"


class RegistryClient:
    """Of one source. `named`: the address as conf has it, for messages. `credentials`: name and password, or None."""

    def __init__(self, source: str, named: str, url: str, credentials: Sequence[str] | None) -> None:
        self._source, self._named, self._url, self._open = source, named, url.rstrip("/"), build_opener(NoRedirect).open
        self._headers = {"Accept": "application/vnd.schemaregistry.v1+json"}
        if credentials:
            self._headers["Authorization"] = basic(*credentials)

    def schema(self, of: int, format: str) -> tuple[str, ...]:
        """The texts of an id, as PayloadFormat.schemas has them.

        SchemaError where the registry knows no such id, or readers could not use its schema; SourceDownError where it gives no answer.
        """
        try:
            found = self._get(f"/schemas/ids/{of}")
        except HTTPError as error:
            raise SchemaError("the registry does not know it") from error
        kind = found.get("schemaType", "AVRO")
        if kind != format.upper():
            raise SchemaError(f"it is {kind}, but the format of the source is {format}")
        needed: dict[str, str] = {}
        self._collect(found, needed)
        if format == "protobuf":
            return (of_texts(needed | {MAIN: found["schema"]}, MAIN),)
        texts = (*needed.values(), found["schema"])
        avro_schemas(texts)
        return texts

    def _collect(self, of: Mapping[str, Any], needed: dict[str, str]) -> None:
        """Schemas that one refers to, each behind those that it needs itself."""
        for reference in of.get("references") or ():
            if (name := reference["name"]) in needed:
                continue
            if len(needed) >= MAX_REFERENCES:
                raise SchemaError(f"it needs more than {MAX_REFERENCES} other schemas")
            needed[name] = ""  # a circle ends here
            try:
                found = self._get(f"/subjects/{quote(reference['subject'], safe='')}/versions/{reference['version']}")
            except HTTPError as error:
                raise SchemaError(f"the registry does not know {name}, which it needs") from error
            self._collect(found, needed)
            del needed[name]
            needed[name] = found["schema"]

    def _get(self, path: str) -> dict[str, Any]:
        """HTTPError only where there is no such thing; a wrong address says otherwise."""
        try:
            with self._open(Request(self._url + path, headers=self._headers), timeout=PATIENCE_SECONDS) as answer:
                found: dict[str, Any] = json.loads(answer.read(MAX_BYTES))
        except HTTPError as error:
            with error:
                is_unknown = error.code == 404 and _error_code(error) // 100 == NO_SUCH_SCHEMA // 100
            if is_unknown:
                raise
            hint = "; see username and password of the registry in sources.yml" if error.code in (401, 403) else ""
            raise self._down(f"it answers {error.code} to {path}{hint}") from None
        except (OSError, HTTPException, ValueError) as error:
            raise self._down(reason_of(error)) from None
        if not isinstance(found, dict) or not isinstance(found.get("schema"), str):
            raise self._down(f"its answer to {path} has no schema")
        return found

    def _down(self, reason: str) -> SourceDownError:
        return SourceDownError(f"source {self._source} cannot be read, as its registry at {self._named} tells no schemas: {reason}.")


def _error_code(error: HTTPError) -> int:
    try:
        return int(json.loads(error.read(MAX_BYTES))["error_code"])
    except (ValueError, LookupError, TypeError, OSError, HTTPException):
        return 0
