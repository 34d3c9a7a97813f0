"""What conf says about the silver layer as a whole."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from expectations.rule import Rule
from silver.spec import PayloadFormat, Policy


@dataclass(frozen=True)
class SilverConfig:
    """`shapes` is by name of source; `rules` are those of conf/rules.yml.

    `latest`: the shapes as they are when events are read, where a registry tells schemas while a stream runs; else None.
    """

    shapes: Mapping[str, PayloadFormat]
    policy: Policy
    rules: tuple[Rule, ...] = ()
    latest: Callable[[], Mapping[str, PayloadFormat]] | None = None
