"""Devices from a file that a person keeps: CSV with a header, or JSON lines; fields as in conf/devices.yml, one device a row."""

import csv
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from expectations.wording import quoted
from gold.windows.spec import Group
from orchestration.conf.devices import Device, Membership
from orchestration.conf.diagnostic import Diagnostic
from orchestration.conf.names import Declared, check_objects
from orchestration.conf.structure import check_structure
from orchestration.errors import ConfError

FIELDS = ("device_id", "zone", "groups", "label")
EXAMPLE = 'device_id,zone,groups,label as the first line of a CSV, or {"device_id": "oven-01", "groups": ["kitchen"]} a line'

Row = tuple[int, dict[str, Any]]
"""Line in the file, from 1, and the fields as they stand there."""


def devices_in(file: Path, groups: Mapping[str, Group] | None = None) -> list[Device]:
    """The devices of the file in its order, with the groups that name them; ConfError with a line for each mistake.

    Where `groups` are given, others are refused.
    """
    mistakes: list[str] = []
    devices: dict[str, Device] = {}
    declared = Declared({"groups": None if groups is None else dict.fromkeys(groups)})
    membership = Membership({name: group.devices for name, group in (groups or {}).items()})
    for line, fields in _rows(file, mistakes):
        device_id = fields.pop("device_id", None)
        if not isinstance(device_id, str) or device_id in devices:
            problem = "was in an earlier line already; remove one of the two" if device_id in devices else "but must be a text"
            mistakes.append(str(Diagnostic(str(file), line, f"device_id is {quoted(device_id)}, {problem}")))
            continue
        # An empty value is the same as none.
        written = {name: value for name, value in fields.items() if value not in (None, "", [])}
        checked = check_structure("devices", {"devices": {device_id: written}})
        findings = [*checked.findings, *check_objects(checked.sound, declared)]
        mistakes += [str(Diagnostic(str(file), line, finding.text)) for finding in findings]
        if not findings:
            devices[device_id] = membership.completed(checked.sound["devices"][device_id])
    if mistakes:
        raise ConfError("\n".join(mistakes))
    return list(devices.values())


def _rows(file: Path, mistakes: list[str]) -> Iterator[Row]:
    """Rows of the file, with groups as a list; what cannot be read as a row is added to the mistakes."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfError(f"{file}: cannot be read ({error.strerror}): name a file with {EXAMPLE}") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConfError(f"{file}:{line}: is not UTF-8 text: save the file as UTF-8") from error
    return _json_rows(file, text, mistakes) if text.lstrip().startswith("{") else _csv_rows(file, text, mistakes)


def _json_rows(file: Path, text: str, mistakes: list[str]) -> Iterator[Row]:
    """One object a line; empty lines are passed over."""
    for line, content in enumerate(text.split("\n"), start=1):
        if not content.strip():
            continue
        try:
            fields = json.loads(content)
        except (ValueError, RecursionError):
            mistakes.append(f"{file}:{line}: is not a JSON object on one line: write {EXAMPLE}")
            continue
        if isinstance(fields, dict):
            yield line, fields
        else:
            mistakes.append(f"{file}:{line}: is JSON, but not an object: write {EXAMPLE}")


def _csv_rows(file: Path, text: str, mistakes: list[str]) -> Iterator[Row]:
    """Comma separated, quoted as RFC 4180 says; `groups` is one cell, separated by semicolons."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = next(reader, [])
        if "device_id" not in header or len(set(header)) < len(header) or set(header) - set(FIELDS):
            mistakes.append(f"{file}:1: the first line is {','.join(header)!r}, not a header of a device list: write {EXAMPLE}")
            return
        first_line = reader.line_num + 1
        for cells in reader:
            if len(cells) == len(header):
                fields: dict[str, Any] = dict(zip(header, cells, strict=True))
                yield first_line, fields | {"groups": [name.strip() for name in fields.get("groups", "").split(";") if name.strip()]}
            elif cells:
                mistakes.append(f"{file}:{first_line}: has {len(cells)} cells under {len(header)} columns: quote a cell that holds a comma")
            first_line = reader.line_num + 1
    except csv.Error as error:
        mistakes.append(f"{file}:{reader.line_num}: is not CSV ({error}): write quotes inside a quoted cell twice")
