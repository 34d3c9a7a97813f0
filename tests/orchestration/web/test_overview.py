"""The overview says that nothing is wrong only where the list is empty, and up to when that is known. Without a browser."""

from datetime import datetime, timedelta

import pytest

from orchestration.storage.ops_tables import COUNTED
from orchestration.supervisor.problem import Problem, Severity
from orchestration.web.overview import Overview
from orchestration.web.pages import render
from tests.rows import at

NOW = at("12:00:10")
NOTICE = Problem(Severity.NOTICE, "alerts", "1 alert fires.", at("11:00:00"), "/alerts?x=1&y=2")


def shown(known_until: datetime | None, *problems: Problem) -> str:
    account = dict.fromkeys(("waiting", *COUNTED), 0)
    return render("overview.html", facts=Overview(NOW, None, [], account, problems, known_until), now=NOW)


def test_nothing_is_wrong_as_of_the_instant_up_to_which_that_is_known() -> None:
    assert "Nothing is wrong: known up to <time" in shown(NOW - timedelta(seconds=7))
    assert "7 s ago</time>" in shown(NOW - timedelta(seconds=7))


@pytest.mark.parametrize("known_until", [None, NOW])
def test_a_notice_alone_is_not_nothing(known_until: datetime | None) -> None:
    page = shown(known_until, NOTICE)
    assert "Nothing is wrong" not in page
    assert (
        '<li class="notice"><span class="badge info">notice</span> 1 alert fires. <a id="problem-1" href="/alerts?x=1&amp;y=2">more</a>'
        in page
    )
    assert "<code>" not in page


def test_where_no_run_has_looked_nothing_is_known() -> None:
    assert "Nothing is known yet: no run has looked at what comes" in shown(None)
