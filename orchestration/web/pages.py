"""HTML by templates, in which every value is escaped."""

from datetime import UTC, datetime
from functools import cache
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined

from expectations.wording import counted
from orchestration.rendering import lasting
from orchestration.web.spans import SPANS

DAY = 86_400


def render(template: str, **values: Any) -> str:
    return _templates().get_template(template).render(**values)


@cache
def _templates() -> Environment:
    templates = Environment(loader=PackageLoader("orchestration.web"), autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    templates.globals |= {"age": age, "lasting": lasting, "spans": [*SPANS], "address": address}
    templates.filters |= {"commas": lambda number: f"{number:,}", "counted": counted, "number": number, "at": at}
    return templates


def address(path: str, parameters: dict[str, Any] | None = None, **more: Any) -> str:
    """With these parameters; a list becomes several, and nothing is said of what is None."""
    given = {name: value for name, value in {**(parameters or {}), **more}.items() if value is not None}
    return f"{path}?{urlencode(given, doseq=True)}" if given else path


def number(value: float | None) -> str:
    """Round to what matters: four digits, and all of those before the point."""
    if value is None:
        return ""
    return f"{value:,.0f}" if 1_000 <= abs(value) < 1e12 else f"{value:.4g}"


def at(seconds: float) -> datetime:
    """Return the instant of seconds since 1970, in UTC."""
    return datetime.fromtimestamp(seconds, UTC)


def age(instant: datetime, now: datetime) -> str:
    """Say how long ago it was, in one unit; a day ago and more, or yet to come, the instant itself."""
    seconds = (now - instant).total_seconds()
    if not 0 <= seconds < DAY:
        return f"{instant:%Y-%m-%d %H:%M:%S}"
    size, unit = next((size, unit) for size, unit in ((3_600, "h"), (60, "min"), (1, "s")) if seconds >= size or size == 1)
    return f"{seconds // size:.0f} {unit} ago"
