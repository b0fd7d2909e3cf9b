"""Finding nodes (§5.4)."""

from __future__ import annotations

from elea.conformance.registry import Failed, check
from elea.conformance.talk import Endpoint

__all__: list[str] = []

EVERYBODY = 0b1111


@check("Z18-SCO-01", "Z18-SCO-02", "Z18-SCO-03", module="discovery")
def a_scout_is_answered_by_hello(endpoint: Endpoint) -> None:
    with endpoint.talk() as talk:
        talk.say(talk.m.Scout(EVERYBODY))
        mask = talk.hear("Hello").mask
        if not mask & EVERYBODY:
            raise Failed(f"mask {mask} says nothing")


@check("Z18-SCO-01", module="discovery")
def unknown_bits_of_a_mask_are_ignored(endpoint: Endpoint) -> None:
    with endpoint.talk() as talk:
        talk.say(talk.m.Scout(EVERYBODY | 1 << 13 | 1 << 40))
        talk.hear("Hello")


@check("Z18-SCO-02", module="discovery")
def a_scout_for_others_is_not_answered(endpoint: Endpoint) -> None:
    with endpoint.talk() as talk:
        talk.say(talk.m.Scout(EVERYBODY))
        mask = talk.hear("Hello").mask
        talk.say(talk.m.Scout(EVERYBODY & ~mask))
        talk.silent("Hello")


@check("Z18-SCO-04", module="discovery")
def locators_are_written_as_the_papers_do(endpoint: Endpoint) -> None:
    with endpoint.talk() as talk:
        talk.say(talk.m.Scout(EVERYBODY))
        for locator in talk.hear("Hello").locators:
            protocol, slash, address = locator.partition(b"/")
            if not slash or not address or not protocol.isalpha():
                raise Failed(f"{locator!r} is no locator")


@check("Z18-SCO-06", module="discovery")
def a_session_needs_no_scouting(endpoint: Endpoint) -> None:
    with endpoint.opened() as talk:
        talk.alive()
