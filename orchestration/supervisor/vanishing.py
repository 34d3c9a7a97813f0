"""Windows of gold that a replay would not make again, because the conf no longer has their group, or their metric in that group."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from gold.windows.spec import Group
from orchestration.conf.model import Conf
from orchestration.errors import ConfError
from orchestration.serving.sql.answer import Limits, Question
from orchestration.serving.sql.duckdb_engine import DuckDbEngine
from orchestration.storage.sealing import sealed_tables
from orchestration.storage.seals import damages
from orchestration.storage.snapshots import find_snapshot
from orchestration.storage.tables import LakeStore
from orchestration.storage.views import views
from orchestration.utc import to_iso

SHOWN = """
select device_group, metric, count(*) as windows, min(window_start) as first_at, max(window_end) as last_at
from gold.aggregates group by all order by all
"""


@dataclass(frozen=True)
class Vanishing:
    """All windows that readers see of one metric in one group. `first_at`, `last_at`: start of the first and end of the last, UTC."""

    device_group: str
    metric: str
    windows: int
    first_at: datetime
    last_at: datetime

    def __str__(self) -> str:
        return f"{self.device_group}, {self.metric}: {self.windows:,} windows from {to_iso(self.first_at)} to {to_iso(self.last_at)}"


def vanishing_windows(conf: Conf, replayed: Sequence[Group]) -> list[Vanishing]:
    """Compare what readers see in gold.aggregates with what a replay of these groups makes.

    Readings of the past keep the groups that their devices had when they came. So the windows of a group that has left the conf are made by
    no replay, and those that its devices have in other groups begin when these were declared. A damaged table has none: a replay is its way
    out.
    """
    tables = sealed_tables(LakeStore(conf)).items()  # a stream that was replayed alone has a table of its own
    if any(name.startswith("gold.aggregates") and damages(path) for name, path in tables):
        return []
    if "gold.aggregates" not in views(conf, find_snapshot(conf.lake), SHOWN):
        return []
    metrics = {group.name: group.metrics for group in replayed}
    shown = DuckDbEngine(conf, Limits()).ask(Question(SHOWN)).rows.to_pylist()
    return [
        Vanishing(**row)
        for row in shown
        if row["device_group"] not in conf.groups or row["metric"] not in metrics.get(row["device_group"], (row["metric"],))
    ]


def refusal(vanishing: Sequence[Vanishing]) -> ConfError:
    """Say which windows would be gone, and what to do."""
    return ConfError(
        f"this replay would take windows out of gold that the conf no longer asks for:{_listed(vanishing)}\n"
        "  Declare the group or its metric again in groups.yml, or take them out with `tidemark replay --yes`."
    )


def farewell(vanishing: Sequence[Vanishing]) -> str:
    """Say behind a replay which windows are gone; nothing where all are there."""
    return f"; these windows are not in it, and `tidemark rollback` brings them back:{_listed(vanishing)}" if vanishing else ""


def _listed(vanishing: Sequence[Vanishing]) -> str:
    return "".join(f"\n  {row}" for row in vanishing)
