"""Access rules tried from outside: the same clients and the same rules at our router and at eclipse-zenoh's.

`python -m tests.hostile.access` runs the whole table and prints where the routers differ.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import zenoh

import elea

__all__ = [
    "ACTIONS",
    "USERS",
    "World",
    "battery",
    "config",
    "deny",
    "expected",
    "policy",
    "rule",
    "rules",
    "table",
    "world",
]

ACTIONS = (
    "put",
    "delete",
    "declare_subscriber",
    "query",
    "declare_queryable",
    "reply",
    "liveliness_token",
    "declare_liveliness_subscriber",
    "liveliness_query",
)
USERS = {"ann": "secret-a", "bob": "secret-b"}
BOTH = ("ingress", "egress")
OPEN, SECRET = "k/open/1", "k/secret/1"
KEYS = (OPEN, SECRET)
PATIENCE = 60.0

Found = dict[str, list[str]]
"""What somebody got, by what was tried."""


def rule(id: str, permission: str, keys: Sequence[str], actions: Sequence[str] = ACTIONS, flows: Any = BOTH) -> Any:
    """An entry of `rules`."""
    named = {"id": id, "permission": permission, "key_exprs": list(keys), "messages": list(actions)}
    return named | ({} if flows is None else {"flows": list(flows)})


def rules(default: str, rules: Sequence[Any], subjects: Sequence[Any], policies: Sequence[Any]) -> dict[str, Any]:
    """A whole `access_control`."""
    lists = {"rules": list(rules), "subjects": list(subjects), "policies": list(policies)}
    return {"enabled": True, "default_permission": default, **lists}


def policy(names: Sequence[str], subjects: Sequence[str]) -> dict[str, Any]:
    """An entry of `policies`."""
    return {"rules": list(names), "subjects": list(subjects)}


ANN = {"id": "ann", "usernames": ["ann"]}
BOB = {"id": "bob", "usernames": ["bob"]}
ANY = {"id": "any"}
MARKS = rule("marks", "allow", ["mark/**"])


def deny(action: str, flows: Any = BOTH, key: str = "k/secret/**") -> dict[str, Any]:
    """Everybody may do everything, but ann one thing."""
    return rules("allow", [rule("no", "deny", [key], [action], flows)], [ANN], [policy(["no"], ["ann"])])


def allow_but(action: str) -> dict[str, Any]:
    """Nobody may do anything; bob all, ann all but one thing."""
    others = [one for one in ACTIONS if one != action]
    return rules(
        "deny",
        [MARKS, rule("all", "allow", ["k/**"]), rule("some", "allow", ["k/**"], others)],
        [ANN, BOB],
        [policy(["marks", "all"], ["bob"]), policy(["marks", "some"], ["ann"])],
    )


def table() -> dict[str, dict[str, Any]]:
    """The rules that are tried, by name."""
    found = {"nothing is said": {"enabled": False}}
    for action in ACTIONS:
        found[f"allow, {action} denied"] = deny(action)
        found[f"deny, {action} not allowed"] = allow_but(action)
        for flow in BOTH:
            found[f"allow, {action} denied, {flow}"] = deny(action, [flow])
    no = rule("no", "deny", ["k/secret/**"])
    found["denial stands above allowance"] = rules(
        "deny", [rule("all", "allow", ["**"]), no], [ANY], [policy(["all", "no"], ["any"])]
    )
    found["any subject that may is enough"] = rules(
        "deny",
        [rule("all", "allow", ["**"]), no],
        [ANN, ANY],
        [policy(["no"], ["ann"]), policy(["all"], ["any"])],
    )
    found["the same names twice are one subject"] = rules(
        "deny",
        [rule("all", "allow", ["**"]), no],
        [ANN, {**ANN, "id": "ann again"}, BOB],
        [policy(["all"], ["ann", "bob"]), policy(["no"], ["ann again"])],
    )
    found["a subject without a policy has the default"] = rules(
        "allow", [no], [ANN, {"id": "idle", "link_protocols": ["tcp"]}], [policy(["no"], ["ann"])]
    )
    found["interface"] = rules("allow", [no], [{"id": "lo", "interfaces": ["lo"]}], [policy(["no"], ["lo"])])
    found["another interface"] = rules("allow", [no], [{"id": "no0", "interfaces": ["no0"]}], [policy(["no"], ["no0"])])
    found["protocol"] = rules("allow", [no], [{"id": "t", "link_protocols": ["tcp"]}], [policy(["no"], ["t"])])
    found["another protocol"] = rules("allow", [no], [{"id": "t", "link_protocols": ["udp"]}], [policy(["no"], ["t"])])
    found["interface and user"] = rules(
        "allow", [no], [{"id": "x", "interfaces": ["lo"], "usernames": ["ann"]}], [policy(["no"], ["x"])]
    )
    found["wildcards of a rule within a chunk"] = deny("put", BOTH, "k/sec$*/*")
    found["one key of many"] = deny("put", BOTH, SECRET)
    found["flows are both unless given"] = deny("put", None)
    found["no rules at all"] = rules("allow", [], [], [])
    return found


# -- routers and clients ----------------------------------------------------------------------------------------------


def config(lib: Any, mode: str, entries: dict[str, Any]) -> Any:
    """A configuration of either library that looks for nobody."""
    made = lib.Config()
    quiet = {"mode": mode, "scouting/multicast/enabled": False, "scouting/gossip/enabled": False}
    for path, value in {**quiet, **entries}.items():
        made.insert_json5(path, json.dumps(value))
    return made


class World:
    """A router with access rules, and clients of it by user."""

    def __init__(self, lib: Any, router: Any, locator: str) -> None:
        self.lib = lib
        self.router = router
        self.locator = locator
        self.sessions: dict[str, Any] = {}

    def client(self, user: str, **more: Any) -> Any:
        """A session of a user."""
        entries: dict[str, Any] = {"transport/auth/usrpwd/user": user, "transport/auth/usrpwd/password": USERS[user]}
        entries["connect/endpoints"] = [self.locator]
        return self.lib.open(config(self.lib, "client", {**entries, **more}))


@contextlib.contextmanager
def world(routing: Any, lib: Any, access: dict[str, Any], **more: Any) -> Iterator[World]:
    """A router of one library, and what clients of the other need."""
    with tempfile.TemporaryDirectory() as directory:
        users = Path(directory) / "users"
        users.write_text("".join(f"{user}:{password}\n" for user, password in USERS.items()))
        entries = {
            "listen/endpoints": ["tcp/127.0.0.1:0"],
            "transport/auth/usrpwd/dictionary_file": str(users),
            "access_control": access,
            **more,
        }
        if routing is zenoh:
            entries["listen/endpoints"] = [f"tcp/127.0.0.1:{_free_port()}"]
            locator = entries["listen/endpoints"][0]
        with routing.open(config(routing, "router", entries)) as router:
            found = World(lib, router, locator if routing is zenoh else str(router.info.locators()[0]))
            try:
                found.sessions = {user: found.client(user) for user in USERS}
                yield found
            finally:
                for session in found.sessions.values():
                    session.close()


def _free_port() -> int:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


# -- what is tried ----------------------------------------------------------------------------------------------------

_numbers = itertools.count()


class Heard:
    """What a handler was given."""

    def __init__(self) -> None:
        self.items: list[str] = []
        self._lock = threading.Lock()

    def __call__(self, text: str) -> None:
        with self._lock:
            self.items.append(text)

    def found(self) -> list[str]:
        """What it was, without marks."""
        with self._lock:
            return sorted({text for text in self.items if "mark/" not in text})


def _eventually(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.002)


def _passed(sender: Any, receiver: Any) -> None:
    """Whatever one has said to the other has arrived, or never will: behind it comes a mark that always may."""
    mark = f"mark/{next(_numbers)}"
    got: list[str] = []
    with receiver.declare_subscriber(mark, lambda sample: got.append(mark)):

        def arrived() -> bool:
            sender.put(mark, b"")
            time.sleep(0.01)
            return bool(got)

        _eventually(arrived, f"a mark did not arrive: {mark}")


def battery(made: World) -> Found:
    """Everything that one user can try on the other."""
    found: Found = {}
    for here, there in (("ann", "bob"), ("bob", "ann")):
        sender, receiver = made.sessions[here], made.sessions[there]
        for name, tried in TRIED.items():
            found[f"{name}, {here} to {there}"] = tried(made.lib, sender, receiver)
    return found


def _data(subscribed: str) -> Callable[[Any, Any, Any], list[str]]:
    def tried(lib: Any, sender: Any, receiver: Any) -> list[str]:
        heard = Heard()
        with receiver.declare_subscriber(subscribed, lambda s: heard(f"{str(s.kind).rpartition('.')[2]} {s.key_expr}")):
            _passed(sender, receiver)
            with contextlib.ExitStack() as stack:
                publishers = [stack.enter_context(sender.declare_publisher(key)) for key in KEYS]
                _passed(sender, receiver)
                for key, publisher in zip(KEYS, publishers, strict=True):
                    sender.put(key, b"1")
                    publisher.put(b"2")  # by its number
                    publisher.put(b"3")
                    sender.delete(key)
                sender.put("k/*/1", b"wild")
                sender.delete("k/*/1")
                _passed(sender, receiver)
        return heard.found()

    return tried


def _queries(selector: str) -> Callable[[Any, Any, Any], list[str]]:
    def tried(lib: Any, sender: Any, receiver: Any) -> list[str]:
        def answer(query: Any) -> None:
            for key in KEYS:
                if query.key_expr.intersects(lib.KeyExpr(key)):
                    query.reply(key, b"answer")

        with receiver.declare_queryable("k/**", answer):
            _passed(receiver, sender)
            _passed(sender, receiver)
            options = {"timeout": PATIENCE, "target": lib.QueryTarget.ALL}
            replies = list(sender.get(selector, consolidation=lib.ConsolidationMode.NONE, **options))
        return sorted({str(reply.ok.key_expr) if reply.ok is not None else "error" for reply in replies})

    return tried


def _narrow_queryable(lib: Any, sender: Any, receiver: Any) -> list[str]:
    """A queryable on what is secret only, asked widely."""
    with receiver.declare_queryable(SECRET, lambda query: query.reply(SECRET, b"answer")):
        _passed(receiver, sender)
        _passed(sender, receiver)
        replies = list(sender.get("k/**", timeout=PATIENCE, target=lib.QueryTarget.ALL))
    return sorted({str(reply.ok.key_expr) if reply.ok is not None else "error" for reply in replies})


def _tokens(lib: Any, sender: Any, receiver: Any) -> list[str]:
    """Those of the sender, as the other is told of them."""
    heard = Heard()

    def told(sample: Any) -> None:
        heard(f"{str(sample.kind).rpartition('.')[2]} {sample.key_expr}")

    with receiver.liveliness().declare_subscriber("k/**", told, history=True):
        _passed(receiver, sender)
        with contextlib.ExitStack() as stack:
            for key in KEYS:
                stack.enter_context(sender.liveliness().declare_token(key))
            _passed(sender, receiver)
            for key in ("k/**", *KEYS):
                for reply in receiver.liveliness().get(key, timeout=PATIENCE):
                    heard(f"get {key} {reply.ok.key_expr}" if reply.ok is not None else "error")
            with receiver.liveliness().declare_subscriber(
                SECRET, lambda s: heard(f"secret {s.key_expr}"), history=True
            ):
                _passed(receiver, sender)
                _passed(sender, receiver)
        _passed(sender, receiver)
    return heard.found()


TRIED: dict[str, Callable[[Any, Any, Any], list[str]]] = {
    "data, subscribed to all": _data("k/**"),
    "data, subscribed to the secret": _data(SECRET),
    "queries on all": _queries("k/**"),
    "queries on the secret": _queries(SECRET),
    "queryable on the secret": _narrow_queryable,
    "tokens": _tokens,
}


def expected(access: dict[str, Any]) -> Found:
    """What eclipse-zenoh's router makes of it."""
    with world(zenoh, zenoh, access) as made:
        return battery(made)


def main(names: list[str]) -> int:
    wrong = 0
    for name, access in table().items():
        if names and not any(part in name for part in names):
            continue
        oracle = expected(access)
        for lib in (zenoh, elea):
            with world(elea, lib, access) as made:
                found = battery(made)
            differ = [what for what in oracle if oracle[what] != found[what]]
            wrong += bool(differ)
            print(f"{name:45} {lib.__name__:6} {'same' if not differ else 'DIFFERS'}", flush=True)
            for what in differ:
                print(f"    {what}\n        theirs {oracle[what]}\n        ours   {found[what]}", flush=True)
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
