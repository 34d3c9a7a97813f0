"""Enrichment of a few measurements at once: what enrich.py says in SQL, with the versions of devices that count now, without a join.

For alerts that are told within milliseconds: three joins of 50 rows take DuckDB 3 ms, this takes a fifth of that (measured).
"""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from silver.enrich import Catalogue
from silver.spec import UNASSIGNED_GROUP, Policy, Unknown


class Lookup:
    """`devices`: rows of silver.devices, one a device: the version that counts for what is ingested now."""

    def __init__(self, catalogue: Catalogue, devices: pa.Table, policy: Policy) -> None:
        self._policy, self._devices = policy, devices.combine_chunks()
        self._metrics, self._conversions = (table.combine_chunks() for table in catalogue)
        self._at_metric = _places(self._metrics, "metric")
        self._at_conversion = _places(self._conversions, "metric", "unit")
        self._at_device = _places(self._devices, "device_id")

    def enriched(self, measured: pa.Table) -> pa.Table:
        """MEASURED with all that rules ask for: `value`, `unit`, `zone`, `groups`, and what is known of metric, unit and device."""
        of_metric = _taken(self._metrics, self._at_metric, measured, "metric")
        of_unit = _taken(self._conversions, self._at_conversion, measured, "metric", "unit_text")
        of_device = _taken(self._devices, self._at_device, measured, "device_id")
        number, unit_text = measured["number"], measured["unit_text"]
        is_its_unit = pc.fill_null(pc.or_kleene(pc.is_null(unit_text), pc.equal(unit_text, of_metric["unit"])), False)
        is_its_unit = pc.or_(is_its_unit, pc.is_null(of_metric["unit"]))
        is_metric_known, is_device_known = pc.is_valid(of_metric["metric"]), pc.fill_null(of_device["is_known"], False)
        is_assigned = is_device_known
        if self._policy.unknown_metric is not Unknown.QUARANTINE:
            is_assigned = pc.and_(is_assigned, is_metric_known)
        more = {
            "value": pc.if_else(is_its_unit, number, pc.add(pc.multiply(number, of_unit["multiply"]), of_unit["add"])),
            "is_metric_known": is_metric_known,
            "is_unit_known": pc.or_(is_its_unit, pc.is_valid(of_unit["metric"])),
            "is_device_known": is_device_known,
            "zone": pc.coalesce(measured["zone_text"], pc.if_else(is_device_known, of_device["zone"], None)),
            "groups": pc.if_else(is_assigned, of_device["groups"], pa.scalar([UNASSIGNED_GROUP], pa.list_(pa.string()))),
            **{name: of_metric[name] for name in ("minimum", "maximum", "unit", "aggregation", "step_seconds")},
        }
        for name, column in more.items():
            measured = measured.append_column(name, column)
        return measured


def _places(table: pa.Table, *keys: str) -> dict[tuple[Any, ...], int]:
    return {key: row for row, key in enumerate(_keys(table, keys))}


def _taken(table: pa.Table, places: dict[tuple[Any, ...], int], measured: pa.Table, *keys: str) -> pa.Table:
    """The row of the table for each measurement; nulls where there is none."""
    return table.take(pa.array([places.get(key) for key in _keys(measured, keys)], pa.int64()))


def _keys(table: pa.Table, names: Sequence[str]) -> list[tuple[Any, ...]]:
    return list(zip(*(table[name].to_pylist() for name in names), strict=True))
