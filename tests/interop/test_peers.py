"""Peers of both libraries that find each other: by scouting, by endpoint, by gossip, through a router."""

from __future__ import annotations

import importlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

import elea
from elea.wire.zenoh1.messages import BodyForm, Oam
from tests.interop.inbox import Inbox, eventually, free_port
from tests.interop.network import LIBRARIES, configuration

pytestmark = pytest.mark.interop

PATIENCE_MS = 5000
"""A `scouting/delay` nobody could overlook: a session that opens sooner did not just wait it out."""

Open = Callable[..., Any]


@pytest.fixture
def group() -> str:
    """A multicast group of this test alone."""
    return f"224.0.0.224:{free_port()}"


@pytest.fixture
def start(group: str) -> Iterator[Open]:
    """Opens sessions that end with the test: `start("E", "peer", {…}, scouting=True)`."""
    with ExitStack() as stack:

        def opened(letter: str, mode: str = "peer", entries: Any = None, *, scouting: bool = False) -> Any:
            lib = importlib.import_module(LIBRARIES[letter])
            chosen = {"mode": mode, "scouting/multicast/enabled": scouting, "scouting/multicast/address": group}
            session = lib.open(configuration(lib, {**chosen, **(entries or {})}))
            stack.callback(session.close)
            return session

        yield opened


def at() -> str:
    return f"tcp/127.0.0.1:{free_port()}"


def peers(session: Any) -> list[str]:
    return sorted(str(node) for node in session.info.peers_zid())


def linked(a: Any, b: Any) -> bool:
    return str(b.zid()) in peers(a) and str(a.zid()) in peers(b)


def heard(sender: Any, receiver: Any, key: str) -> None:
    """What one puts, the other gets, once."""
    inbox = Inbox()
    handle = receiver.declare_subscriber(key, inbox)
    probe = sender.declare_publisher(key)
    eventually(lambda: probe.matching_status.matching, f"the subscriber of {key} is known")

    probe.put("one")
    probe.put("two")

    assert [sample.payload.to_string() for sample in inbox.take(2)] == ["one", "two"]
    handle.undeclare()
    probe.undeclare()


# -- by scouting --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pair", ["EE", "EZ", "ZE"])
def test_peers_find_each_other_and_open_waits_for_declarations(pair: str, start: Open) -> None:
    first = start(pair[0], scouting=True)
    inbox = Inbox()
    first.declare_subscriber("found/**", inbox)
    began = time.monotonic()

    second = start(pair[1], entries={"scouting/delay": PATIENCE_MS}, scouting=True)
    took = time.monotonic() - began
    second.put("found/1", "at once")

    assert inbox.one().payload.to_string() == "at once"
    assert took < PATIENCE_MS / 1000
    eventually(lambda: linked(first, second), "linked")
    heard(first, second, "back")


def test_peers_without_any_configuration_find_each_other() -> None:
    with elea.open(elea.Config()) as first, elea.open(elea.Config()) as second:
        eventually(lambda: linked(first, second), "linked")


def test_peers_find_each_other_on_loopback(start: Open) -> None:
    entries = {"scouting/multicast/interface": "lo", "listen/endpoints": ["tcp/127.0.0.1:0"]}

    first, second = (start("E", entries=entries, scouting=True) for _ in range(2))

    eventually(lambda: linked(first, second), "linked")


def test_node_that_does_not_listen_is_not_found(start: Open) -> None:
    silent = {"scouting/multicast/listen": False, "scouting/multicast/autoconnect": []}
    first = start("E", entries=silent, scouting=True)

    second = start("E", entries={"scouting/delay": 300}, scouting=True)

    assert peers(first) == peers(second) == []


def test_only_the_greater_id_connects(start: Open) -> None:
    entries = {"scouting/multicast/autoconnect_strategy": "greater-zid", "scouting/gossip/enabled": False}
    small = start("E", entries={**entries, "id": "1"}, scouting=True)

    great = start("E", entries={**entries, "id": "2", "scouting/delay": PATIENCE_MS}, scouting=True)

    assert linked(small, great)
    (connection,) = great._runtime.links.connections
    assert connection.link.remote in small._runtime.links.locators()


@pytest.mark.parametrize("kinds", ["EEEE", "EZEZ"])
def test_peers_that_open_at_once_form_a_mesh_of_single_links(kinds: str, start: Open) -> None:
    sessions: list[Any] = []
    threads = [threading.Thread(target=lambda kind=kind: sessions.append(start(kind, scouting=True))) for kind in kinds]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    everybody = {str(session.zid()) for session in sessions}
    for session in sessions:
        others = sorted(everybody - {str(session.zid())})
        eventually(lambda session=session, others=others: peers(session) == others, "full mesh", timeout=8.0)  # type: ignore[misc]


# -- by endpoint --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pair", ["EE", "EZ", "ZE"])
def test_peers_link_by_endpoint(pair: str, start: Open) -> None:
    locator = at()
    accepting = start(pair[0], entries={"listen/endpoints": [locator]})

    connecting = start(pair[1], entries={"connect/endpoints": [locator], "listen/endpoints": []})

    eventually(lambda: linked(accepting, connecting), "linked")
    heard(connecting, accepting, "there")
    heard(accepting, connecting, "back")


@pytest.mark.parametrize("pair", ["EE", "EZ", "ZE"])
def test_peers_with_each_others_endpoints_have_one_session(pair: str, start: Open) -> None:
    here, there = at(), at()
    first = start(pair[0], entries={"listen/endpoints": [here], "connect/endpoints": [there]})

    second = start(pair[1], entries={"listen/endpoints": [there], "connect/endpoints": [here]})

    eventually(lambda: linked(first, second), "linked")
    heard(first, second, "once")
    assert len(peers(first)) == len(peers(second)) == 1


# -- by gossip ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kinds", ["EEE", "EZE", "ZEZ", "EEZ", "ZEE"])
def test_peers_of_one_peer_link_directly(kinds: str, start: Open) -> None:
    locator = at()
    middle = start(kinds[1], entries={"listen/endpoints": [locator]})
    entries = {"connect/endpoints": [locator], "listen/endpoints": ["tcp/127.0.0.1:0"]}

    first, last = start(kinds[0], entries=entries), start(kinds[2], entries=entries)

    eventually(lambda: linked(first, last), "linked")
    assert linked(first, middle)
    assert linked(middle, last)
    heard(first, last, "around")


@pytest.mark.parametrize("kinds", ["EE", "EZ", "ZE"])
def test_peer_that_does_not_listen_links_to_the_others(kinds: str, start: Open) -> None:
    locator = at()
    start("E", entries={"listen/endpoints": [locator]})
    there = start(kinds[0], entries={"connect/endpoints": [locator], "listen/endpoints": ["tcp/127.0.0.1:0"]})

    silent = start(kinds[1], entries={"connect/endpoints": [locator], "listen/endpoints": []})

    eventually(lambda: linked(there, silent), "linked")


@pytest.mark.parametrize("kinds", ["E:EE", "E:EZ", "E:ZE", "E:ZZ", "Z:EE", "Z:EZ", "Z:ZE"])
def test_router_introduces_its_peers(kinds: str, start: Open) -> None:
    locator = at()
    start(kinds[0], "router", {"listen/endpoints": [locator]})
    entries = {"connect/endpoints": [locator], "listen/endpoints": ["tcp/127.0.0.1:0"]}

    first, last = start(kinds[2], entries=entries), start(kinds[3], entries=entries)

    eventually(lambda: linked(first, last), "linked")
    heard(first, last, "introduced")
    heard(last, first, "introduced/back")


def test_peer_opens_when_the_peers_of_its_router_are_there(start: Open) -> None:
    locator = at()
    start("E", "router", {"listen/endpoints": [locator]})
    entries = {"connect/endpoints": [locator], "listen/endpoints": ["tcp/127.0.0.1:0"], "scouting/delay": PATIENCE_MS}
    first = start("E", entries=entries)
    inbox = Inbox()
    first.declare_subscriber("early", inbox)
    began = time.monotonic()

    second = start("E", entries=entries)
    took = time.monotonic() - began
    second.put("early", "bird")

    assert inbox.one().payload.to_string() == "bird"
    assert took < PATIENCE_MS / 1000


def test_peer_without_gossip_is_left_alone(start: Open) -> None:
    locator = at()
    middle = start("E", entries={"listen/endpoints": [locator], "scouting/gossip/enabled": False})
    entries = {"connect/endpoints": [locator], "listen/endpoints": ["tcp/127.0.0.1:0"]}

    first, last = start("E", entries=entries), start("Z", entries=entries)

    eventually(lambda: linked(first, middle) and linked(middle, last), "linked")
    assert not linked(first, last)


def test_malformed_gossip_is_counted_and_the_link_stays(start: Open) -> None:
    locator = at()
    victim = start("E", entries={"listen/endpoints": [locator]})
    liar = start("E", entries={"connect/endpoints": [locator], "listen/endpoints": []})
    (connection,) = liar._runtime.links.connections

    connection.face.say(Oam(BodyForm.ZBufForm, 1, qos=8, body=b"\x05\x07"))
    connection.face.say(Oam(BodyForm.ZBufForm, 99, qos=8, body=b"?"))
    heard(liar, victim, "still/here")

    assert victim._runtime.discovery.malformed == 1


# -- clients ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kinds", ["EE", "ZE", "EZ"])
@pytest.mark.parametrize("scouting", [False, True], ids=["endpoint", "scouting"])
def test_client_of_a_peer_reaches_it_and_its_peers(kinds: str, scouting: bool, start: Open) -> None:
    locator, other = at(), at()
    entries = {"listen/endpoints": [locator]}
    peer = start(kinds[0], entries=entries, scouting=scouting)
    unscouted = {"listen/endpoints": [other], "connect/endpoints": [locator]}
    further = start("E", entries=unscouted)

    client = start(kinds[1], "client", {} if scouting else {"connect/endpoints": [locator]}, scouting=scouting)

    heard(client, peer, "client/peer")
    heard(peer, client, "peer/client")
    heard(client, further, "client/further")
    heard(further, client, "further/client")


def test_client_that_finds_nobody_says_what_to_do(start: Open) -> None:
    with pytest.raises(TimeoutError, match=r"no node answered on 224\.0\.0\.224:\d+ .* connect/endpoints") as caught:
        start("E", "client", {"scouting/timeout": 200}, scouting=True)

    assert isinstance(caught.value, elea.ZError)


def test_client_that_may_not_scout_says_what_to_do(start: Open) -> None:
    with pytest.raises(elea.ZError, match=r"connect/endpoints.*locator"):
        start("E", "client")


@pytest.mark.parametrize("router", ["E", "Z"])
def test_client_found_by_scouting_looks_again_after_a_loss(router: str, start: Open) -> None:
    first = start(router, "router", {"listen/endpoints": [at()]}, scouting=True)
    client = start("E", "client", scouting=True)
    assert [str(node) for node in client.info.routers_zid()] == [str(first.zid())]

    first.close()
    second = start(router, "router", {"listen/endpoints": [at()]}, scouting=True)

    expected = [str(second.zid())]
    eventually(lambda: [str(node) for node in client.info.routers_zid()] == expected, "found again", timeout=8.0)


# -- scout() ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("letters", ["EZ", "ZE", "EE"])
def test_scout_finds_nodes_of_the_modes_asked_for(letters: str, start: Open, group: str) -> None:
    lib: Any = importlib.import_module(LIBRARIES[letters[0]])
    where, there = at(), at()
    router = start(letters[1], "router", {"listen/endpoints": [where]}, scouting=True)
    entries = {"listen/endpoints": [there], "scouting/multicast/autoconnect": []}
    peer = start(letters[1], "peer", entries, scouting=True)
    client = start(letters[1], "client", {"connect/endpoints": [where]}, scouting=True)
    expected = {
        ("router", str(router.zid()), (where,)),
        ("peer", str(peer.zid()), (there,)),
        ("client", str(client.zid()), ()),
    }
    config = configuration(lib, {"scouting/multicast/enabled": True, "scouting/multicast/address": group})

    for what in (None, "peer|client", lib.WhatAmIMatcher("router")):
        modes = {"router", "peer", "client"} if what is None else set(str(what).split("|"))
        inbox = Inbox()
        with lib.scout(inbox, what, config):
            hellos = inbox.take(len(modes))
        found = {(str(hello.whatami), str(hello.zid), tuple(hello.locators)) for hello in hellos}
        assert found == {entry for entry in expected if entry[0] in modes}


def test_scout_is_a_channel_of_hellos_until_stopped(start: Open, group: str) -> None:
    peer = start("Z", "peer", {"listen/endpoints": ["tcp/127.0.0.1:0"]}, scouting=True)
    config = configuration(elea, {"scouting/multicast/address": group})

    scout = elea.scout(config=config)
    hello = scout.recv()
    scout.stop()
    scout.stop()

    assert isinstance(hello, elea.Hello)
    assert (str(hello.zid), hello.whatami) == (str(peer.zid()), elea.WhatAmI.PEER)
    assert list(scout) == []
    with pytest.raises(elea.ZError):
        scout.recv()


def test_scout_for_no_mode_is_refused() -> None:
    with pytest.raises(elea.ZError, match="empty"):
        elea.scout(what="")


def test_scout_with_a_function_has_no_channel(group: str) -> None:
    config = configuration(elea, {"scouting/multicast/address": group})

    with elea.scout(print, config=config) as scout:
        assert scout.handler is None
        with pytest.raises(TypeError, match="no channel"):
            scout.recv()
