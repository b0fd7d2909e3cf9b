"""What one stopped subscriber of ten costs the other nine: `python -m tests.robust.stopped`.

Runs with all ten and with nine and a stopped one alternate, so that the machine's moods fall on both alike.
"""

from __future__ import annotations

import contextlib
import signal
import statistics
import time
from typing import Any

from tests.robust.children import Child, broker, eventually, facts, node

__all__ = ["main"]

SUBSCRIBERS = 10
RUNS = 6
PUTS = 300_000
SIZE = 64
KEY = "robust/data"
LONG: dict[str, Any] = {"transport__link__tx__lease": 600_000}


def run(router: Child, publisher: Child, others: list[Child]) -> tuple[float, float, float]:
    """Samples per second that the others got, the part of what was put that they got, and what each cost in µs."""
    spent = facts(router.process.pid)["cpu"]
    before = [child.ask("count", KEY) for child in others]
    begin = time.monotonic()
    publisher.ask("publish", KEY, PUTS, SIZE, False)
    counts = [0] * len(others)
    while True:
        last, counts = counts, [child.ask("count", KEY) for child in others]
        if counts == last:
            break
        end = time.monotonic()
        time.sleep(0.05)
    got = sum(counts) - sum(before)
    spent = facts(router.process.pid)["cpu"] - spent
    return got / (end - begin), got / (PUTS * len(others)), 1000 * spent / got


def main() -> None:
    """Prints every run, and the medians."""
    with contextlib.ExitStack() as stack:
        router, locator = stack.enter_context(broker())
        children = [stack.enter_context(node("client", "connect", locator, **LONG)) for _ in range(SUBSCRIBERS)]
        for child in children:
            child.ask("subscribe", KEY)
        publisher = stack.enter_context(node("client", "connect", locator))
        eventually(lambda: publisher.ask("matching", KEY), "the subscribers are known")
        *others, victim = children
        run(router, publisher, others)
        rates: dict[bool, list[float]] = {False: [], True: []}
        costs: dict[bool, list[float]] = {False: [], True: []}
        for number in range(2 * RUNS):
            stopped = bool(number % 2)
            if stopped:
                victim.signal(signal.SIGSTOP)
            rate, part, cost = run(router, publisher, others)
            victim.signal(signal.SIGCONT)
            rates[stopped].append(rate)
            costs[stopped].append(cost)
            print(
                f"{'one stopped' if stopped else 'all running'}  {rate:>9,.0f} samples/s  {part:.0%}  {cost:.2f} µs",
                end="  ",
            )
            print(f"router {facts(router.process.pid)['memory'] / 1000:.0f} MB", flush=True)
        for name, figures in (("speed", rates), ("cost at the router", costs)):
            all_run, one_stopped = (statistics.median(figures[stopped]) for stopped in (False, True))
            print(f"{name} of the other nine, one stopped to all running: {one_stopped / all_run:.2f}")


if __name__ == "__main__":
    main()
