"""The fair queue: a limited number at once, users in turn, and nobody is forgotten."""

import asyncio

import pytest

from orchestration.serving.sql.answer import RefusedError
from orchestration.serving.sql.server import FairQueue


async def answered(queue: FairQueue, user: str, order: list[str], until: asyncio.Event | None = None) -> None:
    async with queue.slot(user):
        order.append(user)
        await (until.wait() if until else asyncio.sleep(0))


def test_a_user_with_many_questions_does_not_keep_another_waiting() -> None:
    async def ask() -> list[str]:
        queue, order = FairQueue(max_active=2, max_waiting=10), list[str]()
        many = [answered(queue, "many", order) for _ in range(6)]
        await asyncio.gather(*many, answered(queue, "one", order))
        return order

    order = asyncio.run(ask())
    assert len(order) == 7
    assert order.index("one") <= 2


def test_endless_questions_of_a_user_leave_room_for_others() -> None:
    async def ask() -> list[str]:
        queue, order, never = FairQueue(max_active=4, max_waiting=10), list[str](), asyncio.Event()
        endless = [asyncio.create_task(answered(queue, "endless", order, never)) for _ in range(4)]
        await asyncio.sleep(0)
        await asyncio.gather(*(answered(queue, "other", order) for _ in range(5)))
        before = list(order)
        never.set()
        await asyncio.gather(*endless)
        assert len(order) == 9
        return before

    assert sorted(asyncio.run(ask())) == ["endless"] * 2 + ["other"] * 5


def test_who_leaves_the_queue_takes_no_turn() -> None:
    async def ask() -> list[str]:
        queue, order, first = FairQueue(max_active=1, max_waiting=10), list[str](), asyncio.Event()
        at_work = asyncio.create_task(answered(queue, "a", order, first))
        await asyncio.sleep(0)
        left = asyncio.create_task(answered(queue, "b", order))
        await asyncio.sleep(0)
        left.cancel()
        waiting = asyncio.create_task(answered(queue, "c", order))
        await asyncio.sleep(0)
        first.set()
        await asyncio.gather(at_work, waiting)
        return order

    assert asyncio.run(ask()) == ["a", "c"]


def test_a_queue_has_an_end() -> None:
    async def ask() -> None:
        queue, order, first = FairQueue(max_active=1, max_waiting=1), list[str](), asyncio.Event()
        tasks = [asyncio.create_task(answered(queue, "a", order, first)) for _ in range(2)]
        await asyncio.sleep(0)
        try:
            with pytest.raises(RefusedError, match="1 queries of a are waiting already"):
                await answered(queue, "a", order)
        finally:
            first.set()
            await asyncio.gather(*tasks)

    asyncio.run(ask())
