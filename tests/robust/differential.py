"""The same program through two routers: what arrives must be the same.

`python -m tests.robust.differential --seeds 100 --first 1` runs, for every seed, the same clients (of eclipse-zenoh, of
ours, of both) with a router of eclipse-zenoh and with one of ours. `--raw` compares what they say to a raw client.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import importlib
import json
import sys
import time
from collections.abc import Callable
from typing import Any

from elea.model.keyexpr import intersects
from tests.interop.inbox import free_port
from tests.robust.programs import CLIENTS, UNIVERSE, Get, Program, Put, Step, program
from tests.robust.rawprograms import raw_program
from tests.vectors.behaviour import Conversation
from tests.vectors.cases import check_equal

__all__ = ["TEAMS", "Outcome", "compare", "compare_raw", "opened", "run"]

LIBRARIES = {"E": "elea", "Z": "zenoh"}
TEAMS = ("ZZZ", "EEE", "ZEZ")
"""Whose the clients are."""

PATIENCE = 30.0
FENCE = "fence"
EPOCH = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)

Outcome = dict[str, Any]


def opened(letter: str, mode: str, **entries: Any) -> Any:
    """A session of either library that looks for nobody."""
    lib: Any = importlib.import_module(LIBRARIES[letter])
    config = lib.Config()
    settings = {"mode": mode, "scouting/multicast/enabled": False, "scouting/delay": 0, **entries}
    for path, value in settings.items():
        config.insert_json5(path.replace("__", "/"), json.dumps(value))
    return lib.open(config)


class Client:
    """A client of one library, and all it has heard."""

    def __init__(self, number: int, letter: str, locator: str) -> None:
        self.number = number
        self.lib: Any = importlib.import_module(LIBRARIES[letter])
        self.session = opened(letter, "client", connect__endpoints=[locator])
        self.fences: dict[str, set[str]] = {}
        """What each living subscriber has yet to get before all put so far has arrived."""
        self.outcome: Outcome = {}
        self._held: dict[str, Any] = {}
        self._keys: dict[str, str] = {}
        self._publishers: dict[tuple[str, str, bool, str], Any] = {}

    def settle(self) -> None:
        """The router has taken all that this client said: it answers a question behind it."""
        assert list(self.session.get("@nobody/at/all", timeout=PATIENCE)) == []

    def do(self, step: Step) -> None:
        """One step of the program."""
        name, key = step.name, step.key
        match step.verb:
            case "subscriber":
                heard: dict[str, list[Any]] = {}
                self.outcome[f"{self.number} {name} {key}"] = heard
                self.fences[name] = set()
                self._held[name] = self.session.declare_subscriber(key, lambda sample: self._heard(name, heard, sample))
                self._keys[name] = key
            case "queryable":
                answer = self._answer(name, key)
                self._held[name] = self.session.declare_queryable(key, answer, complete=step.flag)
            case "token":
                self._held[name] = self.session.liveliness().declare_token(key)
            case "watcher":
                seen: dict[str, list[str]] = {}
                self.outcome[f"{self.number} {name} {key}"] = seen
                self._held[name] = self.session.liveliness().declare_subscriber(
                    key,
                    self.lib.handlers.Callback(lambda sample: _saw(seen, sample), indirect=False),
                    history=step.flag,
                )
            case "undeclare":
                self._held.pop(name).undeclare()
                self.fences.pop(name, None)
            case "put":
                assert step.put is not None
                self._put(step.put)
            case "tokens":
                found = sorted({str(one.ok.key_expr) for one in self.session.liveliness().get(key, timeout=PATIENCE)})
                # Sessions of eclipse-zenoh now and then miss some, whoever routes.
                self.outcome[f"{self.number} {name} {key}"] = found if self.lib.__name__ == "elea" else "any"
            case "get":
                assert step.get is not None
                self._get(step.get)

    def expect(self, number: int) -> None:
        """Of every client a fence is to come, on each key that a subscriber hears of."""
        for name, awaited in self.fences.items():
            keys = [key for key in UNIVERSE if intersects(key, self._keys[name])]
            awaited |= {f"{FENCE} {number} {client} {key}" for client in range(CLIENTS) for key in keys}

    def put_fence(self, number: int) -> None:
        """Behind everything else: in the last priority, and on all keys, since each handler may have its own thread."""
        for key in UNIVERSE:
            self.session.put(
                key,
                f"{FENCE} {number} {self.number} {key}",
                priority=self.lib.Priority.BACKGROUND,
                congestion_control=self.lib.CongestionControl.BLOCK,
            )

    def _heard(self, name: str, heard: dict[str, list[Any]], sample: Any) -> None:
        payload = sample.payload.to_string()
        if payload.startswith(FENCE):
            self.fences.get(name, set()).discard(payload)
        else:
            _note(heard, sample)

    def _put(self, put: Put) -> None:
        lib = self.lib
        options: dict[str, Any] = {
            "priority": getattr(lib.Priority, put.priority),
            "congestion_control": lib.CongestionControl.BLOCK,
            "express": put.express,
        }
        payload = f"{self.number}:{put.number}"
        if put.publisher:
            named = (put.key, put.priority, put.express, put.encoding)
            if named not in self._publishers:
                self._publishers[named] = self.session.declare_publisher(put.key, encoding=put.encoding, **options)
            publisher = self._publishers[named]
            if put.kind == "delete":
                publisher.delete(attachment=put.attachment)
            else:
                publisher.put(payload, attachment=put.attachment)
        elif put.kind == "delete":
            self.session.delete(put.key, attachment=put.attachment, **options)
        else:
            self.session.put(put.key, payload, attachment=put.attachment, encoding=put.encoding, **options)

    def _answer(self, name: str, key: str) -> Callable[[Any], None]:
        number = int(name.removeprefix("queryable"))
        # Distinct times, so that it is settled which of two replies on a key is the latest.
        stamp = self.lib.Timestamp(EPOCH + datetime.timedelta(seconds=number), self.lib.TimestampId(b"\x07" * 16))

        def answer(query: Any) -> None:
            with query:
                asked = str(query.key_expr)
                if number % 5 == 0:
                    query.reply_err(f"{name} of {self.number}")
                    return
                for each in UNIVERSE:
                    if intersects(each, key) and intersects(each, asked):
                        if number % 7 == 0:
                            query.reply_del(each, timestamp=stamp)
                        else:
                            query.reply(each, f"{name} of {self.number}", timestamp=stamp)

        return answer

    def _get(self, get: Get) -> None:
        lib = self.lib
        replies = self.session.get(
            get.key,
            target=getattr(lib.QueryTarget, get.target),
            consolidation=getattr(lib.ConsolidationMode, get.consolidation),
            timeout=PATIENCE,
        )
        found = [_reply(reply) for reply in replies]
        if get.consolidation == "MONOTONIC":
            # What passes depends on who is faster, except that the newest is the last of its key.
            found = [*{one[:2]: one for one in found if one[0] == "ok"}.values(), *(o for o in found if o[0] != "ok")]
        name = f"{self.number} get{get.number} {get.key} {get.target} {get.consolidation}"
        self.outcome[name] = sorted(found)

    def close(self) -> None:
        self.session.close()


def _saw(seen: dict[str, list[str]], sample: Any) -> None:
    """Tokens that come and go. Sessions of eclipse-zenoh may hear twice of their own: here, and from the router."""
    kinds = seen.setdefault(str(sample.key_expr), [])
    if kinds[-1:] != [str(sample.kind)]:
        kinds.append(str(sample.kind))


def _note(heard: dict[str, list[Any]], sample: Any) -> None:
    """Samples by what keeps its order: publisher (in the payload), key and priority."""
    payload = sample.payload.to_string()
    publisher = payload.partition(":")[0] if payload else "deletion"
    place = f"{publisher} {sample.key_expr} {sample.priority}"
    attachment = None if sample.attachment is None else sample.attachment.to_string()
    told = [str(sample.kind), payload, str(sample.encoding), str(sample.congestion_control), sample.express, attachment]
    heard.setdefault(place, []).append([*told, sample.timestamp is not None])
    if publisher == "deletion":
        heard[place].sort(key=str)  # they do not say whose they are


def _reply(reply: Any) -> tuple[str, ...]:
    if reply.ok is None:
        return ("err", reply.err.payload.to_string())
    return ("ok", str(reply.ok.key_expr), str(reply.ok.kind), reply.ok.payload.to_string())


def run(network: str, steps: Program) -> Outcome:
    """Run a program in a network; all that its clients heard."""
    router_letter, letters = network.split(":")
    assert len(letters) == CLIENTS
    locator = f"tcp/127.0.0.1:{free_port()}"
    with contextlib.ExitStack() as stack:
        router = opened(router_letter, "router", listen__endpoints=[locator])
        stack.callback(router.close)
        clients: list[Client] = []
        for number, letter in enumerate(letters):
            clients.append(Client(number, letter, locator))
            stack.callback(clients[-1].close)
        for client in clients:
            client.settle()
        for number, phase in enumerate(steps.phases):
            for step in phase:
                clients[step.client].do(step)
                if step.verb == "put":
                    continue
                # One after the other, and known to all before anyone acts on it: a publisher sends nothing to
                # subscribers it has not heard of.
                for client in (clients[step.client], *clients):
                    client.settle()
            _fence(clients, number, network)
        # A copy: what the clients hear of each other's end is no part of it.
        outcome: Outcome = _plain({name: value for client in clients for name, value in client.outcome.items()})
        return outcome


def _fence(clients: list[Client], number: int, network: str) -> None:
    """Return when all samples put so far have arrived: those put behind them have."""
    for client in clients:
        client.expect(number)
    for client in clients:
        client.put_fence(number)
    end = time.monotonic() + PATIENCE
    while any(awaited for client in clients for awaited in client.fences.values()):
        assert time.monotonic() < end, f"{network}: not all has arrived: {[client.fences for client in clients]}"
        time.sleep(0.001)


def compare(seed: int, teams: tuple[str, ...] = TEAMS, **shape: int) -> None:
    """Raises Mismatch naming the first thing that clients hear otherwise through our router."""
    steps = program(seed, **shape)
    for team in teams:
        found, expected = (run(f"{router}:{team}", steps) for router in "EZ")
        check_equal(f"clients {team}: ", found, expected)


def compare_raw(seed: int, length: int = 25) -> None:
    """The same for what two routers say to a raw client."""
    records = raw_program(seed, length)
    heard = {}
    for letter in "ZE":
        locator = f"tcp/127.0.0.1:{free_port()}"
        with contextlib.closing(opened(letter, "router", listen__endpoints=[locator])):
            conversation = Conversation(records)
            conversation.hold(locator)
            heard[letter] = conversation.heard()
    for number, (found, expected) in enumerate(zip(heard["E"], heard["Z"], strict=True)):
        check_equal(f"step {number}: ", _plain(found), _plain(expected))


def _plain(value: Any) -> Any:
    """As JSON would give it back."""
    return json.loads(json.dumps(value))


def main(arguments: list[str]) -> int:
    """Compare many seeds; 1 if any differed."""
    parser = argparse.ArgumentParser(prog="python -m tests.robust.differential", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--raw", action="store_true")
    options = parser.parse_args(arguments)
    differed = 0
    started = time.monotonic()
    for seed in range(options.first, options.first + options.seeds):
        try:
            compare_raw(seed) if options.raw else compare(seed)
        except AssertionError as mismatch:  # a Mismatch, or something that never arrived
            differed += 1
            print(f"seed {seed}: {mismatch}", flush=True)
    print(f"{options.seeds} seeds, {differed} differed, {time.monotonic() - started:.0f} s")
    return 1 if differed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
