"""The registry of schemas: what is taken, what is refused, and what is found."""

from __future__ import annotations

import struct

import pytest

from elea.content.contents import UNKNOWN, Contents
from elea.content.registry import SchemaRegistry, rule_key, struct_of, type_key
from elea.content.schema.declared import Struct
from elea.model.encoding import Encoding
from elea.model.errors import InvalidSchema
from elea.model.limits import SCHEMA_BYTES, SCHEMAS_BYTES, SCHEMAS_KNOWN

CDR = Encoding.APPLICATION_CDR.id
STRING = b"\0\1\0\0" + struct.pack("<I3s", 3, b"hi\0")


def test_the_names_of_one_type_in_dds_and_in_ros_are_one_key() -> None:
    names = ("std_msgs/msg/String", "std_msgs::msg::String", "std_msgs::msg::dds_::String_")

    assert {type_key("application/cdr", name) for name in names} == {"@schema/cdr/std_msgs/msg/String"}
    with pytest.raises(InvalidSchema, match="a type has a name"):
        type_key("application/json", "x")
    with pytest.raises(InvalidSchema, match="a type has a name"):
        type_key("application/cdr")


@pytest.mark.parametrize("language", [None, b"ros2msg"])
def test_payloads_are_read_by_the_type_that_their_encoding_names(language: bytes | None) -> None:
    schemas = SchemaRegistry()
    contents = Contents(schemas)

    assert contents.decode("a", CDR, b"std_msgs/msg/String", STRING) is UNKNOWN
    assert not contents.is_declared("a", CDR, b"std_msgs/msg/String")
    assert schemas.take("@schema/cdr/std_msgs/msg/String", language, b"string data")
    assert contents.decode("a", CDR, b"std_msgs::msg::dds_::String_", STRING) == {"data": "hi"}
    assert contents.decode("a", CDR, b"std_msgs/msg/String", STRING[:-1]) is UNKNOWN
    assert contents.is_declared("a", CDR, b"std_msgs/msg/String")
    assert contents.decode("a", CDR, None, STRING) is UNKNOWN
    schemas.take("@schema/cdr/std_msgs/msg/String", None, None)
    assert contents.decode("a", CDR, b"std_msgs/msg/String", STRING) is UNKNOWN


def test_the_longest_rule_that_matches_a_key_counts() -> None:
    schemas = SchemaRegistry()
    schemas.take("@schema/cdr/std_msgs/msg/String", None, b"string data")
    schemas.take(
        "@schema/cdr/demo/Number", None, b"struct Other { long a; }; module demo { struct Number { uint8 n; }; };"
    )
    schemas.take(rule_key("fleet/**"), None, b"application/cdr;std_msgs/msg/String")
    schemas.take(rule_key("fleet/*/number"), None, b"application/cdr;demo::Number")
    contents = Contents(schemas)

    assert contents.decode("fleet/1/name", 0, None, STRING) == {"data": "hi"}
    assert contents.decode("fleet/1/number", CDR, None, b"\0\1\0\0\7") == {"n": 7}
    assert contents.decode("other", 0, None, b'{"a": 1}') == {"a": 1}
    assert contents.decode("fleet/1/name", Encoding.APPLICATION_JSON.id, None, b"{}") == {}
    schemas.take(rule_key("fleet/**"), None, None)
    assert contents.decode("fleet/1/name", 0, None, STRING) is UNKNOWN


def test_keys_of_ros_over_zenoh_name_their_type() -> None:
    schemas = SchemaRegistry()
    contents = Contents(schemas)
    key = (
        "0/chatter/std_msgs::msg::dds_::String_/RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18"
    )

    assert contents.decode(key, 0, None, STRING) is UNKNOWN
    schemas.take("@schema/cdr/std_msgs/msg/String", None, b"string data")
    assert contents.decode(key, 0, None, STRING) == {"data": "hi"}
    assert contents.decode("0/chatter/std_msgs::msg::dds_::String_", 0, None, STRING) is UNKNOWN
    schemas.take(rule_key("0/**"), None, b"application/cdr;demo::Other")
    assert contents.decode(key, 0, None, STRING) is UNKNOWN


def test_a_fetch_that_brings_a_type_is_worth_another_look() -> None:
    schemas = SchemaRegistry()
    asked: list[int] = []

    def fetch() -> bool:
        asked.append(1)
        return schemas.take("@schema/cdr/std_msgs/msg/String", None, b"string data")

    contents = Contents(schemas, fetch)

    assert contents.decode("a", CDR, b"std_msgs/msg/String", STRING) == {"data": "hi"}
    assert contents.decode("a", CDR, b"std_msgs/msg/String", STRING[:-1]) is UNKNOWN
    assert contents.decode("a", Encoding.APPLICATION_JSON.id, None, b"{") is UNKNOWN
    assert len(asked) == 1


def test_a_fetch_that_brings_another_type_is_worth_another_one() -> None:
    schemas = SchemaRegistry()
    coming = ["@schema/cdr/Other", "@schema/cdr/std_msgs/msg/String", "@schema/cdr/Never"]

    def fetch() -> bool:
        return schemas.take(coming.pop(0), None, b"string data")

    assert Contents(schemas, fetch).decode("a", CDR, b"std_msgs/msg/String", STRING) == {"data": "hi"}
    assert coming == ["@schema/cdr/Never"]


def test_a_type_that_nobody_brings_is_asked_for_a_few_times() -> None:
    schemas = SchemaRegistry()
    asked: list[str] = []

    def fetch() -> bool:
        asked.append(f"@schema/cdr/Other{len(asked)}")
        return schemas.take(asked[-1], None, b"string data")

    assert Contents(schemas, fetch).decode("a", CDR, b"std_msgs/msg/String", STRING) is UNKNOWN
    assert len(asked) == 2
    assert Contents(schemas, lambda: asked.append("")).decode("a", CDR, b"T", STRING) is UNKNOWN
    assert len(asked) == 3


def test_a_type_that_another_thread_brings_after_the_first_look_is_noticed() -> None:
    schemas = SchemaRegistry()

    class Meanwhile(Contents):
        def is_declared(self, key: str, encoding: int, schema: bytes | None) -> bool:
            schemas.take("@schema/cdr/std_msgs/msg/String", None, b"string data")
            return super().is_declared(key, encoding, schema)

    contents = Meanwhile(schemas, lambda: False)

    assert contents.decode("a", CDR, b"std_msgs/msg/String", STRING) == {"data": "hi"}
    assert contents.decode("a", CDR, b"std_msgs/msg/String", STRING[:-1]) is UNKNOWN


def test_who_asks_while_a_schema_is_taken_hides_it_from_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """As another thread may: what it finds then is of what was before."""
    schemas = SchemaRegistry()
    seen: list[object] = []
    judge = SchemaRegistry._problem

    def meanwhile(self: SchemaRegistry, key: str, language: str | None, payload: bytes) -> str | None:
        seen.extend((self.generation, self.decoder(CDR, b"T"), self.rule("a")))
        return judge(self, key, language, payload)

    monkeypatch.setattr(SchemaRegistry, "_problem", meanwhile)
    schemas.take("@schema/cdr/T", None, b"int8 a")
    schemas.take(rule_key("a"), None, b"application/cdr;T")

    assert seen[:3] == [0, None, None]
    assert (seen[3], seen[5], schemas.generation) == (1, None, 2)
    assert schemas.decoder(CDR, b"T") is not None
    assert schemas.rule("a") == (CDR, b"T")


def test_a_type_that_is_deleted_while_it_is_read_does_not_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    schemas = SchemaRegistry()
    schemas.take("@schema/cdr/T", None, b"int8 a")

    def meanwhile(name: str, language: str | None, text: str) -> Struct:
        schemas.take("@schema/cdr/T", None, None)
        return struct_of(name, language, text)

    monkeypatch.setattr("elea.content.registry.struct_of", meanwhile)

    assert schemas.struct(CDR, b"T") is not None
    assert schemas.struct(CDR, b"T") is None
    assert schemas.decoder(CDR, b"T") is None


@pytest.mark.parametrize(
    ("key", "payload", "problem"),
    [
        ("@schema/cdr/T", b"#" * (SCHEMA_BYTES + 1), "SCHEMA_BYTES"),
        ("@schema/nosuch/T", b"", "no place of a schema"),
        ("@schema/cdr", b"", "no place of a schema"),
        ("@schema/keys/a%2F", b"application/cdr;T", "invalid key expression"),
        ("@schema/keys/a/b", b"application/cdr;T", "write / as %2F"),
        ("@schema/keys/a%2F/b", b"application/cdr;T", "write / as %2F"),
        (rule_key("a"), b"application/cdr", "names no type"),
        (rule_key("a"), b"application/json;T", "names no type"),
        (rule_key("a"), b"\xff", "codec"),
    ],
)
def test_what_makes_no_sense_is_counted_and_told(key: str, payload: bytes, problem: str) -> None:
    schemas = SchemaRegistry()

    assert not schemas.take(key, None, payload)
    assert schemas.refused == 1
    assert problem in schemas.problems[key]


def test_a_text_that_declares_nothing_is_told_when_it_is_needed() -> None:
    schemas = SchemaRegistry()
    schemas.take("@schema/cdr/T", None, b"struct U { long a; };")

    assert schemas.decoder(CDR, b"T") is None
    assert "there is no struct T; it declares U" in schemas.problems["@schema/cdr/T"]
    assert schemas.decoder(CDR, b"\xff") is None
    with pytest.raises(InvalidSchema, match="the languages are"):
        struct_of("T", "cobol", "")


def test_there_is_room_for_so_many_schemas() -> None:
    schemas = SchemaRegistry()
    for number in range(SCHEMAS_KNOWN):
        assert schemas.take(f"@schema/cdr/T{number}", None, b"int8 a")

    assert not schemas.take("@schema/cdr/one_more", None, b"int8 a")
    assert schemas.take("@schema/cdr/T1", None, b"int8 b")
    schemas.take("@schema/cdr/T2", None, None)
    assert schemas.take("@schema/cdr/one_more", None, b"int8 a")


def test_there_is_room_for_so_many_bytes() -> None:
    schemas = SchemaRegistry()
    for number in range(SCHEMAS_BYTES // SCHEMA_BYTES):
        assert schemas.take(f"@schema/cdr/T{number}", None, b"#" * SCHEMA_BYTES)

    assert not schemas.take("@schema/cdr/one_more", None, b"int8 a")
    assert schemas.take("@schema/cdr/T0", None, b"int8 a")
    assert schemas.take("@schema/cdr/one_more", None, b"int8 a")
