"""Ids that hold a device and a metric, such as `Line1.Press01.OilTemp`: two columns in the place of one."""

import re
from dataclasses import replace

from orchestration.conf.roles import Roles
from orchestration.conf.sample import Sample
from orchestration.conf.vocabulary import UNKNOWN, last, rank, snake


def with_parted_names(sample: Sample, roles: Roles) -> tuple[Sample, Roles]:
    """The sample and its roles with the device out of the id that names the metric, where no field names one."""
    path = roles.metric
    if path is None or roles.device or (rank(path, "device") == UNKNOWN and "tag" not in snake(last(path))):
        return sample, roles
    texts = {str(row[path]).strip() for row in sample.rows if path in row}
    mark = next((mark for mark in "./" if all(re.search(rf"[^{mark}][{mark}][^{mark}]+$", text) for text in texts)), None)
    if mark is None:
        return sample, roles
    metric, device = f"([^{mark}]+)$", f"([^{mark}]+)[{mark}][^{mark}]+$"
    above = {text: text.rpartition(mark)[0] for text in texts}
    if len({name.rpartition(mark)[2] for name in above.values()}) < len(set(above.values())):  # two lines have a press of that name
        device = f"^(.+)[{mark}][^{mark}]+$"
    parts = {text: [match[1] for pattern in (device, metric) if (match := re.search(pattern, text))] for text in texts}
    name = f"part of {path}"
    rows = [row | dict(zip((name, path), parts[str(row[path]).strip()], strict=True)) if path in row else row for row in sample.rows]
    return replace(sample, rows=rows, parted=(device, metric)), replace(roles, device=name)
