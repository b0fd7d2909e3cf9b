"""What a locator says of an early session, behind its address: `udp/[::]:7448?dialect=zenoh2018;mtu=512;sn=7`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from elea.io.link import Link
from elea.io.linkerrors import LocatorError
from elea.io.locator import Locator, nearest
from elea.io.udp import path_mtu
from elea.model.limits import EARLY_STREAM_WINDOW_BYTES, EARLY_WINDOW_BYTES, MAX_PACKET, SN_BITS_MAX, SN_BITS_MIN
from elea.model.qos import Role
from elea.protocol.early.profile import PAPERS, PROFILES, Profile
from elea.protocol.early.terms import Offer

__all__ = ["Options", "options_of"]

UDP_MTU: Final = 1_472
"""Bytes of a datagram that an Ethernet carries in one piece (Z18-FRM-04)."""

PACKETS: Final = 8
"""How many of the largest packets a window has: if one of a few were lost, all the others would wait for it."""

LEAST_MTU: Final = 20
LIFETIME: Final = 2.0
"""Seconds a datagram may wander: numbers of few bits are not used up faster than that."""

DATAGRAM_BITS: Final = 21
"""Bits of our own serial numbers on datagram links: enough that nobody ever waits for one."""

SHORT_MTU: Final = 64
"""Below it, our own id is cut to 8 bytes: Accept names two (Z18-FRM-08)."""

CONDUITS: Final = 4
COMMIT_MODE: Final = 8
"""Transactions another node may send ahead of their results."""


@dataclass(frozen=True, slots=True)
class Options:
    """What was said; None is left to the link."""

    mtu: int | None = None
    sn_bits: int | None = None
    lease: float | None = None
    conduits: int = CONDUITS
    profile: Profile = PAPERS
    also: tuple[str, ...] = ()
    """Further locators of the same node: the session uses links to all of them (Z18-SES-11)."""

    def offer(self, pid: bytes, link: Link, lease: float, role: Role, *, is_durable: bool = False) -> Offer:
        """What this node brings to a session over a link."""
        is_loose = not link.reliable or any(one.startswith("udp/") for one in self.also)
        mtu = min(link.mtu, UDP_MTU if is_loose else MAX_PACKET) if self.mtu is None else self.mtu
        made = Offer(
            pid[:8] if mtu < SHORT_MTU else pid,
            # A node that knows no KeepAlive is promised none.
            lease=0.0 if not self.profile.acknowledges else lease if self.lease is None else self.lease,
            profile=self.profile,
            conduits=self.conduits,
            commit_mode=COMMIT_MODE,
            mtu=mtu,
            largest=self._largest(link, mtu),
            lifetime=LIFETIME if is_loose else 0.0,
            window_bytes=EARLY_STREAM_WINDOW_BYTES if link.reliable else EARLY_WINDOW_BYTES,
            is_broker=role is Role.ROUTER,
            is_durable=is_durable,
            is_peer=role is Role.PEER,
        )
        if self.sn_bits is not None:
            return replace(made, sn_bits=self.sn_bits)
        if not is_loose or mtu < SHORT_MTU or self.profile is not PAPERS:
            return made
        return replace(made, sn_bits=DATAGRAM_BITS)

    def _largest(self, link: Link, mtu: int) -> int:
        """What a datagram may have between nodes that both take more than an Ethernet carries; 0 for no more."""
        if link.streamed or link.reliable or self.mtu is not None or self.profile is not PAPERS:
            return 0
        return max(mtu, min(path_mtu(link.remote), link.mtu, EARLY_WINDOW_BYTES // PACKETS))


def options_of(text: str) -> Options:
    """The options of a locator.

    Raises:
        LocatorError: one of them makes no sense.
    """
    if not text:
        return Options()
    said = dict(Locator.parse(text).metadata)

    def number(name: str, least: int, most: int) -> int | None:
        value = said.get(name)
        if value is None:
            return None
        if not value.isdecimal() or not least <= int(value) <= most:
            raise LocatorError(text, f"{name}={value} is no number from {least} to {most}")
        return int(value)

    lease = number("lease", 0, 1 << 32)
    return Options(
        number("mtu", LEAST_MTU, MAX_PACKET),
        number("sn", SN_BITS_MIN, SN_BITS_MAX),
        None if lease is None else lease / 1000,
        number("conduits", 1, 1 << 16) or CONDUITS,
        _profile(text, said.get("profile")),
        _also(text, said),
    )


def _also(text: str, said: dict[str, str]) -> tuple[str, ...]:
    """Addresses, separated by commas, at which the same node is reached over further links."""
    found: list[str] = []
    for one in filter(None, said.get("also", "").split(",")):
        where = Locator.parse(one)
        if where.protocol == "udp" and (text.startswith("udp/") or any(other.startswith("udp/") for other in found)):
            raise LocatorError(text, f"also={one} is a second datagram link", "one link of datagrams is enough")
        found.append(f"{one}?dialect={said.get('dialect', '')}")
    return tuple(found)


def _profile(text: str, name: str | None) -> Profile:
    if name is None:
        return PAPERS
    if name not in PROFILES:
        raise LocatorError(text, f"unknown profile {name!r}", nearest(name, sorted(PROFILES)))
    return PROFILES[name]
