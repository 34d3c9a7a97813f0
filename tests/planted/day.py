"""A small lake whose protections are switched off: what comes to it in two runs, and what verify and the ledger say of it then."""

import json
from dataclasses import dataclass
from datetime import timedelta

from pyspark.sql import SparkSession

from orchestration.audit.reconciliation import account, discrepancies
from orchestration.audit.verify import lake_snapshot
from orchestration.audit.verify.check import verify
from orchestration.conf.model import Conf
from orchestration.engine.lake import Lake
from tests.lakes import event, land, minutes, run
from tests.rows import at

START = at("2026-01-05T00:00:00")


@dataclass(frozen=True)
class Day:
    """A small lake: what a test lands, runs and asks."""

    made: Conf
    spark: SparkSession

    def first(self) -> None:
        """Readings, a gap that no vector may be filled across, and rows that silver keeps out of the readings.

        These are a duplicate, a contradiction, an unreadable row, one of 1971, one of 2099, two without a device, and one that measures
        nothing.
        """
        oven = [event("oven", "temperature", n, time) for n, time in enumerate(minutes(START, 60))]
        # At 02:40 the power of 01:00 is too old for the vector.
        oven.append(event("oven", "temperature", 5, START + timedelta(hours=2, minutes=35)))
        power = [event("oven", "power", n, time) for n, time in enumerate([START, START + timedelta(hours=3)])]
        # Not of 1970, where the watermark of a stream begins.
        clocks = [event("oven", "temperature", 9, at(f"{year}-01-01T00:00:00")) for year in (1971, 2099)]
        contradiction = event("oven", "temperature", 77, START + timedelta(minutes=5))
        pressed = json.dumps({"device": "oven", "button": "on", "ts": START.isoformat()})
        odd = ["{broken", *clocks, oven[3], contradiction, pressed]
        nameless = [line.replace('"device": "oven", ', "") for line in oven[:2]]
        land(self.made.folder, "1.json", [*oven, *power, *odd, *nameless])
        run(self.made, self.spark)

    def second(self, *more: str) -> None:
        """A late row, and newer ones."""
        late = event("oven", "temperature", 1000, START + timedelta(minutes=15, seconds=1))
        newer = [event("oven", "temperature", n, time) for n, time in enumerate(minutes(START + timedelta(hours=4), 30))]
        land(self.made.folder, "2.json", [late, *newer, *more])
        run(self.made, self.spark)

    def wrong(self) -> list[str]:
        """What verify and the ledger name."""
        report = verify(lake_snapshot.latest_snapshot(self.made), self.made)
        found = [f"{outcome.table}: {difference.what}" for outcome in report.outcomes for difference in outcome.first]
        tables = account.open_tables(Lake(self.made))
        shapes = {name: source.payload_format for name, source in self.made.sources.items()}
        rows = discrepancies.discrepancies(tables, account.account(tables), shapes)
        return found + [f"ledger: {row['wrong']}" for row in rows]
