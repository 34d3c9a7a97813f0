"""A request for each message, with its JSON and its id as `Idempotency-Key`."""

from collections.abc import Sequence

from orchestration.conf.channel_settings import AddressSettings
from orchestration.connectors.channels.channel import FILE, Channel, Message, RefusedError, as_json
from orchestration.connectors.http_client import PostError, post_json
from orchestration.errors import DownError
from orchestration.secrets import resolved

TIMEOUT_SECONDS = 15.0


class WebhookChannel(Channel):
    def __init__(self, settings: AddressSettings) -> None:
        self._settings = settings

    def send(self, messages: Sequence[Message]) -> None:
        for message in messages:
            send_json(self._settings, "", as_json(message), {"Idempotency-Key": message.message_id})


def send_json(settings: AddressSettings, path: str, body: bytes, headers: dict[str, str]) -> None:
    """To a path below an address. Errors name no part of it: it is mostly a secret."""
    token, url = settings.token and resolved(settings.token, FILE), resolved(settings.url, FILE)
    try:
        post_json(url.rstrip("/") + path if path else url, body, TIMEOUT_SECONDS, token, headers)
    except PostError as error:
        what = f"the address {error}."
        raise (RefusedError(what) if error.is_final else DownError(what, error.retry_after)) from None
