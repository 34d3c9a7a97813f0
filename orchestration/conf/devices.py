"""Devices of devices.yml, and the groups that each belongs to: those that it names itself, and those that name it by a pattern."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from pydantic import Field
from pydantic.dataclasses import dataclass

from expectations.settings import EntryName, GroupName, OrAbsent, Setting, Text, Unique
from orchestration.conf.values import Instant

WILDCARD = re.compile(r"[*?[]")


@dataclass(frozen=True)
class Device(Setting):
    """One device."""

    device_id: EntryName
    groups: Unique[GroupName] = Field(default=(), examples=[["kitchen", "building"]])
    """Groups of groups.yml that the device belongs to."""
    zone: OrAbsent[Text] = Field(default=None, examples=["hall-1"])
    """The zone that it stands in; used where the event does not say."""
    label: OrAbsent[Text] = Field(default=None, examples=["Deck oven, left"])
    """For people."""
    since: OrAbsent[Instant] = Field(default=None, examples=["2026-05-01T06:00Z"])
    """When the device moved to these groups and this zone: they count for what was measured then and later, before that those that were
    recorded. Absent: a replay counts all that the device ever sent in them."""


class Membership:
    """Groups with the patterns of their devices: `*` stands for any text, `?` for a character, `[ab]` for one of these."""

    def __init__(self, patterns: Mapping[str, Sequence[str]]) -> None:
        """Arrange patterns by how they begin: thousands of groups are not looked through for each device."""
        self._begins: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        for group, of_group in patterns.items():
            for pattern in of_group:
                self._begins[WILDCARD.split(pattern, maxsplit=1)[0]].append((pattern, group))
        self._lengths = {len(begin) for begin in self._begins}
        self._order = {group: number for number, group in enumerate(patterns)}

    def groups_of(self, device_id: str, named: Sequence[str]) -> tuple[str, ...]:
        """List the groups that the device names, then the others in their order."""
        begins = (device_id[:length] for length in self._lengths if length <= len(device_id))
        groups = {group for begin in begins for pattern, group in self._begins.get(begin, ()) if fnmatchcase(device_id, pattern)}
        return (*named, *sorted(groups.difference(named), key=self._order.__getitem__))

    def completed(self, device: Device) -> Device:
        """The device with all its groups."""
        groups = self.groups_of(device.device_id, device.groups)
        return device if groups == device.groups else replace(device, groups=groups)
