"""The same lines brought to a lake in so many runs, for what must not depend on it."""

import random
from collections.abc import Sequence
from datetime import datetime, timedelta

from pyspark.sql import SparkSession

from orchestration.conf.model import Conf
from tests.lakes import event, land, run


def run_in_cuts(made: Conf, lines: Sequence[str], cuts: int, start: datetime, spark: SparkSession, odd: Sequence[str] = ()) -> Conf:  # noqa: PLR0917
    """Run by run over a file each, with its lines in disorder, a duplicate, `odd` ones, and but for the first file a line that is late."""
    chance, size = random.Random(cuts), -(-len(lines) // cuts)
    for number, begin in enumerate(range(0, len(lines), size)):
        part = [*lines[begin : begin + size]]
        chance.shuffle(part)
        late = [event("oven", "power", 9, start - timedelta(hours=1))] if number else []
        land(made.folder, f"{number}.json", [*part, part[0], *odd, *late])
        run(made, spark)
    return made
