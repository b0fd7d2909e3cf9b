"""Conduits that several nodes receive on."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from elea.protocol.early.generation import ZENOH2018
from elea.protocol.early.multicast import MulticastSender
from elea.protocol.early.numbered import stream_entry
from elea.protocol.early.receiving import Receiver
from elea.protocol.early.sending import Sender

TIMEOUT = 0.1


class Group:
    """A sender and its members, in virtual time; every packet and every AckNack may be lost."""

    def __init__(self, members: int, *, loss: float = 0.0, seed: int = 0, sn_bits: int = 7, window: int = 16) -> None:
        self.channel = MulticastSender(Sender(sn_bits, reliable=True, mtu=64, window=window))
        self.receivers: dict[bytes, Receiver[Any]] = {}
        self.got: dict[bytes, list[bytes]] = {}
        self.now = 0.0
        self._chance = Random(seed)
        self._loss = loss
        for number in range(members):
            self.join(b"%d" % number)

    def join(self, member: bytes) -> None:
        bits = self.channel.sender.sn_bits
        self.receivers[member] = Receiver(bits)
        self.receivers[member].synch(self.channel.join(member), 0, False)
        self.got[member] = []

    def send(self, queue: list[bytes]) -> None:
        packets, used, _ = self.channel.sender.take(queue, len(queue), self.now, 1 << 30)
        del queue[:used]
        self.spread(packets)

    def spread(self, packets: list[bytes]) -> None:
        """The same packets to all of them."""
        for packet in packets:
            for member in self.receivers:
                if self._chance.random() >= self._loss:
                    self._arrive(member, packet)

    def _arrive(self, member: bytes, packet: bytes) -> None:
        receiver = self.receivers[member]
        for message, _ in ZENOH2018.codec.messages(packet):
            receiver.arrive(message.sn, message.sync, message, len(message.payload))
        self.got[member] += [message.payload for _, message in receiver.ready()]

    def answer(self, member: bytes) -> None:
        """What a member says: what it lacks, of all that is under way."""
        receiver, sender = self.receivers[member], self.channel.sender
        receiver.synch(sender.next, self.channel.missing(member), True)
        sn, mask = receiver.answer()
        if self._chance.random() >= self._loss:
            again = self.channel.acknowledged(member, sn, mask, self.now, TIMEOUT)
            assert again is not None
            self.spread(again)


def entries(count: int) -> list[bytes]:
    return [part for number in range(count) for part in stream_entry(2, b"%d" % number, reliable=True)]


@pytest.mark.requirement("Z18-CON-05")
@pytest.mark.parametrize("loss", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(5))
def test_every_member_gets_everything_in_order(loss: float, seed: int) -> None:
    group = Group(3, loss=loss, seed=seed)
    queue = entries(500)

    for _ in range(5_000):
        group.send(queue)
        for member in group.receivers:
            group.answer(member)
        group.now += TIMEOUT
        if not queue and not len(group.channel.sender):
            break

    wanted = [b"%d" % number for number in range(500)]
    assert group.got == dict.fromkeys(group.receivers, wanted)
    assert len(group.channel.sender) == 0


@pytest.mark.requirement("Z18-CON-05")
def test_a_message_is_held_until_every_member_has_it() -> None:
    group = Group(2, window=4)
    queue = entries(10)
    group.send(queue)
    assert (len(group.channel.sender), len(queue)) == (4, 12)

    group.answer(b"0")
    group.send(queue)
    assert (len(group.channel.sender), len(queue)) == (4, 12), "one of two has not acknowledged"
    assert [group.channel.missing(member) for member in (b"0", b"1")] == [0, 4]

    group.answer(b"1")
    group.send(queue)
    assert (len(group.channel.sender), len(queue)) == (4, 4)


def test_who_leaves_holds_up_nobody() -> None:
    group = Group(2, window=4)
    group.send(entries(4))
    group.answer(b"0")

    group.channel.leave(b"1", group.now)
    group.channel.leave(b"1", group.now)

    assert (len(group.channel.sender), len(group.channel)) == (0, 1)


def test_who_joins_later_begins_with_what_comes_next() -> None:
    group = Group(1)
    group.send(entries(3))
    group.join(b"late")
    queue = [*stream_entry(2, b"new", reliable=True)]
    group.send(queue)
    for member in (b"0", b"late"):
        group.answer(member)

    assert (group.got[b"0"], group.got[b"late"]) == ([b"0", b"1", b"2", b"new"], [b"new"])
    assert len(group.channel.sender) == 0


def test_what_cannot_be_is_ignored() -> None:
    group = Group(1, window=4)
    group.send(entries(4))

    assert group.channel.acknowledged(b"stranger", 1, None, 0.0, TIMEOUT) is None
    assert group.channel.acknowledged(b"0", 5, None, 0.0, TIMEOUT) is None
    assert group.channel.acknowledged(b"0", 100, 3, 0.0, TIMEOUT) is None
    assert (group.channel.ignored, len(group.channel.sender)) == (3, 4)


def test_what_one_asks_for_is_not_sent_again_for_each() -> None:
    group = Group(3, window=4)
    packets, _, _ = group.channel.sender.take(entries(4), 8, 0.0, 1 << 30)
    assert packets

    again = [group.channel.acknowledged(member, 0, 0, 1.0, TIMEOUT) for member in (b"0", b"1", b"2")]

    assert [len(one or ()) for one in again] == [1, 0, 0]
