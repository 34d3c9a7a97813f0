"""A schema registry with the interface of Confluent's: a schema gets a number, which each message carries."""

import json
from urllib.parse import quote

from orchestration.conf.secrets import resolved
from orchestration.conf.transport_settings import RegistrySettings
from orchestration.connectors.http_client import PostError, basic, post
from orchestration.connectors.sinks.sink import FILE
from orchestration.errors import TidemarkError
from silver.binary_rows import registry_frame

CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
TIMEOUT_SECONDS = 10.0


def registered(settings: RegistrySettings, subject: str, schema: str) -> bytes:
    """Return the prefix of each value, and register the schema if the registry lacks it. TidemarkError without the address or a secret."""
    headers = {"Content-Type": CONTENT_TYPE, "Accept": CONTENT_TYPE}
    if settings.password:
        headers["Authorization"] = basic(resolved(settings.username or "", FILE), resolved(settings.password, FILE))
    url = f"{resolved(settings.url, FILE).rstrip('/')}/subjects/{quote(subject, safe='')}/versions"
    try:
        answer = post(url, json.dumps({"schema": schema}).encode(), headers, TIMEOUT_SECONDS)
        return registry_frame(int(json.loads(answer)["id"]))
    except PostError as error:
        raise TidemarkError(f"the schema registry {error} for subject {subject}.") from None
    except (ValueError, KeyError, TypeError):
        raise TidemarkError(f"the schema registry gave no answer that it should for subject {subject}.") from None
