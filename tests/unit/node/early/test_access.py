"""Access rules hold for devices of the early dialects too: data, subscriptions, pulls, and what is stored."""

from __future__ import annotations

import pytest

import elea
from tests.hostile.access import config as made_config
from tests.hostile.access import policy, rule, rules
from tests.unit.node.early.client import EarlyClient
from tests.unit.node.early.conftest import locator_of
from tests.unit.node.test_dialect import await_subscriber

BLOCK = elea.CongestionControl.BLOCK
DEVICES = {"id": "devices", "link_protocols": ["udp"]}
PULL = 2


def set_rules(router: elea.Session, *, flows: tuple[str, ...]) -> None:
    """Links over udp may do nothing with `kept/secret`; the tests' other clients use tcp."""
    no = rule("no", "deny", ["kept/secret/**"], flows=flows)
    access = rules("allow", [no], [DEVICES], [policy(["no"], ["devices"])])
    router.set_rules(made_config(elea, "router", {"access_control": access}))


@pytest.mark.parametrize("tag", ["", "#transient"])
def test_what_a_device_may_not_put_is_neither_delivered_nor_stored(
    router: elea.Session, robot: elea.Session, tag: str
) -> None:
    set_rules(router, flows=("ingress",))
    got: list[str] = []
    with EarlyClient(locator_of(router, "zenoh2018", "udp")) as device:
        with robot.declare_subscriber("kept/**", lambda sample: got.append(str(sample.key_expr))):
            await_subscriber(router, "kept/**")
            device.write_data(f"zenoh://kept/secret/1{tag}", b"x")
            device.write_data(f"zenoh://kept/open/1{tag}", b"x")
            device.until(lambda: got)

        stored = [str(reply.ok.key_expr) for reply in robot.get("kept/**", timeout=10) if reply.ok is not None]

    assert got == ["kept/open/1"]
    assert stored == ["kept/open/1"]


def test_what_a_device_may_not_have_is_neither_pushed_nor_pulled(router: elea.Session, robot: elea.Session) -> None:
    set_rules(router, flows=("egress",))
    with EarlyClient(locator_of(router, "zenoh2018", "udp")) as device:
        device.subscribe(2, "zenoh://kept/**")
        await_subscriber(router, "kept/**")
        for key in ("kept/secret/1", "kept/open/1", "kept/secret/2", "kept/open/2"):
            robot.put(key, key.encode(), congestion_control=BLOCK)

        device.await_samples(2)
        device.talk(0.1)

        assert device.payloads() == [b"kept/open/1", b"kept/open/2"]


def test_a_subscriber_that_is_denied_is_told_so(router: elea.Session) -> None:
    set_rules(router, flows=("ingress",))
    with EarlyClient(locator_of(router, "zenoh2018", "udp")) as device:
        assert device.subscribe(2, "zenoh://kept/secret/1") == 7
        assert device.subscribe(4, "zenoh://kept/open/1") == 0


def test_names_and_properties_of_what_a_device_may_not_have_are_not_told(router: elea.Session) -> None:
    with EarlyClient(locator_of(router, "zenoh2018", "tcp"), b"owner") as owner:
        m = owner.m
        owner.declare(
            m.ResourceDecl(2, b"zenoh://kept/secret/1", (m.Property(3, b"x"),)),
            m.ResourceDecl(4, b"zenoh://kept/open/1", (m.Property(3, b"y"),)),
        )
        set_rules(router, flows=("egress",))
        with EarlyClient(locator_of(router, "zenoh2018", "udp")) as device:
            pulled = [b"kept/secret/1/property", b"kept/open/1/property", b"kept/secret$ls", b"kept/open$ls"]
            for number, name in enumerate(pulled):
                device.declare(m.SelectionDecl(2 * number + 1, b"zenoh://" + name))
                device.pull(2 * number + 1)
            device.until(lambda: sum(getattr(one, "prid", None) == 0 for one in device.seen) == len(pulled))

            answered = {one.id for one in device.seen if one.prid != 0}
            assert answered == {3, 7}
