"""The rules on well-formed messages of the early dialects."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from elea.model.errors import RuleBroken
from elea.protocol.early import Terms, check_declaration, check_message, check_packet, declared_id
from elea.wire.xrce2017 import messages as xrce2017
from elea.wire.zenoh2018.messages import (
    Accept,
    BindingDecl,
    CommitDecl,
    Conduit,
    Declare,
    ForgetResourceDecl,
    ForgetSelectionDecl,
    Frag,
    Migrate,
    Open,
    PublisherDecl,
    Pull,
    ResourceDecl,
    RSpace,
    Scout,
    SelectionDecl,
    StreamData,
    SubscriberDecl,
    SubscriberDeclParams,
    SubscriptionModeId,
    Synch,
)

TERMS = Terms(snsize=14, conduits=2)


class Decorated(NamedTuple):
    markers: tuple[object, ...]
    message: object


def resource(rid: int, name: bytes = b"zenoh://a") -> ResourceDecl:
    return ResourceDecl(rid, name)


def subscriber(id: int) -> SubscriberDecl:
    return SubscriberDecl(id, SubscriptionModeId.PushModeId)


def periodic(period: int, duration: int) -> SubscriberDecl:
    return SubscriberDecl(2, SubscriptionModeId.PeriodicPushModeId, SubscriberDeclParams(0, period, duration))


def stream(sn: int = 0) -> StreamData:
    return StreamData(sn, id=2, payload=b"")


def declare(*declarations: PublisherDecl | ResourceDecl | CommitDecl, committed: bool = False) -> Declare:
    return Declare(0, declarations, committed=committed)


def broken_by_message(message: object) -> tuple[str, str]:
    with pytest.raises(RuleBroken) as caught:
        check_message(message, TERMS)
    return caught.value.rule, caught.value.reaction


def broken_by_declaration(declaration: object, *, committed: bool = False) -> tuple[str, str]:
    with pytest.raises(RuleBroken) as caught:
        check_declaration(declaration, committed=committed)
    return caught.value.rule, caught.value.reaction


@pytest.mark.parametrize(
    "message",
    [
        Scout(1),
        Open(1, b"1" * 16, 0, ()),
        Accept(b"", b"1", 0),
        stream(16383),
        Synch(reliable=True, sn=5, count=8190),
        Synch(reliable=True, sn=5, count=None),
        Synch(reliable=False, sn=5, count=None),
        Pull(0, 2, maxSamples=1),
        Migrate(1, 16383, 0),
        declare(),
        declare(PublisherDecl(2), CommitDecl(1)),
        declare(PublisherDecl(2), committed=True),
    ],
)
def test_good_messages_pass(message: object) -> None:
    check_message(message, TERMS)


@pytest.mark.parametrize(
    ("message", "rule", "reaction"),
    [
        (Open(1, b"", 0, ()), "PEER_ID", "close-5"),
        (Open(1, b"1" * 17, 0, ()), "PEER_ID", "close-5"),
        (Accept(b"1", b"", 0), "PEER_ID", "close-5"),
        (stream(16384), "SN_RANGE", "close-255"),
        (Migrate(1, 16384, 0), "SN_RANGE", "close-255"),
        (Migrate(1, 0, 16384), "SN_RANGE", "close-255"),
        (Synch(reliable=True, sn=0, count=0), "SYNCH_COUNT", "ignore"),
        (Synch(reliable=True, sn=0, count=8191), "SYNCH_COUNT", "ignore"),
        (Synch(reliable=False, sn=5, count=1), "SYNCH_COUNT", "ignore"),
        (Pull(0, 2, maxSamples=0), "MAX_SAMPLES", "close-5"),
        (xrce2017.Pull(0, 2, pullId=0), "PULL_ID", "close-5"),
        (
            declare(CommitDecl(1), PublisherDecl(2)),
            "COMMIT_NOT_LAST",
            "close-255",
        ),
        (declare(CommitDecl(1), CommitDecl(2)), "COMMIT_NOT_LAST", "close-255"),
        (declare(CommitDecl(1), committed=True), "COMMIT_IN_COMMITTED", "close-6"),
    ],
)
def test_bad_messages_are_refused(message: object, rule: str, reaction: str) -> None:
    assert broken_by_message(message) == (rule, reaction)


@pytest.mark.parametrize(
    "declaration",
    [
        resource(2),
        resource((1 << 63) - 2, b"zenoh://a/*#transient"),
        PublisherDecl(1),
        PublisherDecl(2),
        subscriber(3),
        periodic(16384, 16383),
        SelectionDecl((1 << 63) - 1, b"zenoh://a"),
        BindingDecl(1, 3),
        CommitDecl(1),
        ForgetResourceDecl(2),
        ForgetSelectionDecl(1),
    ],
)
def test_good_declarations_pass(declaration: object) -> None:
    check_declaration(declaration)


@pytest.mark.requirement("Z18-ENC-06", "Z18-RES-02", "Z18-DCL-07", "Z18-DCL-17")
@pytest.mark.parametrize(
    ("declaration", "rule"),
    [
        (resource(0), "ID_PARITY"),
        (resource(3), "ID_PARITY"),
        (resource(1 << 63), "ID_RANGE"),
        (resource(2, b"zenoh://a b"), "RESOURCE_NAME"),
        (resource(2, b"\xff\xfe"), "RESOURCE_NAME"),
        (resource(2, b"zenoh://a/property"), "RESOURCE_NAME"),
        (resource(2, b"zenoh://a/property#transient"), "RESOURCE_NAME"),
        (PublisherDecl(0), "ID_PARITY"),
        (PublisherDecl(1 << 63), "ID_RANGE"),
        (subscriber(0), "ID_PARITY"),
        (periodic(100, 100), "PERIOD"),
        (periodic(100, 0), "PERIOD"),
        (periodic(0, 0), "PERIOD"),
        (SelectionDecl(2, b"zenoh://a"), "ID_PARITY"),
        (BindingDecl(2, 3), "ID_PARITY"),
        (BindingDecl(3, 2), "ID_PARITY"),
        (ForgetResourceDecl(1), "ID_PARITY"),
        (ForgetSelectionDecl(2), "ID_PARITY"),
    ],
)
def test_bad_declarations_are_refused(declaration: object, rule: str) -> None:
    assert broken_by_declaration(declaration) == (rule, "result-5")
    assert broken_by_declaration(declaration, committed=True) == (rule, "close-6")


def test_message_check_leaves_declarations_to_their_commit() -> None:
    check_message(declare(resource(3)), TERMS)


def test_supported_conduits_and_spaces_pass() -> None:
    check_packet(Decorated((Conduit(1), Frag(16383), RSpace(500)), stream()), TERMS)


def test_unsupported_conduit_ends_the_session() -> None:
    with pytest.raises(RuleBroken, match="conduit 2") as caught:
        check_packet(Decorated((Conduit(2),), stream()), TERMS)

    assert (caught.value.rule, caught.value.reaction) == ("UNSUPPORTED_CONDUIT", "close-255")


def test_conduit_of_a_message_without_channel_is_ignored() -> None:
    check_packet(Decorated((Conduit(500),), Scout(1)), TERMS)


def test_fragment_base_is_a_serial_number() -> None:
    with pytest.raises(RuleBroken, match="snBase 16384"):
        check_packet(Decorated((Frag(16384),), stream()), TERMS)


def test_packet_check_includes_the_message() -> None:
    with pytest.raises(RuleBroken, match="SN_RANGE"):
        check_packet(Decorated((), stream(1 << 14)), TERMS)


@pytest.mark.parametrize(
    ("declaration", "id"),
    [
        (resource(2), 2),
        (PublisherDecl(4), 4),
        (SelectionDecl(3, b"zenoh://a"), 3),
        (BindingDecl(5, 7), 5),
        (CommitDecl(9), 0),
    ],
)
def test_result_names_the_failing_declaration(declaration: object, id: int) -> None:
    assert declared_id(declaration) == id
