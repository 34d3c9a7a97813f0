"""A request for each message, with its JSON and its id as `Idempotency-Key`."""

from collections.abc import Sequence

from orchestration.conf.channel_settings import AddressSettings
from orchestration.conf.secrets import resolved
from orchestration.connectors.channels.channel import FILE, Channel, Message, RefusedError, as_json
from orchestration.connectors.http_post import PostError, post
from orchestration.errors import TidemarkError

TIMEOUT_SECONDS = 30.0


class WebhookChannel(Channel):
    def __init__(self, settings: AddressSettings) -> None:
        self._settings = settings

    def send(self, messages: Sequence[Message]) -> None:
        for message in messages:
            post_json(self._settings, "", as_json(message), {"Idempotency-Key": message.message_id})


def post_json(settings: AddressSettings, path: str, body: bytes, headers: dict[str, str]) -> None:
    """To a path below an address. Errors name no part of it: it is mostly a secret."""
    headers = {"Content-Type": "application/json", "User-Agent": "tidemark", **headers}
    if settings.token:
        headers["Authorization"] = f"Bearer {resolved(settings.token, FILE)}"
    try:
        post(resolved(settings.url, FILE).rstrip("/") + path if path else resolved(settings.url, FILE), body, headers, TIMEOUT_SECONDS)
    except PostError as error:
        raise (RefusedError if error.is_final else TidemarkError)(f"the address {error}.") from None
