"""Small doors that were open: names that become paths, modes of files, imports, keys of replies, leases, guessed
passwords, secrets in reprs, forked children, cursors and staged batches of others, floods of declarations.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import stat
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import elea
from elea.api.nodefactory import link_settings
from elea.api.settings import Settings
from elea.model.errors import NotOwner
from elea.model.qos import Role
from elea.protocol.zenoh1.terms import Offer
from tests.hostile.access import world
from tests.hostile.keyattack import declaration
from tests.robust.hostile import Victim, configuration, eventually
from tests.vectors.rawclient import LinkEnded, RawClient

SECRET = "planted-secret"


@pytest.fixture
def victim() -> Iterator[Victim]:
    broker = Victim()
    yield broker
    broker.close()


# -- names and modes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["../out", "a/../../out", "/out", "a\\b", ".hidden", "..", "@store", "x" * 200, "a\n"])
def test_name_of_a_storage_leads_nowhere_else(name: str) -> None:
    manager = {"volumes": {"log": {"dir": "store"}}, "storages": {name: {"key_expr": "k/**", "volume": "log"}}}
    with pytest.raises(elea.ZError) as caught:
        Settings.of(configuration("router", more={"plugins/storage_manager": manager}))

    assert "storages" in str(caught.value)


def test_what_a_broker_keeps_is_for_its_group(tmp_path: Path) -> None:
    sock = tmp_path / "elea.sock"
    other = tmp_path / "open.sock"
    listen = (f"unixsock-stream/{sock}", f"unixsock-stream/{other}#mode=666")
    before = os.umask(0)
    try:
        broker = Victim(options=("--store", str(tmp_path / "new" / "store"), "--persist", "log/**"), listen=listen)
    finally:
        os.umask(before)
    try:
        with elea.open(configuration("client", connect=[broker.tcp])) as session:
            session.put("log/1", b"x", ack=True)
            session.cursor("log/**", "here").move(0)
        modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "new").rglob("*")}
    finally:
        broker.close()

    assert {mode & 0o027 for mode in modes.values()} == {0}, {str(path): oct(mode) for path, mode in modes.items()}
    assert [path for path in modes if path.suffix == ".sqlite"]


def test_unix_socket_is_as_configured(tmp_path: Path) -> None:
    sock, wide = tmp_path / "elea.sock", tmp_path / "wide.sock"
    listen = [f"unixsock-stream/{sock}", f"unixsock-stream/{wide}#mode=666"]
    with elea.open(configuration("router", more={"listen/endpoints": listen})):
        assert stat.S_IMODE(sock.stat().st_mode) == 0o600
        assert stat.S_IMODE(wide.stat().st_mode) == 0o666


# -- imports ----------------------------------------------------------------------------------------------------------


def line(**fields: Any) -> str:
    stamp_id = base64.b64encode(b"\1").decode()
    usual = {"key": "k/1", "payload": "", "ntp64": 1 << 60, "stamp_id": stamp_id, "arrival_ns": 0}
    return json.dumps({**usual, **fields})


@pytest.mark.parametrize(
    "text",
    [
        line(key="k/*"),
        line(key="/k"),
        line(key="k//1"),
        line(key=7),
        line(key="k/" + "a/" * 200 + "b"),
        line(kind=2),
        line(kind="put"),
        line(payload="***"),
        line(payload=5),
        line(ntp64=1 << 64),
        line(ntp64=-1),
        line(ntp64=1.5),
        line(ntp64=True),
        line(qos=256),
        line(stamp_id=""),
        line(schema=base64.b64encode(bytes(256)).decode()),
        line(source_sn="x"),
        line(more=1),
        "[" * 100_000,
        '{"key": ' * 5_000,
    ],
    ids=range(20),
)
def test_import_takes_nothing_that_is_no_sample(tmp_path: Path, text: str) -> None:
    command = [sys.executable, "-m", "elea", "store", "import", "--format", "json", str(tmp_path / "log"), "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode not in (0, -11, -6)
    assert "Traceback" not in done.stderr
    assert "line 1" in done.stderr


# -- sessions ---------------------------------------------------------------------------------------------------------


def test_reply_on_what_is_no_key_reaches_nobody(victim: Victim) -> None:
    hostile = RawClient(victim.tcp)
    hostile.send(declaration("D_QUERYABLE", 1, "asked/**"))
    with elea.open(configuration("client", connect=[victim.tcp])) as asker:
        found: list[Any] = []
        asking = threading.Thread(target=lambda: found.extend(asker.get("asked/1?_anyke", timeout=20)))
        asking.start()
        request = _request(hostile)
        for key in ("asked//1", "/asked/1", "asked/1/", "asked/**/**", "asked/$*$*", "a#b", "", "asked/1"):
            for consolidation in ("auto", "none"):
                expr = {"scope": 0, "suffix": key, "mapping": "sender"}
                body = {"_": "REPLY", "consolidation": consolidation, "body": {"_": "PUT", "payload": "78"}}
                hostile.say({"_": "RESPONSE", "id": request, "wire_expr": expr, "body": body})
        hostile.say({"_": "RESPONSE_FINAL", "id": request})
        asking.join(30)

    assert {str(reply.ok.key_expr) for reply in found if reply.ok is not None} == {"asked/1"}
    hostile.close()
    victim.check()


def _request(client: RawClient) -> int:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        for _, message in client.heard():
            form = message if isinstance(message, dict) else {}
            if form.get("_") == "REQUEST":
                return int(form["id"])
            if type(message).__name__ == "Request":
                return int(message.id)
    raise AssertionError("nobody has asked")


@pytest.mark.parametrize("lease_ms", [1, 10, 100])
def test_session_with_a_lease_of_no_time_is_not_ended_at_once(victim: Victim, lease_ms: int) -> None:
    client = RawClient(victim.tcp, lease_ms=lease_ms)
    time.sleep(0.5)

    client.send_batch(b"\x04")
    client.socket.settimeout(0.1)
    with contextlib.suppress(TimeoutError):
        client.fill()

    assert not client.ended
    eventually(lambda: _is_ended(client), "it ends when it has been silent for a second")
    client.close()


def _is_ended(client: RawClient) -> bool:
    client.socket.settimeout(0.2)
    with contextlib.suppress(TimeoutError, LinkEnded):
        client.fill()
    return client.ended


def test_guessed_passwords_are_slowed_and_nobody_is_locked_out(tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("ann:right\n")
    listening = {
        "listen/endpoints": ["tcp/127.0.0.1:0"],
        "transport/auth/usrpwd/dictionary_file": str(users),
    }

    def attempt(password: str) -> tuple[bool, float]:
        entries = {"transport/auth/usrpwd/user": "ann", "transport/auth/usrpwd/password": password}
        since = time.monotonic()
        try:
            elea.open(configuration("client", connect=[locator], more=entries)).close()
        except elea.ZError:
            return False, time.monotonic() - since
        return True, time.monotonic() - since

    with elea.open(configuration("router", more=listening)) as router:
        locator = str(router.info.locators()[0])
        took = [attempt(f"guess {number}") for number in range(8)]
        honest = attempt("right")

    assert not any(opened for opened, _ in took)
    assert took[7][1] > 0.25
    assert honest[0]
    assert honest[1] > 0.25


def test_secrets_are_in_no_repr(tmp_path: Path) -> None:
    entries = {
        "transport/auth/usrpwd/user": "ann",
        "transport/auth/usrpwd/password": SECRET,
        "transport/auth/usrpwd/dictionary_file": str(tmp_path / "users"),
    }
    (tmp_path / "users").write_text(f"bob:{SECRET}\n")
    settings = Settings.of(configuration("router", more=entries))
    offer = Offer(b"\1", Role.CLIENT, credentials=(b"ann", SECRET.encode()))

    for value in (settings, settings.auth, link_settings(settings), offer, configuration("client", more=entries)):
        assert SECRET not in repr(value), type(value).__name__
    with elea.open(configuration("peer", more=entries)) as session:
        assert SECRET not in repr(session)
        assert SECRET not in repr(vars(session))


def test_put_in_a_forked_child_raises() -> None:
    program = """
import os, sys, json, elea
router = elea.open(elea.Config.from_json5(json.dumps({"mode": "router", "scouting": {"multicast": {"enabled": False}},
    "listen": {"endpoints": ["tcp/127.0.0.1:0"]}})))
client = elea.open(elea.Config.from_json5(json.dumps({"mode": "client", "scouting": {"multicast": {"enabled": False}},
    "connect": {"endpoints": [str(router.info.locators()[0])]}})))
got = []
router.declare_subscriber("a", lambda s: got.append(s.payload.to_string()))
publisher = client.declare_publisher("a")
publisher.put("parent"); publisher.put("parent")
attempts = {
    "publisher": lambda: publisher.put("child"),
    "put": lambda: client.put("a", "child"),
    "delete": lambda: client.delete("a"),
    "get": lambda: list(client.get("a")),
    "subscriber": lambda: client.declare_subscriber("b", lambda s: None),
    "token": lambda: client.liveliness().declare_token("b"),
}
child = os.fork()
if not child:
    bad = []
    for name, attempt in attempts.items():
        try:
            attempt()
            bad.append(name)
        except elea.ZError as error:
            if "parent process" not in str(error):
                bad.append(f"{name}: {error}")
    if bad:
        print(bad)
    os._exit(1 if bad else 0)
status = os.waitpid(child, 0)[1]
publisher.put("after")
import time
end = time.monotonic() + 10
while "after" not in got and time.monotonic() < end: time.sleep(0.01)
client.close(); router.close()
sys.exit(0 if status == 0 and "after" in got and "child" not in got else f"status {status} got {got}")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


# -- cursors and staged batches ---------------------------------------------------------------------------------------


def test_cursors_and_writers_belong_to_a_user() -> None:
    manager = {"volumes": {}, "storages": {"all": {"key_expr": "k/**", "volume": "memory"}}}
    with world(elea, elea, {"enabled": False}, **{"plugins/storage_manager": manager}) as made:
        ann, bob = made.sessions["ann"], made.sessions["bob"]
        for number in range(3):
            ann.put(f"k/{number}", b"x", ack=True, durability="transient")
        ann.cursor("k/**", "etl").move(1)

        with pytest.raises(NotOwner):
            bob.cursor("k/**", "etl").move(2)
        with pytest.raises(NotOwner):
            _ask(bob, "@store/cursor/k/**?name=etl;drop")
        assert bob.cursor("k/**", "etl").position == 1
        bob.cursor("k/**", "his own").move(2)

        _ask(ann, "@store/stage/k/**?src=1.1.0;piece=a", _arrow())
        for request in ("stage/k/**?src=1.1.0;piece=b", "commit/k/**?src=1.1.0", "commit/k/**?src=1.1.0;drop"):
            with pytest.raises(NotOwner):
                _ask(bob, f"@store/{request}", _arrow() if "stage" in request else b'["a"]')
        assert _ask(ann, "@store/commit/k/**?src=1.1.0", b'["a"]')["rows"] == 1


def _arrow() -> bytes:
    import pyarrow as pa

    batch = pa.RecordBatch.from_arrays([pa.array(["k/staged"]), pa.array([b"x"])], names=["key", "payload"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as out:
        out.write_batch(batch)
    return bytes(sink.getvalue())


def _ask(session: Any, selector: str, payload: bytes | None = None) -> Any:
    from elea.api.receipt import error_of

    (reply,) = list(session.get(selector, payload=payload, timeout=20))
    if reply.ok is None:
        raise error_of(reply.err.payload.to_bytes())
    return json.loads(reply.ok.payload.to_string())


# -- floods -----------------------------------------------------------------------------------------------------------


def served(victim: Victim, times: int) -> list[float]:
    """Seconds that a put, and a newcomer, take."""
    took = []
    for _ in range(times):
        since = time.monotonic()
        victim.serves()
        took.append(time.monotonic() - since)
        time.sleep(0.02)
    return took


def test_flood_of_declarations_does_not_hold_up_others(victim: Victim) -> None:
    """Of one client, as fast as it can; others wait at most 100 ms on a quiet machine, here some times that."""
    ended = threading.Event()
    alone = served(victim, 20)

    # Made before: this thread and the honest clients share an interpreter.
    batches = [
        b"".join(declaration("D_SUBSCRIBER", at + one, f"flood/{at + one}/*/**") for one in range(200))
        for at in range(0, 60_000, 200)
    ]

    def flood() -> None:
        client = RawClient(victim.tcp)
        with contextlib.suppress(LinkEnded, OSError):
            for messages in batches:
                client.send(messages)
                if ended.is_set():
                    break
        ended.wait(60)
        client.close()

    flooding = threading.Thread(target=flood)
    flooding.start()
    try:
        took = served(victim, 60)
    finally:
        ended.set()
        flooding.join()

    assert statistics.median(took) < 0.2 + 3 * statistics.median(alone), took
    assert sorted(took)[-3] < 0.5 + 3 * max(alone), took
