"""What conf says about the silver layer as a whole."""

from collections.abc import Mapping
from dataclasses import dataclass

from expectations.rule import Rule
from silver.spec import PayloadFormat, Policy


@dataclass(frozen=True)
class SilverConfig:
    """`shapes` is by name of source; `rules` are those of conf/rules.yml."""

    shapes: Mapping[str, PayloadFormat]
    policy: Policy
    rules: tuple[Rule, ...] = ()
