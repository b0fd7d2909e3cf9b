"""The encoding table and its text form, as eclipse-zenoh 1.10.2 has them."""

from __future__ import annotations

import dataclasses
import json
import pickle
import re
from pathlib import Path

import pytest

from elea.model.encoding import CUSTOM_ENCODING, ENCODING_NAMES, Encoding
from elea.model.limits import ENCODING_SCHEMA_BYTES

VECTORS = Path(__file__).parents[2] / "vectors" / "zenoh1" / "encodings.json"


def recorded_encodings() -> list[tuple[str, int]]:
    found = []
    for record in json.loads(VECTORS.read_text()):
        name = re.search(r"Encoding\('(.*)'\)", record["what"])
        assert name
        # id 0 is never on the wire: it is what an absent field means.
        found.append((name[1], record["decoded"]["msgs"][0]["body"].get("encoding", {"id": 0})["id"]))
    return found


def test_recorded_encodings_cover_the_table() -> None:
    assert {id for _, id in recorded_encodings()} == set(range(len(ENCODING_NAMES)))


@pytest.mark.parametrize(("name", "id"), recorded_encodings())
def test_text_gives_what_eclipse_zenoh_sends(name: str, id: int) -> None:
    assert (Encoding(name).id, Encoding(name).schema) == (id, None)


@pytest.mark.parametrize(
    ("text", "id", "schema", "printed"),
    [
        ("text/plain", 4, None, "text/plain"),
        ("text/plain;utf-8", 4, b"utf-8", "text/plain;utf-8"),
        ("text/plain;", 4, None, "text/plain"),
        ("application/json;a;b", 5, b"a;b", "application/json;a;b"),
        ("zenoh/bytes;;", 0, b";", "zenoh/bytes;;"),
        ("", 0, None, "zenoh/bytes"),
        ("foo", CUSTOM_ENCODING, b"foo", "foo"),
        ("foo;bar", CUSTOM_ENCODING, b"foo;bar", "foo;bar"),
        (";x", CUSTOM_ENCODING, b";x", ";x"),
        ("TEXT/PLAIN", CUSTOM_ENCODING, b"TEXT/PLAIN", "TEXT/PLAIN"),
        ("unknown(99)", CUSTOM_ENCODING, b"unknown(99)", "unknown(99)"),
    ],
)
def test_text_form(text: str, id: int, schema: bytes | None, printed: str) -> None:
    encoding = Encoding(text)

    assert (encoding.id, encoding.schema) == (id, schema)
    assert str(encoding) == printed
    assert encoding == text


@pytest.mark.parametrize(
    ("id", "schema", "printed"),
    [
        (99, None, "unknown(99)"),
        (99, b"s", "unknown(99);s"),
        (CUSTOM_ENCODING, None, ""),
        (CUSTOM_ENCODING, b"\xff", "unknown(non-utf8)"),
        (4, b"", "text/plain;"),
        (4, b"\xff", "text/plain;unknown(non-utf8)"),
    ],
)
def test_wire_values_print(id: int, schema: bytes | None, printed: str) -> None:
    assert str(Encoding.of(id, schema)) == printed


def test_no_text_is_bytes() -> None:
    assert Encoding() == Encoding(None) == Encoding.ZENOH_BYTES


def test_every_name_is_an_attribute() -> None:
    assert Encoding.ZENOH_BYTES.id == 0
    assert Encoding.APPLICATION_JSON_PATCH_JSON == "application/json-patch+json"
    assert Encoding.APPLICATION_X_WWW_FORM_URLENCODED == "application/x-www-form-urlencoded"
    assert Encoding.VIDEO_VP9.id == len(ENCODING_NAMES) - 1
    declared = {name for name in vars(Encoding) if name.isupper()}
    assert declared == {re.sub(r"\W", "_", name).upper() for name in ENCODING_NAMES}


@pytest.mark.parametrize(
    ("before", "schema", "after"),
    [
        (Encoding.TEXT_PLAIN, "utf-8", "text/plain;utf-8"),
        (Encoding("text/plain;a"), "b", "text/plain;b"),
        (Encoding("foo"), "x", "foo;x"),
        (Encoding("foo;a;b"), "z", "foo;z"),
        (Encoding("foo;x"), "", "foo"),
        (Encoding(";x"), "q", "q"),
        (Encoding.of(CUSTOM_ENCODING), "q", "q"),
        (Encoding.of(CUSTOM_ENCODING, b"\xff"), "q", "q"),
        (Encoding.of(99), "s", "unknown(99);s"),
    ],
)
def test_with_schema(before: Encoding, schema: str, after: str) -> None:
    assert str(before.with_schema(schema)) == after


def test_empty_schema_is_not_no_schema() -> None:
    assert Encoding.TEXT_PLAIN.with_schema("") != Encoding.TEXT_PLAIN


def test_equality_with_other_things() -> None:
    assert Encoding("text/plain") == Encoding.TEXT_PLAIN
    assert Encoding("text/html") != Encoding.TEXT_PLAIN
    assert Encoding.TEXT_PLAIN != "text/html"
    assert Encoding.TEXT_PLAIN != "\ud800"
    assert Encoding.TEXT_PLAIN != 4
    assert Encoding.TEXT_PLAIN != b"text/plain"


def test_text_finds_encoding_in_a_dictionary() -> None:
    assert {Encoding.TEXT_PLAIN: 1}.get("text/plain") == 1  # type: ignore[call-overload]


def test_schema_length_is_bounded() -> None:
    assert len(Encoding("y" * ENCODING_SCHEMA_BYTES).schema or b"") == ENCODING_SCHEMA_BYTES
    with pytest.raises(ValueError, match="at most 255 bytes"):
        Encoding("y" * (ENCODING_SCHEMA_BYTES + 1))
    with pytest.raises(ValueError, match="at most 255 bytes"):
        Encoding.TEXT_PLAIN.with_schema("y" * 100_000)


@pytest.mark.parametrize("id", [-1, 1 << 31])
def test_id_out_of_range_is_refused(id: int) -> None:
    with pytest.raises(ValueError, match="encoding id"):
        Encoding.of(id)


def test_encodings_are_values() -> None:
    encoding = Encoding("text/plain;utf-8")

    with pytest.raises(dataclasses.FrozenInstanceError):
        encoding.id = 3  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(encoding)) == encoding
    assert repr(encoding) == "Encoding('text/plain;utf-8')"
