"""Check section `quality` of pipeline.yml: names of tables, and where a gate can hold."""

from collections.abc import Iterator

from expectations.wording import hint, quoted
from orchestration.conf.names import Declared
from orchestration.conf.pipeline_settings import GateMode, Quality
from orchestration.conf.structure import Finding

HOLDABLE = "silver.readings"
"""The one table of which something is handed over."""
FIXED = ("bronze.events", HOLDABLE, "silver.quarantine", "silver.late", "silver.duplicates")


def check_quality(quality: Quality, declared: Declared) -> Iterator[Finding]:
    for table, mode in quality.gates.items():
        yield from _check_gate(table, mode, declared)


def _check_gate(table: str, mode: GateMode, declared: Declared) -> Iterator[Finding]:
    names = [*FIXED, *declared.of_gold]
    if table not in names and (declared.entries["groups"] is not None or not table.startswith("gold.")):
        problem = f"names {quoted(table)}, which is no table; {hint(table, names, 'they are ' + ', '.join(names))}"
        yield Finding.of(("quality", "gates"), problem, table)
    elif mode == GateMode.HOLD and table != HOLDABLE:
        problem = f"is 'hold', but only {HOLDABLE} is handed over to another layer; choose 'warn', or hold {HOLDABLE}"
        yield Finding.of(("quality", "gates", table), problem)
