"""Columns of CDR payloads: what a walk leaves to the decoder of single samples, and what it may cost."""

from __future__ import annotations

import pyarrow as pa
import pytest

from elea.columnar import cdrwalk
from elea.columnar.cdrcolumns import CdrColumns
from elea.content.cdr import CdrReader
from elea.content.schema import parse_idl
from tests.cdr import write

LISTS = parse_idl("struct T { sequence<sequence<sequence<string>>> a; };")["T"]
TEXTS = parse_idl("struct T { sequence<string> a; };")["T"]


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The payloads that are decoded one by one."""
    found: list[bytes] = []
    original = CdrReader.decode

    def decode(self: CdrReader, payload: bytes) -> dict[str, object]:
        found.append(payload)
        return original(self, payload)

    monkeypatch.setattr(CdrReader, "decode", decode)
    return found


@pytest.mark.parametrize(("count", "is_alone"), [(cdrwalk.RANKS, False), (cdrwalk.RANKS + 1, True)])
def test_long_sequences_of_texts_are_decoded_alone(count: int, is_alone: bool, alone: list[bytes]) -> None:
    short, long = {"a": ["x"]}, {"a": ["y"] * count}
    payloads = [write(TEXTS, value) for value in [short] * 10 + [long]]

    assert CdrColumns(TEXTS).decode(pa.array(payloads)).to_pylist() == [short] * 10 + [long]
    assert alone == [payloads[10]] * is_alone


def test_lists_that_multiply_are_decoded_alone(alone: list[bytes]) -> None:
    value = {"a": [[["x"] * 12] * 12] * 12}
    payloads = [write(LISTS, value)] * 12

    assert CdrColumns(LISTS).decode(pa.array(payloads)).to_pylist() == [value] * 12
    assert len(alone) == 12


def test_broken_ones_are_decoded_alone_and_the_others_together(alone: list[bytes]) -> None:
    good, cut = write(TEXTS, {"a": ["x", "yz"]}), write(TEXTS, {"a": ["x"]})[:-1]

    found = CdrColumns(TEXTS).decode(pa.array([good] * 10 + [cut, None, b"", good]))

    assert found.is_valid().to_pylist() == [True] * 10 + [False] * 3 + [True]
    assert alone == [cut, b""]
