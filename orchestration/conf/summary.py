"""What a conf holds, in one line."""

from orchestration.conf.model import Conf
from silver.rules import rules_of


def summary(conf: Conf) -> str:
    """For `tidemark check`."""
    streams = len({group.stream for group in conf.groups.values()})
    rules = len(rules_of(conf.policy, conf.rules))
    parts = [
        counted(len(conf.sources), "source"),
        counted(len(conf.metrics), "metric"),
        counted(len(conf.devices), "device"),
        f"{counted(len(conf.groups), 'group')} in {counted(streams, 'stream')}",
        f"{counted(rules, 'rule')} ({len(conf.rules)} of your own)",
    ]
    return f"no mistakes; pipeline {conf.pipeline} with {', '.join(parts)}"


def counted(number: int, noun: str) -> str:
    """1 source, 2 sources."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
