"""Targets with a bug put in on purpose, so that a test can see the harness find it. Never part of a plain run."""

from __future__ import annotations

import os
from time import process_time
from typing import Final

from elea.model.errors import Malformed
from tests.fuzz.laws import require
from tests.fuzz.target import Target

__all__ = ["PLANTED"]

TRIGGER: Final = 0xEE


def _key_error(data: bytes) -> object:
    return {0: "known"}[TRIGGER in data]


def _slow(data: bytes) -> object:
    start = process_time()
    while TRIGGER in data and process_time() - start < 0.3:
        pass
    return None


def _greedy(data: bytes) -> object:
    return b"x" * (33 << 20 if TRIGGER in data else 0)


def _huge(data: bytes) -> object:
    return bytes(1 << 40 if TRIGGER in data else 0)


def _endless(data: bytes) -> object:
    while TRIGGER in data:
        pass
    return None


def _fatal(data: bytes) -> object:
    if TRIGGER in data:
        os.abort()
    return None


def _refusing(data: bytes) -> object:
    if TRIGGER in data:
        raise Malformed("planted", 0, "refused as documented")
    return None


def _lawless(data: bytes, _: object) -> None:
    require(TRIGGER not in data, "no input has the trigger", data)


def _target(name: str, decode: object) -> Target:
    return Target(name, decode, lambda data, value: None, (Malformed,), lambda: [b"abc"], lambda: [bytes([TRIGGER])])  # type: ignore[arg-type]


PLANTED: Final[dict[str, Target]] = {
    target.name: target
    for target in (
        _target("planted-key-error", _key_error),
        _target("planted-slow", _slow),
        _target("planted-greedy", _greedy),
        _target("planted-huge", _huge),
        _target("planted-endless", _endless),
        _target("planted-fatal", _fatal),
        _target("planted-none", _refusing),
        Target("planted-law", len, _lawless, (), lambda: [b"abc"], lambda: [bytes([TRIGGER])]),
    )
}
