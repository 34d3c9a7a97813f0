"""The settings of silver's functions, from a conf and what the lake remembers; apart from payload_formats, which `verify` reads too."""

from functools import partial

from orchestration.conf.model import Conf
from orchestration.storage.payload_formats import FILE, payload_formats, remembered
from silver.config import SilverConfig


def silver_config(conf: Conf) -> SilverConfig:
    """Sources that are no longer in conf are read as they were declared last."""
    shapes = payload_formats(conf)
    # Workers look again in each batch: what a registry tells is kept before the events that need it are in bronze.
    reread = partial(remembered, conf.lake / FILE) if any(shape.registry for shape in shapes.values()) else None
    return SilverConfig(shapes, conf.policy, conf.metrics, conf.rules, reread)
