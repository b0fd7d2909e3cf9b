"""The run: rounds, dialects interleaved; then the tables."""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Final, NamedTuple

from tests.simulation.relay import LossyRelay

from bench.commandline import add_common, positive, progress
from bench.node.about import About
from bench.node.processes import End, environment, free_port
from elea.model.limits import EARLY_WINDOW_BYTES

BASE: Final = ("tcp", "zenoh1")
"""Over udp 1.x is not reliable, so tcp is what both are compared with."""

CASES: Final = (BASE, ("tcp", "zenoh2018"), ("tcp", "xrce2017"), ("udp", "zenoh2018"), ("udp", "xrce2017"))
LOSSES: Final = (0.0, 0.01, 0.05, 0.1, 0.3)
SIZE: Final = 64
LOSSY_SIZE: Final = 1_000
MTUS: Final = {16_384: "", 1_472: ";mtu=1472"}
"""Of lossy links: what two Elea nodes send each other over loopback, and what an Ethernet carries."""

DELAY: Final = 0.005
"""Seconds a datagram takes through the relay: long enough that the window, not a core, is the limit."""

WANTED: Final = 0.5


class Measured(NamedTuple):
    """One dialect over one link, once."""

    rate: float
    lost: int
    sender: float
    """Microseconds of CPU for a sample."""
    receiver: float


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.early",
        description="Reliable samples of a client to a broker that subscribes, in the dialects of 2018 and 2017 beside"
        " 1.x, all Elea; and goodput where datagrams are lost. See docs/benchmarks.md.",
    )
    parser.add_argument("--rounds", type=positive, default=5, help="how often everything is measured (5)")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement (1)")
    add_common(parser)
    return parser.parse_args()


def main() -> int:
    wanted = arguments()
    clean: dict[tuple[str, str], list[Measured]] = {}
    lossy: dict[tuple[int, float], list[Measured]] = {}
    with tempfile.TemporaryDirectory(prefix="elea-bench-") as cache:
        variables = environment(wanted.path, Path(cache))
        about = About(variables, wanted.path, "bench.early")
        for number in range(wanted.rounds):
            progress(f"round {number + 1} of {wanted.rounds}")
            for link, dialect in CASES if number % 2 == 0 else CASES[::-1]:
                clean.setdefault((link, dialect), []).append(
                    measure(f"{link}/127.0.0.1", dialect, SIZE, wanted.seconds, variables)
                )
            for mtu, options in MTUS.items():
                for loss in LOSSES:
                    dialect = f"zenoh2018{options}"
                    one = measure("udp/127.0.0.1", dialect, LOSSY_SIZE, wanted.seconds, variables, loss)
                    lossy.setdefault((mtu, loss), []).append(one)
    progress("")
    about.finish()
    if wanted.json:
        rows = [{"link": link, "dialect": dialect, **_median(rounds)} for (link, dialect), rounds in clean.items()]
        rows += [
            {"mtu": mtu, "loss": loss, "limit": _limit(loss), **_median(rounds)}
            for (mtu, loss), rounds in lossy.items()
        ]
        print(json.dumps(about.facts | {"rows": rows}))
    else:
        print("\n".join([*about.lines(), "", *_clean_lines(clean), "", *_lossy_lines(lossy)]))
    return 0 if all(_ratio(clean, case) >= WANTED for case in CASES[1:]) else 1


def measure(
    where: str, dialect: str, size: int, seconds: float, variables: dict[str, str], loss: float | None = None
) -> Measured:
    """Samples of one client; `loss` puts a relay between that loses datagrams."""
    port = free_port()
    options = "" if dialect == "zenoh1" else f"?dialect={dialect}"
    spec = {"lib": "elea", "seconds": seconds, "size": size}
    listening = {"job": "far", "locator": f"{where}:{port}{options}"}
    relay = nullcontext() if loss is None else LossyRelay(("127.0.0.1", port), loss=loss, delay=DELAY, seed=1)
    with closing(End(spec | listening, variables, "bench.early.ends")) as far:
        far.hear("open")
        with relay as passed:
            port = port if passed is None else passed.port
            connecting = {"job": "near", "locator": f"{where}:{port}{options}"}
            with closing(End(spec | connecting, variables, "bench.early.ends")) as near:
                near.hear("open")
                sent = near.ask("sent", do="go")
                got = far.ask("received", do="tell")
    received = max(got["received"], 1)
    return Measured(
        got["rate"], sent["sent"] - got["received"], sent["cpu"] / sent["sent"] * 1e6, got["cpu"] / received * 1e6
    )


def _limit(loss: float) -> float:
    """Samples a second that the window allows: it is full of samples once a round trip, and some of them arrive."""
    return EARLY_WINDOW_BYTES / LOSSY_SIZE / (2 * DELAY) * (1 - loss)


def _median(rounds: list[Measured]) -> dict[str, float]:
    return {
        "rate": statistics.median(one.rate for one in rounds),
        "lost": sum(one.lost for one in rounds),
        "sender_us": statistics.median(one.sender for one in rounds),
        "receiver_us": statistics.median(one.receiver for one in rounds),
    }


def _ratio(clean: dict[tuple[str, str], list[Measured]], case: tuple[str, str]) -> float:
    return _median(clean[case])["rate"] / (_median(clean[BASE])["rate"] or 1.0)


def _clean_lines(clean: dict[tuple[str, str], list[Measured]]) -> list[str]:
    lines = [
        "| link | dialect | samples/s, 64 B | by 1.x over tcp | wanted | lost | µs of CPU, sender | receiver |",
        "|---|---|---:|---:|---|---:|---:|---:|",
    ]
    for case in CASES:
        one, ratio = _median(clean[case]), _ratio(clean, case)
        judged = " | " if case == BASE else f"{ratio:.2f}× | ≥ {WANTED}× {'✓' if ratio >= WANTED else '✗'}"
        cost = f"{one['sender_us']:.1f} | {one['receiver_us']:.1f}"
        lines.append(f"| {' | '.join(case)} | {one['rate']:,.0f} | {judged} | {one['lost']} | {cost} |")
    return lines


def _lossy_lines(lossy: dict[tuple[int, float], list[Measured]]) -> list[str]:
    lines = [
        f"| mtu | lost each way, {2000 * DELAY:g} ms both ways | samples/s, {LOSSY_SIZE} B | window's limit | by it |",
        "|---:|---:|---:|---:|---:|",
    ]
    for (mtu, loss), rounds in lossy.items():
        rate, most = _median(rounds)["rate"], _limit(loss)
        lines.append(f"| {mtu} | {loss:.0%} | {rate:,.0f} | {most:,.0f} | {rate / most:.2f}× |")
    return lines


if __name__ == "__main__":
    raise SystemExit(main())
