"""Addresses, identifiers, validation, keys and filters beyond the vectors."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elea.uprotocol import UUID, InvalidUri, InvalidUuid, UAttributes, UCode, UMessage, UStatusError, UUri, new_uuid
from elea.uprotocol.attributes import UMessageType, UPayloadFormat, UPriority
from elea.uprotocol.filters import filter_problem
from elea.uprotocol.payload import UPayload, into_payload
from elea.uprotocol.transport import LocalUri
from elea.uprotocol.validation import check, problem_of
from elea.uprotocol.zenohkey import key_of, resolved, uris_of
from tests.unit.uprotocol.descriptors import message_class

TOPIC = UUri.parse("//192.168.1.100/10AB/3/80CD")
METHOD = UUri.parse("//my-host2/CD/4/B")
CLIENT = UUri.parse("//my-host1/403AB/3/0")

NAMES = st.from_regex(r"[a-z0-9\-._~]{1,128}", fullmatch=True)
URIS = st.builds(
    UUri,
    st.just("") | st.just("*") | NAMES,
    st.integers(0, 0xFFFF_FFFF),
    st.integers(0, 0xFF),
    st.integers(0, 0xFFFF),
)


@given(URIS)
def test_an_address_survives_text_and_protobuf(uri: UUri) -> None:
    assert UUri.parse(str(uri)) == uri
    assert UUri.parse(uri.with_scheme()) == uri
    assert UUri.from_bytes(uri.to_bytes()) == uri


@given(URIS, st.none() | URIS)
def test_a_key_says_both_addresses(source: UUri, sink: UUri | None) -> None:
    key = key_of(source, sink, "here")

    assert len(key.split("/")) == 11
    assert uris_of(key) == (source.with_authority("here"), None if sink is None else sink.with_authority("here"))


# The table of the seed, row by row.
@pytest.mark.parametrize(
    ("authority", "source", "sink", "key"),
    [
        ("192.168.1.100", "/10AB/3/80CD", None, "up/192.168.1.100/10AB/0/3/80CD/{}/{}/{}/{}/{}"),
        ("x", "//192.168.1.100/10AB/3/80CD", None, "up/192.168.1.100/10AB/0/3/80CD/{}/{}/{}/{}/{}"),
        (
            "x",
            "//192.168.1.100/10AB/3/80CD",
            "//192.168.1.101/300EF/4/0",
            "up/192.168.1.100/10AB/0/3/80CD/192.168.1.101/EF/3/4/0",
        ),
        ("x", "//*/FFFFFFFF/FF/FFFF", "//192.168.1.101/300EF/4/0", "up/*/*/*/*/*/192.168.1.101/EF/3/4/0"),
        ("x", "//my-host1/403AB/3/0", "//my-host2/CD/4/B", "up/my-host1/3AB/4/3/0/my-host2/CD/0/4/B"),
        ("x", "//*/FFFFFFFF/FF/FFFF", "//my-host2/CD/4/B", "up/*/*/*/*/*/my-host2/CD/0/4/B"),
        ("x", "//*/FFFFFFFF/FF/FFFF", "//[::1]/FFFFFFFF/FF/FFFF", "up/*/*/*/*/*/[::1]/*/*/*/*"),
    ],
)
def test_keys_of_the_seed(authority: str, source: str, sink: str | None, key: str) -> None:
    assert key_of(UUri.parse(source), None if sink is None else UUri.parse(sink), authority) == key


def test_an_empty_sink_is_not_an_absent_one() -> None:
    assert key_of(TOPIC, UUri(), "d").endswith("/d/0/0/0/0")


@pytest.mark.parametrize(
    ("key", "problem"),
    [
        ("up/a/1/0/1/8000/{}/{}/{}/{}", "11 chunks"),
        ("pu/a/1/0/1/8000/{}/{}/{}/{}/{}", "11 chunks"),
        ("up/a/1/0/1/80cd/{}/{}/{}/{}/{}", "upper-case hex"),
        ("up/a/01/0/1/8000/{}/{}/{}/{}/{}", "upper-case hex"),
        ("up/a/1/0/1/8000/b/{}/{}/{}/{}", "upper-case hex"),
        ("up/a/10000/0/1/8000/{}/{}/{}/{}/{}", "16 bits"),
        ("up/a/1/0/100/8000/{}/{}/{}/{}/{}", "above 255"),
        ("up/A/1/0/1/8000/{}/{}/{}/{}/{}", "upper-case letters"),
    ],
)
def test_a_key_of_something_else_is_refused(key: str, problem: str) -> None:
    with pytest.raises(InvalidUri, match=problem):
        uris_of(key)


def test_the_key_knows_an_authority_that_was_left_out() -> None:
    key = key_of(UUri.parse("/10AB/3/80CD"), None, "vcu")

    assert resolved(UUri.parse("/10AB/3/80CD"), key) == UUri.parse("//vcu/10AB/3/80CD")
    assert resolved(TOPIC, key) == TOPIC


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("/+1/1/8000", "not hexadecimal"),
        ("/0x1/1/8000", "not hexadecimal"),
        ("/1_0/1/8000", "not hexadecimal"),
        ("/ 1/1/8000", "not hexadecimal"),
        ("/-1/1/8000", "not hexadecimal"),
        ("/1/1/8000\n", "not hexadecimal"),
        ("/١/1/8000", "not hexadecimal"),
        ("///1/1/8000", "empty authority"),
        ("1/1/8000", "slash"),
        ("up:1/1/8000", "slash"),
        ("//h/1/1", "2 path segments"),
        ("//h/1/1/8000/", "4 path segments"),
        ("//a*/1/1/8000", "other characters"),
        ("//a%20/1/1/8000", "other characters"),
        ("//ä/1/1/8000", "other characters"),
        ("//[fe80::1%25eth0]/1/1/8000", "IPv6"),
        ("//[fe80::1%eth0]/1/1/8000", "IPv6"),
        ("//[v1.x]/1/1/8000", "IPv6"),
        ("//[::1/1/1/8000", "IPv6"),
        ("//" + "a" * 129 + "/1/1/8000", "limit of 128"),
        ("/" + "0" * 600 + "1/1/8000", "limit of 512"),
    ],
)
def test_text_that_is_no_address_is_refused_with_the_reason(text: str, problem: str) -> None:
    with pytest.raises(InvalidUri, match=problem) as caught:
        UUri.parse(text)

    assert caught.value.code is UCode.INVALID_ARGUMENT


def test_an_authority_of_128_characters_is_the_longest() -> None:
    assert UUri.parse("//" + "a" * 128 + "/1/1/8000").authority_name == "a" * 128


@pytest.mark.parametrize("uri", [UUri("h", 1 << 32, 1, 1), UUri("h", 1, 256, 1), UUri("h", 1, 1, 1 << 16), UUri("H")])
def test_numbers_out_of_range_are_refused(uri: UUri) -> None:
    with pytest.raises(InvalidUri):
        UUri.of(uri.authority_name, uri.ue_id, uri.ue_version_major, uri.resource_id)
    if uri.ue_id < 1 << 32:
        with pytest.raises(InvalidUri):
            UUri.from_bytes(uri.to_bytes())


@pytest.mark.parametrize("uri", ["/1/1/0", "//*/1/1/0", "//h/FFFF/1/0", "//h/1/FF/0"])
def test_an_entity_has_an_authority_and_no_wildcards(uri: str) -> None:
    with pytest.raises(InvalidUri):
        LocalUri(uri)


def test_new_identifiers_are_valid_and_different() -> None:
    made = [new_uuid(lambda: 1_735_689_600_123) for _ in range(10_000)]

    assert len(set(made)) == len(made)
    assert all(id.is_valid and id.time_ms == 1_735_689_600_123 for id in made)
    assert len({id.msb & 0xFFF for id in made}) > 2000
    assert UUID.parse(str(made[0]).upper()) == made[0]
    assert UUID.from_bytes(made[0].to_bytes()) == made[0]


@pytest.mark.parametrize(
    "text", ["", "x", "01941f297c007abc8123456789abcdef", "{01941f29-7c00-7abc-8123-456789abcdef}"]
)
def test_text_that_is_no_identifier_is_refused(text: str) -> None:
    with pytest.raises(InvalidUuid):
        UUID.parse(text)


def test_all_violations_are_told_at_once() -> None:
    with pytest.raises(UStatusError) as caught:
        check(UAttributes(None, UMessageType.RESPONSE, TOPIC, METHOD, UPriority.CS1))

    assert caught.value.code is UCode.INVALID_ARGUMENT
    assert caught.value.status.message == (
        "id missing; source //192.168.1.100/10AB/3/80CD of a response has resource 80CD, which must be in 1..7FFF; "
        "sink //my-host2/CD/4/B of a response has resource B, which must be 0; "
        "priority 2 of a response is below CS4; reqid of a response missing"
    )


def test_a_streamed_publish_message_is_received_but_not_sent() -> None:
    given = UMessage.publish(TOPIC).attributes
    streamed = given._replace(sink=UUri.parse("//cloud/FFFFFFFF/FF/FFFF"))

    assert problem_of(streamed) == ""
    assert "has a sink" in problem_of(streamed, sending=True)
    for sink in ("/FFFFFFFF/FF/FFFF", "//*/FFFFFFFF/FF/FFFF", "//cloud/FFFFFFFF/FF/0", "//cloud/1/FF/FFFF"):
        assert "has a sink" in problem_of(given._replace(sink=UUri.parse(sink)))


def test_a_response_without_ttl_is_received() -> None:
    request = UMessage.request(CLIENT, METHOD, ttl=100).attributes
    response = UMessage.response(request).attributes

    assert response.ttl == 100
    assert problem_of(response._replace(ttl=None)) == ""


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"commstatus": 17}, "commstatus 17 is not defined"),
        ({"payload_format": 9}, "payload_format 9 is not defined"),
        ({"priority": 8}, "priority 8 is not defined"),
    ],
)
def test_undefined_symbols_are_refused(changes: dict[str, int], problem: str) -> None:
    request = UMessage.request(CLIENT, METHOD, ttl=100).attributes
    response = UMessage.response(request).attributes

    assert problem_of(response._replace(**changes)) == problem  # type: ignore[arg-type]


def test_a_traceparent_that_is_none_is_not_sent() -> None:
    message = UMessage.publish(TOPIC, traceparent="me").attributes

    assert problem_of(message) == ""
    assert "traceparent" in problem_of(message, sending=True)


@pytest.mark.parametrize(
    ("source", "sink", "valid"),
    [("FFFF", "FFFF", True), ("0", "FFFF", True), ("8000", "B", False), ("0", "0", False), ("B", None, False)],
)
def test_filters(source: str, sink: str | None, valid: bool) -> None:
    given = UUri.parse(f"//h/1/1/{source}"), None if sink is None else UUri.parse(f"//h/1/1/{sink}")

    assert (filter_problem(*given) == "") == valid
    assert "above" in filter_problem(UUri("h", 1, 300, 0xFFFF), None)


def test_errors_survive_pickling() -> None:
    errors = [InvalidUri("x", "y"), InvalidUuid("x", "y"), UStatusError(UCode.ABORTED, "so", (b"d",))]

    for error in errors:
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), again.status) == (type(error), str(error), error.status)


def test_payloads_of_all_kinds() -> None:
    status = message_class("uprotocol.v1.UStatus")(code=5, message="no")

    assert into_payload(None) == (None, UPayloadFormat.UNSPECIFIED)
    assert into_payload(b"x") == (b"x", UPayloadFormat.RAW)
    assert into_payload("x") == (b"x", UPayloadFormat.TEXT)
    assert into_payload(status) == (status.SerializeToString(), UPayloadFormat.PROTOBUF)
    assert UPayload.json({"a": 1}).to_json() == {"a": 1}
    for packed in (UPayload.protobuf(status), UPayload.any(status)):
        assert packed.unpack(type(status)) == status
    assert UPayload.any(status).unpack(message_class("uprotocol.v1.UUri")) is None
    assert UPayload.text("x").unpack(type(status)) is None
    assert UPayload(b"\xff", UPayloadFormat.PROTOBUF_WRAPPED_IN_ANY).unpack(type(status)) is None
    with pytest.raises(UStatusError, match="INVALID_ARGUMENT"):
        UPayload(b"\xff", UPayloadFormat.PROTOBUF).unpack(type(status))
    with pytest.raises(UStatusError, match="INVALID_ARGUMENT"):
        into_payload(5)  # type: ignore[arg-type]
    assert [form.media_type for form in UPayloadFormat][:3] == ["", "application/x-protobuf", "application/protobuf"]
