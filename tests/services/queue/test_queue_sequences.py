"""Random sequences of operations on one queue, compared with a plain list of its messages."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from strongroom.services.core.runner import Services
from strongroom.services.queue.messages import MessageView
from tests.effort import examples
from tests.services import queue_calls
from tests.services.container_calls import refused, run

GONE = (404, "MessageNotFound")
BEYOND = (400, "OutOfRangeQueryParameterValue")


@dataclass(slots=True)
class Expected:
    """One message: times in seconds, `order` of its last placing, receipts oldest first."""

    id: str
    text: str
    visible: float
    expires: float
    order: int
    dequeued: int = 0
    receipts: list[MessageView] = field(default_factory=list)


@dataclass(slots=True)
class Queue:
    """The queue under test, and the list of its expected messages."""

    on: Services
    now: float = 0.0
    placed: int = 0
    messages: list[Expected] = field(default_factory=list)
    ended: list[MessageView] = field(default_factory=list)

    def visible(self) -> list[Expected]:
        """Return the messages that can be got, in order."""
        found = [m for m in self._alive() if m.visible <= self.now]
        return sorted(found, key=lambda m: (m.visible, m.order))

    def _alive(self) -> list[Expected]:
        return [m for m in self.messages if m.expires > self.now]

    def _place(self, message: Expected, seconds: float, view: MessageView) -> None:
        self.placed += 1
        message.order, message.visible = self.placed, self.now + seconds
        message.receipts.append(view)

    async def put(self, length: int, hidden_s: int, ttl_s: int) -> None:
        text = f"{self.placed} " + "x" * length
        if 0 <= ttl_s <= hidden_s:
            return
        view = await queue_calls.put(self.on, text, visibility_s=hidden_s, ttl_s=ttl_s)
        expires = float("inf") if ttl_s == -1 else self.now + ttl_s
        made = Expected(view.message.id, text, 0, expires, 0)
        self._place(made, hidden_s, view)
        self.messages.append(made)

    async def get(self, count: int, hidden_s: int) -> None:
        wanted = self.visible()[:count]
        found = await queue_calls.get(self.on, count, hidden_s)
        assert [(view.message.id, view.text) for view in found] == [(m.id, m.text) for m in wanted]
        for message, view in zip(wanted, found, strict=True):
            message.dequeued += 1
            assert view.message.dequeued == message.dequeued
            self._place(message, hidden_s, view)

    async def peek(self) -> None:
        found = await queue_calls.peek(self.on)
        wanted = self.visible()[:32]
        assert [(view.message.id, view.text, view.message.dequeued) for view in found] == [
            (m.id, m.text, m.dequeued) for m in wanted
        ]

    async def update(self, which: int, back: int, hidden_s: int, text: str | None) -> None:
        message, view = self._pick(which, back)
        if message is None or view is None:
            return
        if view is not message.receipts[-1] or message.expires <= self.now:
            assert await refused(queue_calls.update(self.on, view, hidden_s, text)) == GONE
        elif self.now + hidden_s > message.expires:
            assert await refused(queue_calls.update(self.on, view, hidden_s, text)) == BEYOND
        else:
            renewed = await queue_calls.update(self.on, view, hidden_s, text)
            self._place(message, hidden_s, renewed)
            message.text = message.text if text is None else text

    async def delete(self, which: int, back: int) -> None:
        message, view = self._pick(which, back)
        if message is None or view is None:
            return
        if view is not message.receipts[-1] or message.expires <= self.now:
            assert await refused(queue_calls.delete(self.on, view)) == GONE
            return
        await queue_calls.delete(self.on, view)
        self.messages.remove(message)
        self.ended += message.receipts

    def _pick(self, which: int, back: int) -> tuple[Expected | None, MessageView | None]:
        if not self.messages:
            return None, None
        message = self.messages[which % len(self.messages)]
        return message, message.receipts[-1 - back % len(message.receipts)]

    async def clear(self) -> None:
        await queue_calls.clear(self.on)
        self.ended += [view for message in self.messages for view in message.receipts]
        self.messages.clear()

    async def wait(self, seconds: int) -> None:
        queue_calls.pass_time(self.on, seconds)
        self.now += seconds + 0.01

    async def sweep(self) -> None:
        await self.wait(0)
        await queue_calls.sweep(self.on)
        self.now += 1

    async def check(self) -> None:
        """Check at the end that no ended message is left, and that the doctor has no findings."""
        for view in self.ended[:10]:
            assert await refused(queue_calls.delete(self.on, view)) == GONE
        assert queue_calls.problems(self.on) == []
        await self.sweep()
        await self.sweep()
        assert await queue_calls.count(self.on) == len(self._alive())
        assert queue_calls.problems(self.on) == []
        await self.peek()


small = st.integers(0, 4)
lengths = st.sampled_from([0, 10, 2_000, 3_000, 50_000])
steps = st.one_of(
    st.tuples(
        st.just("put"), lengths, st.sampled_from([0, 0, 3, 20]), st.sampled_from([-1, 5, 60])
    ),
    st.tuples(st.just("get"), st.integers(1, 5), st.sampled_from([1, 4, 30])),
    st.tuples(st.just("peek")),
    st.tuples(
        st.just("update"),
        *(small, st.sampled_from([0, 0, 1]), st.sampled_from([0, 2, 10])),
        st.sampled_from([None, "", "y" * 100, "z" * 60_000]),
    ),
    st.tuples(st.just("delete"), small, st.sampled_from([0, 0, 1])),
    st.tuples(st.just("wait"), st.integers(0, 6)),
    st.tuples(st.just("sweep")),
    st.tuples(st.just("clear")),
)


@examples(600)
@given(st.lists(steps, min_size=5, max_size=40))
def test_a_queue_does_what_the_list_says(taken: list[tuple[object, ...]]) -> None:
    """Q-GET-02, Q-GET-05, Q-GET-06, Q-POP-02, Q-UPD-04, Q-DEL-02, Q-QUE-05."""

    async def scenario() -> None:
        queue = Queue(queue_calls.services())
        await queue_calls.create(queue.on)
        for verb, *arguments in taken:
            await getattr(queue, str(verb))(*arguments)
        await queue.check()

    run(scenario)
