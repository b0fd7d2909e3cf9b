"""A broker made of the full machines, for a tiny client to talk to: it echoes what is published, and answers pulls."""

from __future__ import annotations

from typing import Any

from elea.protocol.early.declarations import Change
from elea.protocol.early.generation import GENERATIONS
from elea.protocol.early.neighbour import Neighbour
from elea.protocol.early.numbered import stream_entry
from elea.protocol.early.session import Arrived, Session
from elea.protocol.early.terms import Offer

__all__ = ["Broker"]


class Broker:
    """One session of a broker."""

    def __init__(self, dialect: str = "zenoh2018", **offer: Any) -> None:
        self.generation = GENERATIONS[dialect]
        session = Session(
            self.generation,
            Offer(b"broker", is_broker=True, batches=False, **{"lease": 0.0, **offer}),
            initiates=False,
        )
        self.session = session
        self.neighbour = Neighbour(session, is_wanted=lambda space, subject: True)
        self.got: list[Arrived] = []
        self.changes: list[Change] = []
        self.ended: list[Any] = []
        self.pulled: list[bytes] = [b"1", b"2", b"3"]

    def receive(self, packet: bytes, now: float) -> None:
        for event in self.neighbour.receive(packet, now):
            if isinstance(event, Arrived):
                self.got.append(event)
                if type(event.message).__name__ == "Pull":
                    self._answer(event.message)
            elif isinstance(event, Change):
                self.changes.append(event)
                self.neighbour.announce()
            else:
                self.ended.append(event)

    def _answer(self, pull: Any) -> None:
        most = pull.maxSamples or len(self.pulled)
        for payload in self.pulled[:most]:
            self.session.send(stream_entry(pull.id, payload, reliable=True))
        del self.pulled[:most]
        if not self.pulled and self.generation.name == "zenoh2018":
            self.session.send(stream_entry(pull.id, b"", reliable=True, prid=0))

    def payloads(self, reliable: bool = True) -> list[bytes]:
        return [one.message.payload for one in self.got if one.reliable is reliable and hasattr(one.message, "payload")]
