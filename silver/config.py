"""The settings of the silver layer as a whole."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from expectations.rule import Rule
from silver.policy import Policy
from silver.spec import Metric, PayloadFormat


@dataclass(frozen=True)
class SilverConfig:
    """`shapes` is by name of source, `metrics` the catalogue by name; `rules` are those of conf/rules.yml.

    `load_registry_formats`: the shapes of sources with the schemas of their registries; asked for each batch, as ids come up while a stream
    runs.
    """

    shapes: Mapping[str, PayloadFormat]
    policy: Policy
    metrics: Mapping[str, Metric]
    rules: tuple[Rule, ...] = ()
    load_registry_formats: Callable[[], Mapping[str, PayloadFormat]] | None = None
