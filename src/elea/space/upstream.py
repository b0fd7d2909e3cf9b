"""What we ask of our gateways, on behalf of our own session and of our clients.

A client asks its router, a peer its routers: each interest is repeated there under an id of that link, and is answered
in full only when all gateways have answered. Equal interests share one. Spec: zenoh-1 sections 9.3, 13.1, 13.4.
"""

from __future__ import annotations

from collections.abc import Iterable

from elea.model.limits import INTEREST_TIMEOUT
from elea.space.deadlines import Deadlines
from elea.space.face import Interest, InterestDone, InterestMode, Kinds
from elea.space.interests import Asked
from elea.space.neighbour import Neighbour

__all__ = ["INTEREST_TIMEOUT", "Upstream", "Wanted"]

_Likeness = tuple[InterestMode, Kinds, str | None, bool]


class Wanted:
    """One interest of ours at one gateway."""

    __slots__ = ("askers", "finalised", "gateway", "id", "likeness", "ticket", "waiting")

    def __init__(self, gateway: Neighbour, interest_id: int, likeness: _Likeness) -> None:
        self.gateway = gateway
        self.id = interest_id
        self.likeness = likeness
        self.askers: list[Asked] = []
        self.waiting: list[Asked] = []
        """Those of the askers whose current part waits for this gateway."""
        self.finalised = False
        self.ticket: int | None = None

    @property
    def current_only(self) -> bool:
        """Whether this is over once it is answered."""
        return self.likeness[0] is InterestMode.CURRENT


class Upstream:
    """Our interests at all gateways."""

    def __init__(self) -> None:
        self._by_id: dict[Neighbour, dict[int, Wanted]] = {}
        self._shared: dict[Neighbour, dict[_Likeness, Wanted]] = {}
        self._by_key: dict[Neighbour, dict[str, list[Wanted]]] = {}
        self._of: dict[Asked, list[Wanted]] = {}
        self._deadlines: Deadlines[Wanted] = Deadlines()
        self.timeout = INTEREST_TIMEOUT

    def ask(self, asked: Asked, gateways: Iterable[Neighbour], now: float) -> None:
        """Repeat an interest to the gateways; `asked.waiting` counts those that have yet to answer."""
        for gateway in gateways:
            wanted = self._wanted(asked, gateway, asked.mode)
            if not wanted.finalised:
                wanted.waiting.append(asked)
                asked.waiting += 1
                if wanted.ticket is None:
                    wanted.ticket = self._deadlines.add(now + self.timeout, wanted)

    def renew(self, asked: Asked, gateway: Neighbour) -> None:
        """Repeat a standing interest to a new gateway.

        Always with a current part (13.1): what the lost gateway had told us is withdrawn and must come again. Nobody
        waits for it: its asker was answered when the last gateway went.
        """
        self._wanted(asked, gateway, InterestMode.CURRENT_FUTURE)

    def find(self, gateway: Neighbour, interest_id: int | None) -> Wanted | None:
        """Our interest of that id."""
        return None if interest_id is None else self._by_id.get(gateway, {}).get(interest_id)

    def finalise(self, wanted: Wanted) -> list[Asked]:
        """The gateway has told all. Returns the interests that are thereby answered in full."""
        wanted.finalised = True
        if wanted.current_only:
            self._forget(wanted)
        return self._release(wanted)

    def withdraw(self, asked: Asked) -> None:
        """An interest is over; what nobody else asks for is withdrawn at the gateways."""
        for wanted in self._of.pop(asked, ()):
            wanted.askers.remove(asked)
            if asked in wanted.waiting:
                wanted.waiting.remove(asked)
            if not wanted.askers:
                self._forget(wanted)
                if not wanted.current_only:
                    wanted.gateway.send(InterestDone(wanted.id))

    def drop(self, gateway: Neighbour) -> list[Asked]:
        """Forget a gateway that is gone. Returns the interests that waited for nobody else."""
        answered: list[Asked] = []
        for wanted in list(self._by_id.get(gateway, {}).values()):
            self._forget(wanted)
            answered += self._release(wanted)
        self._by_id.pop(gateway, None)
        self._shared.pop(gateway, None)
        self._by_key.pop(gateway, None)
        return answered

    def denies(self, gateway: Neighbour, kind: Kinds, key: str) -> bool:
        """Whether the gateway has told us all about exactly this key, so that what we do not know is not there.

        13.1: 1.10.2 filters nothing on a wildcard, and neither do we.
        """
        if "*" in key:
            return False
        known = self._by_key.get(gateway, {}).get(key, ())
        return any(wanted.finalised and wanted.likeness[1] & kind for wanted in known)

    def next_deadline(self) -> float | None:
        """When a gateway's silence is taken for an answer."""
        return self._deadlines.next()

    def expire(self, now: float) -> list[Asked]:
        """Stop waiting for silent gateways. Their interests stay open: silence is no proof that nobody is there."""
        answered: list[Asked] = []
        for wanted in self._deadlines.due(now):
            wanted.ticket = None
            if wanted.current_only:
                self._forget(wanted)
            answered += self._release(wanted)
        return answered

    def _wanted(self, asked: Asked, gateway: Neighbour, mode: InterestMode) -> Wanted:
        likeness = (mode, asked.kinds, asked.key, asked.aggregate)
        shared = self._shared.setdefault(gateway, {})
        wanted = shared.get(likeness)
        if wanted is None:
            known = self._by_id.setdefault(gateway, {})
            wanted = Wanted(gateway, gateway.interest_ids.fresh(known), likeness)
            known[wanted.id] = wanted
            if not wanted.current_only:
                shared[likeness] = wanted
                if asked.key is not None:
                    self._by_key.setdefault(gateway, {}).setdefault(asked.key, []).append(wanted)
            gateway.send(Interest(wanted.id, mode, asked.kinds, asked.key, asked.aggregate))
        wanted.askers.append(asked)
        self._of.setdefault(asked, []).append(wanted)
        return wanted

    def _release(self, wanted: Wanted) -> list[Asked]:
        self._call_off(wanted)
        waited, wanted.waiting = wanted.waiting, []
        for asked in waited:
            asked.waiting -= 1
        return [asked for asked in waited if not asked.waiting]

    def _forget(self, wanted: Wanted) -> None:
        self._call_off(wanted)
        gateway, (_, _, key, _) = wanted.gateway, wanted.likeness
        del self._by_id[gateway][wanted.id]
        for asked in wanted.askers:
            self._of[asked].remove(wanted)
        if wanted.current_only:
            return
        del self._shared[gateway][wanted.likeness]
        if key is not None:
            listed = self._by_key[gateway][key]
            listed.remove(wanted)
            if not listed:
                del self._by_key[gateway][key]

    def _call_off(self, wanted: Wanted) -> None:
        if wanted.ticket is not None:
            self._deadlines.call_off(wanted.ticket)
            wanted.ticket = None
