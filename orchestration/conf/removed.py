"""Settings of earlier versions: what to write instead."""

import json
from typing import Any

from expectations.settings import Step

EVERY_NIGHT = "15 3 * * *"


def instead_of(path: tuple[Step, ...], value: Any) -> str | None:
    """The way out for a setting that was removed, as the second half of a sentence; None for any other path."""
    match path:
        case "quality", "schedule" | "schedules":
            crons = [value] if isinstance(value, str) else [*value.values()] if isinstance(value, dict) else []
            cron = next((cron for cron in crons if isinstance(cron, str)), EVERY_NIGHT)
            block = f"schedules: {{quality: {{cron: {json.dumps(cron)}, command: quality}}}}"
            use = f"`tidemark up` checks all suites with `{block}` at the top of pipeline.yml"
        case "quality", "webhook":
            block = 'channels: {quality: {webhook: {url: "${env:QUALITY_URL}"}}}'
            use = f"a channel is notified with `{block}` in alerts.yml and `channels: [quality]` here"
        case _:
            return None
    return f"was removed; {use if value else 'take the line out'}"
