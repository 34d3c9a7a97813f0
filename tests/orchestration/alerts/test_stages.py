"""Changes of alerts in, messages out: what is told, what is held back and why, and what becomes one message."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gold.alerts.messages import Change, Message, Silence, message_id
from gold.alerts.spec import Hours, NoticePolicy
from orchestration.alerts.grouping import Context, Waiting, send
from orchestration.alerts.stages import EntityState, decide

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
ZONES = {"oven-1": "hall", "oven-2": "hall", "fridge": "shop", "gateway": "hall"}


def at(clock: str) -> datetime:
    hours, minutes, *seconds = map(int, clock.split(":"))
    return NOON.replace(hour=hours, minute=minutes, second=sum(seconds))


def change(clock: str, state: str, entity: str = "oven-1", alert: str = "hot", severity: str = "warning") -> Change:
    return Change(alert, entity, state, severity, at(clock), at(clock), 1.0, f"{entity} is {state}", f"{alert}/{entity}")


class Teller:
    """One channel, `pager`, over time; `told` is what each look sent: state and entities."""

    def __init__(self, policy: NoticePolicy | None = None, **more: NoticePolicy) -> None:
        self.policies = {"hot": policy or NoticePolicy(), "gone": NoticePolicy(), **more}
        self.standings: dict[str, EntityState] = {}
        self.found: list[Waiting] = []

    def look(self, clock: str, *changes: Change, **around: Any) -> list[str]:
        at_that_time = Context(at(clock), **{"zones": ZONES, **around})
        self.found, self.standings = decide("pager", self.policies, self.standings, changes, at_that_time)
        return [f"{of.message.state} {' '.join(of.message.entities)}" for of in self.found if of.reason is None]

    @property
    def held_back(self) -> list[str]:
        return [f"{of.message.entities[0]}: {of.reason}" for of in self.found if of.reason]


def test_an_episode_that_was_over_before_it_was_known_is_part_of_a_digest_and_no_alarm() -> None:
    teller, past = Teller(), [replace(change(clock, state), is_past=True) for clock, state in (("11:50", "firing"), ("11:51", "normal"))]
    assert teller.look("12:00", change("11:59", "firing")) == ["firing oven-1"]
    assert teller.look("12:01", *past) == ["digest oven-1"]
    assert teller.look("12:02", *past, sent_before={past[0].change_id: False}) == []
    assert teller.look("12:03", change("12:03", "normal")) == ["normal oven-1"]


def test_firing_and_its_end_are_told_and_what_leads_there_is_not() -> None:
    teller = Teller()
    assert teller.look("12:00", change("12:00", "pending")) == []
    assert teller.look("12:02", change("12:02", "firing")) == ["firing oven-1"]
    assert teller.look("12:03", change("12:03", "recovering")) == []
    assert teller.look("12:04", change("12:04", "firing")) == []
    assert teller.look("12:06", change("12:05", "recovering"), change("12:06", "normal")) == ["normal oven-1"]
    assert teller.look("12:08", change("12:07", "pending"), change("12:08", "normal")) == []
    assert teller.standings.keys() == {"hot/oven-1"}
    assert teller.look("14:00") == []
    assert teller.standings == {}


def test_no_data_flapping_and_a_higher_severity_are_told() -> None:
    teller = Teller()
    changes = [change("12:00", "firing"), change("12:01", "firing", severity="critical"), change("12:02", "no data", severity="critical")]
    assert teller.look("12:03", *changes, change("12:03", "flapping")) == [
        *("firing oven-1", "firing oven-1", "no data oven-1", "flapping oven-1")
    ]


def test_a_message_tells_of_its_change_and_has_its_id() -> None:
    teller = Teller()
    teller.look("12:01", change("12:00", "firing"))
    assert teller.found == [
        Waiting(
            Message(
                *(message_id("hot/oven-1", "firing", at("12:00")), "hot", "firing", "warning", ("oven-1",)),
                *(at("12:00"), at("12:00"), "oven-1 is firing", 1.0, ("hot/oven-1",)),
            ),
            (message_id("hot/oven-1", "firing", at("12:00")),),
            opens=True,
        )
    ]


def test_an_alert_is_told_by_its_own_channels() -> None:
    assert Teller(NoticePolicy(channels=("mail",))).look("12:00", change("12:00", "firing")) == []
    assert Teller(NoticePolicy(channels=("mail", "pager"))).look("12:00", change("12:00", "firing")) == ["firing oven-1"]


def test_the_end_of_an_alert_that_is_not_declared_any_more_is_told() -> None:
    teller = Teller()
    teller.look("12:00", change("12:00", "firing"))
    del teller.policies["hot"]
    assert teller.look("12:01", change("12:01", "normal"), change("12:01", "firing", "oven-2")) == ["normal oven-1"]


def test_what_fires_is_repeated_under_new_ids_until_it_is_acknowledged() -> None:
    teller, ids = Teller(NoticePolicy(repeat_seconds=600)), set()
    teller.look("12:00", change("12:00", "firing"))
    for clock, is_told in (("12:09", False), ("12:10", True), ("12:15", False), ("12:20", True)):
        assert bool(teller.look(clock)) == is_told
        ids |= {of.message.message_id for of in teller.found}
    assert len(ids) == 2
    assert teller.look("12:40", acknowledged={"hot/oven-1"}) == []
    assert teller.look("12:41", change("12:41", "firing", severity="critical"), acknowledged={"hot/oven-1"}) == ["firing oven-1"]
    assert teller.look("12:55", change("12:55", "normal")) == ["normal oven-1"]
    assert teller.look("13:30") == []


def test_what_changes_at_once_in_a_zone_is_one_message_that_lists_who() -> None:
    teller = Teller(NoticePolicy(group_by="zone"))
    changes = [change("12:00", "firing", entity) for entity in ("oven-1", "oven-2", "fridge", "stray")]
    assert teller.look("12:01", *changes) == ["firing oven-1 oven-2", "firing fridge", "firing stray"]
    first = teller.found[0]
    assert first.message.summary == "hot: 2 in hall are firing: oven-1, oven-2"
    assert first.change_ids == (changes[0].change_id, changes[1].change_id)
    assert first.message.alert_ids == ("hot/oven-1", "hot/oven-2")
    grouped = Teller(NoticePolicy(group_by="group"))
    assert grouped.look("12:01", *changes, groups={"oven-1": ["kitchen"], "fridge": ["kitchen"]}) == [
        *("firing oven-1 fridge", "firing oven-2", "firing stray")
    ]


def test_changes_of_one_entity_stay_in_order_where_others_change_with_it() -> None:
    teller = Teller(NoticePolicy(group_by="zone"))
    states = [("12:00", "firing", "oven-1"), ("12:01", "normal", "oven-1"), ("12:02", "firing", "oven-1"), ("12:03", "firing", "oven-2")]
    assert teller.look("12:04", *(change(*of) for of in states)) == ["firing oven-1 oven-2", "normal oven-1", "firing oven-1"]


def test_while_the_gateway_is_gone_its_zone_is_quiet_and_what_still_fires_is_told_then() -> None:
    teller = Teller(NoticePolicy(inhibited_by=("gone",)))
    down = change("12:01", "firing", "gateway", "gone")
    assert teller.look("12:01", change("12:00", "firing"), change("12:00", "firing", "fridge"), down) == ["firing fridge", "firing gateway"]
    assert teller.held_back == ["oven-1: inhibited: gone fires for gateway"]
    assert teller.look("12:02", change("12:02", "firing", "oven-2"), change("12:02", "recovering", "gateway", "gone")) == []
    assert teller.held_back == ["oven-2: inhibited: gone fires for gateway"]
    assert teller.look("12:05") == []
    assert teller.held_back == []
    back = change("12:06", "normal", "gateway", "gone")
    assert teller.look("12:06", change("12:05", "normal", "oven-2"), back) == ["normal gateway", "firing oven-1"]


def test_an_alert_of_the_same_entity_inhibits_without_a_zone() -> None:
    teller = Teller(NoticePolicy(inhibited_by=("gone",)))
    assert teller.look("12:00", change("12:00", "firing", "stray"), change("12:00", "firing", "stray", "gone")) == ["firing stray"]
    assert teller.held_back == ["stray: inhibited: gone fires for stray"]


def test_an_alert_of_a_group_inhibits_its_devices() -> None:
    teller, groups = Teller(NoticePolicy(inhibited_by=("gone",))), {"oven-1": ["baking"], "fridge": ["cooling"]}
    changes = [change("12:00", "firing"), change("12:00", "firing", "fridge"), change("12:00", "firing", "baking", "gone")]
    assert teller.look("12:00", *changes, groups=groups) == ["firing fridge", "firing baking"]
    assert teller.held_back == ["oven-1: inhibited: gone fires for baking"]


def test_an_entity_has_only_so_many_messages_an_hour_and_each_has_its_end() -> None:
    teller = Teller(NoticePolicy(max_per_hour=2))
    for minute in (0, 10):
        changes = change(f"12:0{minute}" if minute < 10 else f"12:{minute}", "firing"), change(f"12:{minute + 5:02}", "normal")
        assert teller.look(f"12:{minute + 5:02}", *changes) == ["firing oven-1", "normal oven-1"]
    assert teller.look("12:20", change("12:20", "firing"), change("12:20", "firing", "oven-2")) == ["firing oven-2"]
    assert teller.held_back == ["oven-1: limited: 2 messages in an hour"]
    assert teller.look("13:04") == []
    assert teller.look("13:05") == ["firing oven-1"]


def test_what_is_long_past_is_one_message_for_an_alert_and_what_still_fires_is_told_by_itself() -> None:
    teller = Teller(NoticePolicy(digest_older_than_seconds=600))
    past = [change(f"0{hour}:{minute}", state) for hour in (7, 8) for minute, state in (("00", "firing"), ("30", "normal"))]
    assert teller.look(
        "12:00", *past, change("09:00", "firing"), change("07:00", "firing", "oven-2"), change("11:55", "firing", "fridge")
    ) == [*("firing fridge", "firing oven-1", "firing oven-2", "digest oven-1")]
    assert teller.found[-1].message.summary == "hot: 2 times between 2026-01-05 07:00 and 2026-01-05 08:00 UTC, known late; over by now"
    assert teller.found[-1].change_ids == (past[0].change_id, past[2].change_id)
    assert teller.look("12:01", change("11:00", "normal")) == ["normal oven-1"]


def test_a_silence_holds_back_what_it_names_and_ends() -> None:
    teller, silences = Teller(), [Silence("s1", "ho*", "oven-?", at("12:00"), at("13:00"))]
    assert teller.look("11:59", change("11:59", "firing", "oven-2"), silences=silences) == ["firing oven-2"]
    changes = [change("12:00", "firing"), change("12:00", "firing", "fridge"), change("12:00", "normal", "oven-2")]
    assert teller.look("12:00", *changes, silences=silences) == ["firing fridge", "normal oven-2"]
    assert teller.held_back == ["oven-1: silenced: silence s1"]
    assert teller.look("12:59", silences=silences) == []
    assert teller.look("13:00", silences=silences) == ["firing oven-1"]


NIGHTS = [("2026-03-28T20:30", "2026-03-29T04:00"), ("2026-03-29T19:30", "2026-03-30T04:00"), ("2026-10-24T19:30", "2026-10-25T05:00")]


@pytest.mark.parametrize(("begin", "end"), NIGHTS)
def test_a_silence_of_every_night_keeps_local_time_when_clocks_change(begin: str, end: str) -> None:
    nights = Silence("s1", "*", "*", at("00:00"), NOON.replace(year=2027), Hours("Europe/Berlin", tuple(range(7)), 21 * 60 + 30, 6 * 60))
    begins, ends, moment = *(datetime.fromisoformat(f"{text}:00+00:00") for text in (begin, end)), timedelta(seconds=1)
    for now, is_silent in ((begins - moment, False), (begins, True), (ends - moment, True), (ends, False)):
        changes = [replace(change("12:00", "firing"), changed_at=now)]
        (found,), _ = decide("pager", {"hot": NoticePolicy()}, {}, changes, Context(now, silences=[nights]))
        assert (found.reason is not None) == is_silent, now


def test_what_was_told_before_is_not_told_again_but_its_end_is() -> None:
    firing, other, old = change("12:00", "firing"), change("12:00", "firing", "oven-2"), change("08:00", "firing", "fridge")
    known = {firing.change_id: True, old.change_id: False}
    teller = Teller()
    changes = [old, change("08:30", "normal", "fridge"), firing, other]
    assert teller.look("12:01", *changes, sent_before=known) == ["firing oven-2"]
    assert teller.look("12:02", change("12:02", "normal")) == ["normal oven-1"]


def queued(teller: Teller, waiting: Sequence[Waiting], clock: str, *changes: Change, **context: Any) -> list[Waiting]:
    """The queue of a channel that is down."""
    teller.look(clock, *changes, **context)
    return send(waiting, [entry for entry in teller.found if entry.reason is None])


def test_an_alarm_that_ended_before_it_could_be_sent_is_one_message() -> None:
    teller = Teller()
    queue = queued(teller, [], "12:01", change("12:00", "firing"), change("12:01", "firing", severity="critical"))
    queue = queued(teller, queue, "12:02", change("12:02", "normal"), change("12:02", "firing", "oven-2"))
    over, other = (entry.message for entry in queue)
    assert (over.state, over.severity, over.changed_at, over.ended_at, over.known_at) == (
        *("over", "critical", at("12:00"), at("12:02"), at("12:02")),
    )
    assert over.summary == "was true from 2026-01-05 12:00:00 to 2026-01-05 12:02:00 UTC: oven-1 is firing"
    assert [len(entry.change_ids) for entry in queue] == [3, 1]
    assert (other.state, other.entities) == ("firing", ("oven-2",))


def test_two_alarms_that_ended_are_two_messages_and_ids_stay_the_same() -> None:
    teller, queues = Teller(), list[list[Waiting]]()
    states = [("12:00", "firing"), ("12:01", "normal"), ("12:02", "firing"), ("12:03", "normal")]
    changes = [replace(change(clock, state), alert_id=f"episode-{n // 2}") for n, (clock, state) in enumerate(states)]
    queues.append(queued(teller, [], "12:04", *changes))
    teller, queue = Teller(), list[Waiting]()
    for one in changes:
        queue = queued(teller, queue, "12:04", one)
    assert queue == queues[0]
    assert [entry.message.state for entry in queue] == ["over", "over"]


def test_an_end_takes_the_place_of_nothing_that_may_have_been_sent() -> None:
    teller = Teller()
    teller.look("12:00", change("12:00", "firing"))  # sent
    queue = queued(teller, [], "12:02", change("12:01", "firing", severity="critical"), change("12:02", "normal"))
    assert [entry.message.state for entry in queue] == ["firing", "normal"]
    teller = Teller()
    queue = [replace(entry, opens=False) for entry in queued(teller, [], "12:00", change("12:00", "firing"))]  # a kill while it was sent
    assert [entry.message.state for entry in queued(teller, queue, "12:01", change("12:01", "normal"))] == ["firing", "normal"]


def test_alarms_of_a_zone_that_began_and_ended_together_are_one_message() -> None:
    teller, ovens = Teller(NoticePolicy(group_by="zone")), ("oven-1", "oven-2")
    queue = queued(teller, [], "12:01", *(change("12:00", "firing", entity) for entity in ovens))
    some = queued(teller, queue, "12:02", change("12:02", "normal", "oven-1"))
    assert [entry.message.state for entry in some] == ["firing", "normal"]
    teller = Teller(NoticePolicy(group_by="zone"))
    queue = queued(teller, [], "12:01", *(change("12:00", "firing", entity) for entity in ovens))
    (over,) = queued(teller, queue, "12:02", *(change("12:02", "normal", entity) for entity in ovens))
    assert (over.message.state, over.message.entities, len(over.change_ids)) == ("over", ovens, 4)


STATES = ("pending", "firing", "recovering", "normal", "no data", "flapping")


@given(
    st.lists(st.tuples(st.sampled_from(STATES), st.sampled_from(["oven-1", "oven-2"]), st.sampled_from(["hot", "gone"])), max_size=25),
    st.lists(st.integers(0, 25), max_size=4),
    st.sampled_from([NoticePolicy(), NoticePolicy(max_per_hour=2), NoticePolicy(inhibited_by=("gone",)), NoticePolicy(group_by="zone")]),
)
def test_however_changes_come_each_message_is_sent_once_and_what_was_told_ends(
    made: Sequence[tuple[str, str, str]], cuts: Sequence[int], policy: NoticePolicy
) -> None:
    changes = [
        replace(change("12:00", state, entity, alert), changed_at=NOON + timedelta(seconds=n))
        for n, (state, entity, alert) in enumerate(made)
    ]
    teller, sent, open_now = Teller(policy), list[str](), dict[tuple[str, str], str]()
    for begin, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(changes)], strict=True):
        teller.look("12:05", *changes[begin:end])
        for of in (of for of in teller.found if of.reason is None):
            sent.append(of.message.message_id)
            open_now |= {(of.message.alert, entity): of.message.state for entity in of.message.entities}
    assert len(sent) == len({*sent})
    last = {(of.alert, of.entity): of.state for of in changes}
    assert all(open_now.get(key, "normal") == "normal" for key, state in last.items() if state == "normal")
