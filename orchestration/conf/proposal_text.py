"""A proposal as the six files of a conf folder, with comments that say what was found, where, and what to confirm."""

import json
import re

from orchestration.conf.diagnostic import counted, printable
from orchestration.conf.proposal import Proposal, Seen, file_name_pattern, suffix_of
from orchestration.conf.roles import Roles

PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")
NOT_TEXTS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
"""To some YAML reader or other."""
GROUP = "all"
SOURCE = "sample"


def files_of(proposal: Proposal) -> dict[str, str]:
    """Text by name of file."""
    texts = {
        "pipeline": _pipeline(proposal),
        "sources": _sources(proposal),
        "metrics": _metrics(proposal),
        "devices": _devices(proposal),
        "groups": _groups(proposal),
        "rules": _rules(),
    }
    return {f"{name}.yml": f"# yaml-language-server: $schema=schema/{name}.json\n{text}" for name, text in texts.items()}


def findings_of(proposal: Proposal) -> list[str]:
    """What was found and what to confirm, a sentence each."""
    sample, roles = proposal.sample, proposal.roles
    shape = "long rows (one measurement each)" if roles.metric else "wide rows (several measurements each)"
    found = [f"{sample.format}, {shape}" + (f", in the list {sample.each}" if sample.each else "")]
    found += sample.notes
    found += [
        f"time is {roles.time} (such as {_first(proposal, roles.time)}), read as {roles.time_format.format}",
        *_times_to_confirm(roles),
    ]
    if roles.device:
        found.append(
            f"device is {roles.device} (such as {_first(proposal, roles.device)}), {counted(len(proposal.devices), 'id')} in the sample"
        )
    else:
        found.append("no field names a device: the name of the file serves; confirm, or set a field or a constant")
    if roles.left_out:
        found.append(f"not read: {', '.join(roles.left_out)}")
    return [printable(sentence) for sentence in found]


def _first(proposal: Proposal, path: str) -> str:
    return next(str(row[path])[:60] for row in proposal.sample.rows if path in row)


def _times_to_confirm(roles: Roles) -> list[str]:
    notes = []
    if not roles.time_format.names_zone:
        notes.append("times name no zone and are taken for UTC; confirm time_zone")
    if roles.time_format.is_ambiguous:
        notes.append("day and month could change places in every time of the sample; confirm the format")
    if roles.other_times:
        notes.append(f"other fields that hold times: {', '.join(roles.other_times)}; confirm which one is the time of measurement")
    return notes


def _pipeline(proposal: Proposal) -> str:
    return f"""# Proposed from a sample: {printable(proposal.sample.file.name)}.

pipeline: tidemark # part of the transaction ids in every table: choose it once

lake: ./lake # all tables and checkpoints; relative paths start at the parent of this folder

policy:
  lateness_seconds: 600 # confirm: how far behind the newest reading may one be and still count?
  max_future_seconds: 300
  max_payload_bytes: 1048576
  unknown_device: quarantine # or `unassigned`, with a group of that name in groups.yml
  unknown_metric: quarantine
"""


def _sources(proposal: Proposal) -> str:
    sample, roles = proposal.sample, proposal.roles
    lines = [f"# {sentence}" for sentence in findings_of(proposal)]
    device = f"field: {_yaml(roles.device)}" if roles.device else f"file_name: '{file_name_pattern(sample.file)}'"
    zone = "" if roles.time_format.names_zone else ", time_zone: UTC"
    lines += ["", "sources:", f"  {SOURCE}:", "    path: ./landing # put your files here, or name the folder in which they appear"]
    gzip = ".gz" if sample.file.name.endswith(".gz") else ""
    lines += [f"    files: {json.dumps(f'*{suffix_of(sample.file)}{gzip}')}", f"    format: {sample.format}"]
    lines += _csv_settings(proposal)
    lines += [f"    each: {_yaml(sample.each)}"] if sample.each else []
    lines += [f"    device: {{{device}}}"]
    lines += [f"    zone: {{field: {_yaml(roles.zone)}}}"] if roles.zone else []
    lines += [f"    time: {{field: {_yaml(roles.time)}, format: {_yaml(roles.time_format.format)}{zone}}}"]
    return "\n".join([*lines, *_measured(proposal)]) + "\n"


def _csv_settings(proposal: Proposal) -> list[str]:
    sample = proposal.sample
    if sample.format != "csv":
        return []
    lines = [f"    header: {str(sample.has_header).lower()}"]
    if sample.columns:
        lines.append(f"    columns: [{', '.join(map(_yaml, sample.columns))}]")
    return [*lines, f"    separator: {json.dumps(sample.separator)}", f"    quote: {json.dumps(sample.quote)}"]


def _measured(proposal: Proposal) -> list[str]:
    roles = proposal.roles
    if roles.metric and roles.value:
        lines = [f"    metric: {{field: {_yaml(roles.metric)}}}", f"    value: {{field: {_yaml(roles.value)}}}"]
        return [*lines, f"    unit: {{field: {_yaml(roles.unit)}}}"] if roles.unit else lines
    fields = [f"      {_yaml(metric)}: {_yaml(roles.metrics[metric])}" for metric in proposal.metrics]
    return ["    metrics: # name of the metric: field", *fields]


def _metrics(proposal: Proposal) -> str:
    interval = proposal.interval_seconds
    why = "no two readings of one device in the sample" if interval is None else f"readings come every {interval:g} s (median)"
    lines = [f"# {why}: a window of {proposal.step_seconds} s; confirm step_seconds and aggregation of each metric.", "", "metrics:"]
    for metric, seen in proposal.metrics.items():
        lines += [f"  {_yaml(metric)}: # {counted(seen.count, 'reading')}, from {seen.minimum:g} to {seen.maximum:g}", *_unit(seen)]
        lines += ["    aggregation: average", f"    step_seconds: {proposal.step_seconds}"]
    return "\n".join(lines) + "\n"


def _unit(seen: Seen) -> list[str]:
    if not seen.units:
        return ["    # unit: confirm"]
    others = f" # also seen: {printable(', '.join(seen.units[1:]))}; write conversions for them" if seen.units[1:] else ""
    return [f"    unit: {_yaml(seen.units[0])}{others}"]


def _devices(proposal: Proposal) -> str:
    where = proposal.roles.device or "the name of the sample and of the files of its kind beside it"
    lines = [
        f"# Seen in {printable(where)}. A device that is not here is quarantined (policy in pipeline.yml);",
        "# `tidemark devices load FILE` adds many.",
    ]
    return "\n".join([*lines, "", "devices:", *(f"  {_yaml(device)}: {{groups: [{GROUP}]}}" for device in proposal.devices)]) + "\n"


def _groups(proposal: Proposal) -> str:
    metrics = ", ".join(map(_yaml, proposal.metrics))
    return f"""# One group of every device and metric; confirm, or divide it by room, machine or line.

groups:
  {GROUP}:
    metrics: [{metrics}]
    vector: {{entity: device, max_fill_seconds: {3 * proposal.step_seconds}}}
    idle_close_seconds: 900 # close the last windows when nothing new came for so long
"""


def _rules() -> str:
    return """# What must be true of a reading, beside the built-in rules; `holds` is a SQL predicate, for example:
#   value_is_not_a_fault_code: {holds: value <> -999}

rules:
"""


def _yaml(text: str | None) -> str:
    """A text as a YAML scalar on one line."""
    if text and PLAIN.fullmatch(text) and text.lower() not in NOT_TEXTS:
        return text
    return json.dumps(text, ensure_ascii=False)
