"""Whoever asks hears that there is no more, however many answers wait for it."""

from __future__ import annotations

import pytest

import elea
from elea.io.dispatch import Mailbox
from elea.model.limits import MAILBOX as LIMIT
from elea.node.localface import EXPIRED
from elea.space.face import ResponseFinal
from tests.unit.api.logkeeper import wait_until


@pytest.mark.parametrize("is_late", [False, True])
def test_the_end_is_taken_beyond_the_limits_of_a_full_mailbox(is_late: bool) -> None:
    config = elea.Config.from_json5("{scouting: {multicast: {enabled: false}, delay: 0}, listen: {endpoints: []}}")
    brought: list[object] = []
    with elea.open(config) as session:
        own = session._node.local
        box = Mailbox(brought.append)
        while box.add("an answer"):
            pass
        own._asking[77] = box
        if is_late:
            own._expired(77)
        else:
            own._finished(77)
        box.empty()
        wait_until(lambda: len(brought) > LIMIT, "another thread that brings them, too")

    assert brought[-1] is EXPIRED if is_late else isinstance(brought[-1], ResponseFinal)
    assert box.dropped == 1  # the one that showed that it was full
