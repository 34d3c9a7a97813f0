"""Messages about what is wrong, to channels with `problems: true`: by a process of its own, as a run that is gone tells nothing."""

import hashlib
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime

from gold.alerts.messages import Change
from gold.alerts.spec import NoticePolicy
from gold.alerts.states import FIRING, NORMAL
from orchestration.alerts.delivery import Topics
from orchestration.alerts.notifications import state_file
from orchestration.alerts.stages import EntityState
from orchestration.conf.model import Conf
from orchestration.connectors.outages import Kind
from orchestration.engine.progress import Progress
from orchestration.supervisor.health import Problem, Severity, problems
from orchestration.supervisor.sinks import ChannelSender

VIEWS = ("overview", "alerts", "devices", "batches", "quarantine", "quality", "runs")
ALERTS = tuple(f"problem.{view}" for view in VIEWS)
"""Alerts by the view that shows more, so that one can be silenced. Alerts of alerts.yml have no dot in their names."""
POLICIES = dict.fromkeys(ALERTS, NoticePolicy(max_per_hour=6))


class ProblemSender(ChannelSender):
    """Entries of the list, and their ends, to all channels that are to have them."""

    look_seconds = 3.0
    kind: Kind = "problems"

    def __init__(self, conf: Conf, progress: Progress, stop: threading.Event) -> None:
        super().__init__(conf, progress, stop, names=[name for name, channel in conf.channels.items() if channel.tells_problems])

    def _topics(self, name: str, now: datetime) -> Topics:
        others = [problem for problem in problems(self._conf, now) if problem.subject != f"channel {name}"]  # nobody would hear of itself
        file = state_file(self._conf.lake, f"{name}.problems")
        return Topics(file, POLICIES, lambda state: (state, [*changes_of(others, state.standings, now)]))


def changes_of(listed: Iterable[Problem], standings: Mapping[str, EntityState], now: datetime) -> Iterator[Change]:
    """Yield what has begun, has another severity, or has ended, by what the channel knows. Notices are for the page."""
    firing = {
        (standing.change.alert, standing.change.entity): standing.change
        for standing in standings.values()
        if standing.change.state == FIRING
    }
    current = {(alert_of(problem), problem.subject): problem for problem in reversed([*listed]) if problem.severity is not Severity.NOTICE}
    for key, change in firing.items():
        if key not in current:
            yield replace(change, state=NORMAL, changed_at=now, known_at=now, summary=f"It is over: {change.summary}")
    for (alert, subject), problem in current.items():
        before = firing.get((alert, subject))
        if before is None or before.severity != problem.severity:
            episode = before.alert_id if before else hashlib.sha256(f"{alert}/{subject}/{now.timestamp()}".encode()).hexdigest()
            fix = f" Fix: {problem.command}" if problem.command else ""
            since = problem.since or now
            yield Change(alert, subject, FIRING, problem.severity, since, now, None, problem.sentence + fix, episode)


def alert_of(problem: Problem) -> str:
    """Return the alert that a problem is told as."""
    return f"problem.{problem.view.partition('?')[0].strip('/') or VIEWS[0]}"
