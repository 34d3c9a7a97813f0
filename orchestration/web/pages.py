"""HTML by templates, in which every value is escaped."""

from datetime import UTC, datetime
from functools import cache
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined

from orchestration.rendering import lasting
from orchestration.web.spans import SPANS


def render(template: str, **values: Any) -> str:
    return _templates().get_template(template).render(**values)


@cache
def _templates() -> Environment:
    templates = Environment(loader=PackageLoader("orchestration.web"), autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    templates.globals |= {"age": age, "lasting": lasting, "spans": [*SPANS], "address": address}
    templates.filters |= {"commas": lambda number: f"{number:,}", "number": number, "at": at}
    return templates


def address(path: str, parameters: dict[str, Any] | None = None, **more: Any) -> str:
    """With these parameters; a list becomes several, and nothing is said of what is None."""
    given = {name: value for name, value in {**(parameters or {}), **more}.items() if value is not None}
    return f"{path}?{urlencode(given, doseq=True)}" if given else path


def number(value: float | None) -> str:
    """With six digits that count."""
    return "" if value is None else f"{value:.6g}"


def at(seconds: float) -> str:
    """An instant of seconds since 1970, in UTC."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}"


def age(instant: datetime | None, now: datetime) -> str:
    """How long ago, for people."""
    if instant is None:
        return "never"
    return lasting((now - instant.astimezone(UTC)).total_seconds())
