"""How a link is waited for awake; what is read off it is in `test_link.py`."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any, cast

import pytest

from elea.io import reading
from elea.io.link import SocketLink
from elea.io.reading import BatchReader
from elea.io.sending import Outbox
from elea.io.timers import monotonic
from elea.io.vigil import Vigil
from elea.wire import compiled
from tests.unit.io.ends import pair, prefixed, until

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "sched_yield"), reason="the system has no sched_yield: nobody waits awake"),
    pytest.mark.skipif(compiled(), reason="plain only: machine code takes no stand-in for the outbox"),
]


def test_who_begins_to_wait_gives_way_before_the_first_look(monkeypatch: pytest.MonkeyPatch) -> None:
    with pair("tcp/127.0.0.1:0") as (near, far):
        reader = BatchReader(cast(Any, far))
        vigil = Vigil()
        vigil.ended(0.0)  # the wait before was short
        reader.keep_vigil(vigil, cast(Outbox, SimpleNamespace(batches=1)))
        came_meanwhile: list[bool] = []

        def give_way() -> None:
            near.send(prefixed(b"answer"))
            until(lambda: not cast(SocketLink, near).undelivered())
            came_meanwhile.append(reader.has_more)

        monkeypatch.setattr(reading, "give_way", give_way)

        assert reader.fill_awake(monotonic()) == 1
        assert came_meanwhile == [False]
        assert reader.cut() == b"answer"
