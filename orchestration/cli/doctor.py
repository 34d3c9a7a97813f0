"""`tidemark doctor`: what is wrong, and the command that fixes it."""

from dataclasses import asdict
from typing import Any

import click

from orchestration.rendering import format_option, show


@click.command(epilog="Example: tidemark doctor")
@format_option
@click.pass_obj
def command(obj: dict[str, Any], format: str) -> int:
    """Check Java, memory, disk, ports, the conf, the lake, and whether sources and sinks can be reached. Nothing is written.

    Each line says what was checked, whether it is good, and the command that fixes it. Exit code 1: something is bad.
    """
    from orchestration.service.doctor import examine

    findings = [*examine(obj["conf"])]
    show([asdict(finding) for finding in findings], format)
    return int(any(finding.verdict == "bad" for finding in findings))
