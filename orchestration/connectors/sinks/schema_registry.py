"""A schema registry with the interface of Confluent's: a schema gets a number, which each message carries."""

import json
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.parse import quote

from orchestration.conf.secrets import resolved
from orchestration.conf.transport_settings import RegistrySettings
from orchestration.connectors.http_post import basic, post
from orchestration.connectors.sinks.sink import FILE
from orchestration.errors import TidemarkError

MAGIC = b"\x00"
CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
TIMEOUT_SECONDS = 10.0


def registered(settings: RegistrySettings, subject: str, schema: str) -> bytes:
    """What stands before each value; the schema is registered where it is not yet. TidemarkError without the address or a secret."""
    headers = {"Content-Type": CONTENT_TYPE, "Accept": CONTENT_TYPE}
    if settings.password:
        headers["Authorization"] = basic(resolved(settings.username or "", FILE), resolved(settings.password, FILE))
    url = f"{resolved(settings.url, FILE).rstrip('/')}/subjects/{quote(subject, safe='')}/versions"
    try:
        answer = post(url, json.dumps({"schema": schema}).encode(), headers, TIMEOUT_SECONDS)
        return MAGIC + int(json.loads(answer)["id"]).to_bytes(4, "big")
    except HTTPError as error:
        error.close()
        raise TidemarkError(f"the schema registry answered {error.code} for subject {subject}.") from None
    except (OSError, HTTPException, ValueError, KeyError, TypeError):
        raise TidemarkError("the schema registry was not reached, or gave no answer that it should.") from None
