"""Waiting for a link or a call, over real sockets."""

from __future__ import annotations

import os
import time

import pytest

from elea.io.errors import LinkClosed
from elea.io.lookout import Lookout, has_lookout
from tests.unit.io.ends import in_thread, pair

pytestmark = pytest.mark.skipif(not hasattr(os, "eventfd"), reason="the system has no eventfd")


def test_octets_end_the_wait_and_stay_to_be_read() -> None:
    with pair("tcp/127.0.0.1:0") as (near, far):
        lookout = Lookout(near)  # type: ignore[arg-type]
        assert not lookout.wait(0.01)

        far.send(b"octets")
        assert lookout.wait(None)
        assert lookout.wait(None)
        assert near.receive_into(memoryview(bytearray(10))) == 6  # type: ignore[union-attr]
        assert not lookout.wait(0.01)
        lookout.close()


def test_a_call_ends_one_wait_whenever_it_came() -> None:
    with pair("tcp/127.0.0.1:0") as (near, _):
        lookout = Lookout(near)  # type: ignore[arg-type]
        lookout.call()
        lookout.call()
        assert not lookout.wait(None)

        came: list[bool] = []
        thread = in_thread(lambda: came.append(lookout.wait(None)))
        time.sleep(0.05)
        assert not came
        lookout.call()
        thread.join(60)
        assert came == [False]
        assert not lookout.wait(0.01)
        lookout.close()


@pytest.mark.parametrize("is_ours", [True, False])
def test_the_end_of_the_link_ends_the_wait(is_ours: bool) -> None:
    with pair("tcp/127.0.0.1:0") as (near, far):
        lookout = Lookout(near)  # type: ignore[arg-type]
        came: list[bool] = []
        thread = in_thread(lambda: came.append(lookout.wait(None)))
        time.sleep(0.05)
        (near if is_ours else far).close()
        thread.join(60)

        assert came == [True]
        near.close()
        assert lookout.wait(None)  # at once
        lookout.close()


def test_a_closed_link_has_none() -> None:
    with pair("tcp/127.0.0.1:0") as (near, _):
        near.close()
        before = len(os.listdir("/proc/self/fd"))
        with pytest.raises(LinkClosed):
            Lookout(near)  # type: ignore[arg-type]
        assert len(os.listdir("/proc/self/fd")) == before


def test_a_wait_keeps_its_time() -> None:
    with pair("tcp/127.0.0.1:0") as (near, _):
        lookout = Lookout(near)  # type: ignore[arg-type]
        begun = time.monotonic()
        assert not lookout.wait(0.2)
        assert time.monotonic() - begun >= 0.2
        lookout.close()


def test_only_bare_streams_have_one() -> None:
    with pair("tcp/127.0.0.1:0") as (near, _):
        assert has_lookout(near)
    with pair("udp/127.0.0.1:0") as (near, _):
        assert not has_lookout(near)
