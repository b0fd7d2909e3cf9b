"""Quality of service and the small enumerations."""

from __future__ import annotations

import pytest

from elea.model.qos import (
    CongestionControl,
    ConsolidationMode,
    Durability,
    Locality,
    Priority,
    Qos,
    QueryTarget,
    Reliability,
    Role,
    SampleKind,
)


@pytest.mark.parametrize(
    ("raw", "qos"),
    [
        (0x05, Qos()),
        (0x08, Qos(Priority.CONTROL, CongestionControl.BLOCK)),
        (0x0D, Qos(congestion_control=CongestionControl.BLOCK)),
        (0x15, Qos(express=True)),
        (0x21, Qos(Priority.REAL_TIME, CongestionControl.BLOCK_FIRST)),
        (0x37, Qos(Priority.BACKGROUND, CongestionControl.BLOCK_FIRST, express=True)),
    ],
)
def test_packed_value(raw: int, qos: Qos) -> None:
    assert Qos.from_raw(raw) == qos
    assert qos.raw == raw


def test_block_wins_over_block_first() -> None:
    assert Qos.from_raw(0x2D).congestion_control is CongestionControl.BLOCK


def test_undefined_bits_are_ignored() -> None:
    assert Qos.from_raw(0xC5) == Qos()


def test_numbers_are_those_of_eclipse_zenoh() -> None:
    assert [int(priority) for priority in Priority] == list(range(8))
    assert Priority.NUM == 7
    assert (Priority.DEFAULT, Priority.MAX, Priority.MIN) == (
        Priority.DATA,
        Priority.REAL_TIME,
        Priority.BACKGROUND,
    )
    assert (CongestionControl.DROP, CongestionControl.BLOCK, CongestionControl.BLOCK_FIRST) == (0, 1, 2)
    assert (Reliability.BEST_EFFORT, Reliability.RELIABLE) == (0, 1)
    assert (SampleKind.PUT, SampleKind.DELETE) == (0, 1)
    assert (QueryTarget.BEST_MATCHING, QueryTarget.ALL, QueryTarget.ALL_COMPLETE) == (0, 1, 2)
    assert [mode.name for mode in ConsolidationMode] == ["AUTO", "NONE", "MONOTONIC", "LATEST"]
    assert (Locality.SESSION_LOCAL, Locality.REMOTE, Locality.ANY) == (0, 1, 2)


def test_members_print_with_their_class() -> None:
    assert str(Priority.DATA) == repr(Priority.DEFAULT) == "Priority.DATA"


@pytest.mark.parametrize(
    ("role", "code", "flag", "text"),
    [(Role.ROUTER, 0, 1, "router"), (Role.PEER, 1, 2, "peer"), (Role.CLIENT, 2, 4, "client")],
)
def test_role_has_two_numbers(role: Role, code: int, flag: int, text: str) -> None:
    assert (role.code, role.value, str(role)) == (code, flag, text)
    assert Role.from_code(code) is Role(flag) is role


def test_broker_is_the_routers_other_name() -> None:
    assert Role["BROKER"] is Role.ROUTER
    assert repr(Role.BROKER) == "Role.ROUTER"


@pytest.mark.parametrize("code", [-1, 3, 4])
def test_reserved_role_codes_are_refused(code: int) -> None:
    with pytest.raises(ValueError, match="not the code of a role"):
        Role.from_code(code)


def test_durability_has_words_and_order() -> None:
    assert [str(durability) for durability in Durability] == ["volatile", "transient", "persistent"]
    assert Durability.parse("transient") is Durability.TRANSIENT
    assert Durability.VOLATILE < Durability.TRANSIENT < Durability.PERSISTENT
    assert repr(Durability.VOLATILE) == "Durability.VOLATILE"


def test_unknown_durability_is_refused() -> None:
    with pytest.raises(ValueError, match="choose volatile, transient or persistent"):
        Durability.parse("Persistent")
