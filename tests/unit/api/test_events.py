"""Sessions and links told as values and as events, between real sessions of one process."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

import elea
from elea.api.whatami import WhatAmI
from elea.model.qos import Reliability, SampleKind


def node(mode: str, **entries: Any) -> elea.Session:
    config = elea.Config()
    entries = {"scouting/multicast/enabled": False, "scouting/delay": 0, "listen/endpoints": [], **entries}
    for path, value in {"mode": mode, **entries}.items():
        config.insert_json5(path.replace("__", "/"), json.dumps(value))
    return elea.open(config)


def router() -> elea.Session:
    return node("router", listen__endpoints=["tcp/127.0.0.1:0"])


def client_of(other: elea.Session, **entries: Any) -> elea.Session:
    return node("client", connect__endpoints=[where(other)], **entries)


def where(session: elea.Session) -> str:
    return session._runtime.links.locators()[0]


def eventually(check: Callable[[], object]) -> None:
    end = time.monotonic() + 20
    while not check():
        assert time.monotonic() < end, "not within 20 s"
        time.sleep(0.002)


def test_session_tells_its_transports_and_links() -> None:
    with router() as accepting, client_of(accepting) as connecting:
        eventually(accepting.info.transports)
        (transport,), (link,) = connecting.info.transports(), connecting.info.links()
        (other,) = accepting.info.links()

        assert transport.zid == link.zid == accepting.zid()
        assert transport.whatami is WhatAmI.ROUTER
        assert (transport.is_qos, transport.is_multicast) == (True, False)
        assert accepting.info.transports()[0].whatami is WhatAmI.CLIENT
        assert link.dst == where(accepting) == other.src
        assert link.src == other.dst
        assert (link.interfaces, link.is_streamed, link.group) == (["lo"], True, None)
        assert (link.priorities, link.reliability) == ((0, 7), Reliability.RELIABLE)
        assert connecting.info.routers_zid() == [accepting.zid()]
        assert connecting.info.dropped() == {"full": 0, "closed": 0, "refused": 0, "oversized": 0, "undelivered": 0}


def test_link_without_qos_has_no_priorities() -> None:
    with router() as accepting, client_of(accepting, transport__unicast__qos__enabled=False) as connecting:
        (link,) = connecting.info.links()

        assert (link.priorities, link.reliability) == (None, None)
        assert not connecting.info.transports()[0].is_qos


def test_events_tell_sessions_that_come_and_go() -> None:
    with router() as accepting:
        transports = accepting.info.declare_transport_events_listener()
        links = accepting.info.declare_link_events_listener()
        connecting = client_of(accepting)
        came, added = transports.recv(), links.recv()
        connecting.close()
        went, removed = transports.recv(), links.recv()

        assert (came.kind, went.kind) == (SampleKind.PUT, SampleKind.DELETE)
        assert came.transport == went.transport
        assert came.transport.zid == connecting.zid()
        assert (added.kind, removed.kind) == (SampleKind.PUT, SampleKind.DELETE)
        assert added.link == removed.link
        assert added.link.src == where(accepting)
        assert repr(came).startswith("TransportEvent { kind: Put, transport: Transport { zid: ")
        assert repr(removed).startswith("LinkEvent { kind: Delete, link: Link { zid: ")


def test_history_tells_what_is_there_once() -> None:
    with router() as accepting, client_of(accepting) as connecting:
        with connecting.info.declare_transport_events_listener(history=True) as listener:
            assert listener.recv().transport == connecting.info.transports()[0]
            assert listener.try_recv() is None
        with connecting.info.declare_link_events_listener(history=True) as listener:
            assert listener.recv().link == connecting.info.links()[0]


def test_without_history_only_the_end_of_what_is_there_is_told() -> None:
    with router() as accepting:
        connecting = client_of(accepting)
        eventually(accepting.info.transports)
        listener = accepting.info.declare_transport_events_listener()
        connecting.close()

        assert listener.recv().kind is SampleKind.DELETE
        assert listener.try_recv() is None


def test_the_loss_of_a_router_is_told_to_functions() -> None:
    told: list[Any] = []
    accepting = router()
    with client_of(accepting) as connecting:
        listener = connecting.info.declare_transport_events_listener(told.append)
        accepting.close()
        eventually(lambda: told)

        assert told[0].kind is SampleKind.DELETE
        assert listener.handler is None


def test_undeclared_listener_is_told_nothing() -> None:
    with router() as accepting:
        told: list[Any] = []
        listener = accepting.info.declare_link_events_listener(told.append)
        listener.undeclare()
        with pytest.raises(elea.ZError):
            listener.undeclare()
        with client_of(accepting):
            eventually(accepting.info.transports)

        assert told == []
        assert accepting._runtime.links.link_listeners == []
