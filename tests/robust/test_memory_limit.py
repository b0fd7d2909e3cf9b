"""A broker with 256 MiB, publishers that put three times what it can pass on: it lives, and counts what is lost."""

from __future__ import annotations

import contextlib
import re
import resource
import signal
import time

import elea
from tests.robust.children import Child, broker, config, eventually, facts, node

LIMIT = 256 << 20
PUBLISHERS = 3
PUTS = 20_000
SIZE = 2_000
KEY = "robust/data"


def limited() -> None:
    """In the broker's process: what it may have of its own. Address space is not limited, only what can be written."""
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT))


def metric(session: elea.Session, name: str) -> int:
    """A counter of the broker, over all links."""
    (reply,) = [reply.ok for reply in session.get("@/*/router/metrics?compression=false") if reply.ok]
    found = re.findall(rf"^{name}(?:\{{.*\}})? (\d+)$", reply.payload.to_string(), re.MULTILINE)
    return sum(map(int, found))


def overload(locator: str, publishing: int, puts: int) -> tuple[int, int]:
    """Put from several processes at once, as fast as they can; what they put, and what they lost of it themselves."""
    with contextlib.ExitStack() as stack:
        publishers = [stack.enter_context(node("client", "connect", locator)) for _ in range(publishing)]
        for child in publishers:
            eventually(lambda child=child: child.ask("matching", KEY), "the subscriber is known")  # type: ignore[misc]
        for child in publishers:
            child.tell("publish", KEY, puts, SIZE, False)
        put = sum(child.answer(300.0) for child in publishers)
        for child in publishers:
            assert child.ask("close", timeout=300.0)
        lost = [child.ask("dropped") for child in publishers]
        return put, sum(sum(counts.values()) for counts in lost)


def test_broker_with_little_memory_survives_publishers_that_are_too_fast() -> None:
    with (
        broker(preexec_fn=limited) as (router, locator),
        node("client", "connect", locator) as subscriber,
        node("client", "connect", locator, transport__link__tx__lease=600_000) as stopped,
        elea.open(config("client", "connect", locator)) as observer,
    ):
        subscriber.ask("subscribe", KEY)
        stopped.ask("subscribe", KEY)
        stopped.signal(signal.SIGSTOP)

        put, lost = overload(locator, PUBLISHERS, PUTS)

        def accounted() -> bool:
            """Each sample was taken by both subscribers' links or is counted as lost on the way."""
            router_lost = metric(observer, "elea_link_dropped_messages_total")
            arrived = subscriber.ask("count", KEY)
            return bool(router_lost > 0 and put - lost <= arrived + router_lost)

        eventually(accounted, "every sample has arrived or is counted")
        assert router.is_running
        assert facts(router.process.pid)["peak"] < LIMIT // 1024
        before = subscriber.ask("count", KEY)
        eventually(lambda: again(observer, subscriber) > before, "the broker still passes on")


def again(session: elea.Session, subscriber: Child) -> int:
    session.put(KEY, "again")
    return int(subscriber.ask("count", KEY))


def main() -> None:
    """The same, larger, with figures: `python -m tests.robust.test_memory_limit`."""
    with broker(preexec_fn=limited) as (router, locator), node("client", "connect", locator) as subscriber:
        subscriber.ask("subscribe", KEY)
        begin = time.monotonic()
        put, lost = overload(locator, 5, 200_000)
        seconds = time.monotonic() - begin
        with elea.open(config("client", "connect", locator)) as observer:
            router_lost = metric(observer, "elea_link_dropped_messages_total")
        arrived = subscriber.ask("count", KEY)
        unseen = put - arrived - lost - router_lost
        print(f"put      {put} in {seconds:.1f} s, {put / arrived:.1f} times what arrived")
        print(f"arrived  {arrived}, {arrived / seconds:,.0f}/s")
        print(f"lost     {lost} by the publishers, {router_lost} by the broker, {unseen} unaccounted")
        print(f"broker   {facts(router.process.pid)}")


if __name__ == "__main__":
    main()
