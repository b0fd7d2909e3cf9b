"""`elea decode` and `elea encode`: input formats, output forms, bad input, both ways round."""

from __future__ import annotations

import json
import random
import struct
from pathlib import Path

import pytest

from elea.cli import main
from tests.unit.cli.conftest import Elea
from tests.unit.wire.frames import conversation, datagram, pcap, pcapng, segment

VECTORS = Path(__file__).parents[2] / "vectors"
EARLY = ("--dialect", "zenoh2018")
PUT = "25b190f6367d000664656d6f2f61010568656c6c6f"


def vectors(name: str) -> list[dict[str, str]]:
    return list(json.loads((VECTORS / name).read_text()))


# -- hex lines ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        b"ac02",
        b"AC02",
        b"0xac02",
        b"ac 02",
        b"0xac 0x02",
        b"ac:02",
        b"  ac02  ",
        b"ac\t02",
        b"ac02 # three hundred",
    ],
)
def test_hex_is_read_in_the_ways_people_write_it(elea: Elea, line: bytes) -> None:
    result = elea("decode", *EARLY, "--unit", "vle", "--json", stdin=line)

    assert (result.status, result.out) == (0, '{"value": 300}\n')


def test_blank_lines_and_comments_are_skipped(elea: Elea) -> None:
    result = elea("decode", *EARLY, "--unit", "vle", "--json", stdin=b"# numbers\n\n00\r\n   \n01")

    assert result.lines == ['{"value": 0}', '{"value": 1}']


@pytest.mark.parametrize(
    ("line", "at"), [(b"zz", 0), (b"0 1", 3), (b"012", 3), (b"00 0g", 4), (b"10x2", 4), ("é".encode(), 0)]
)
def test_line_that_is_not_hex_is_bad_input_and_the_others_are_read(elea: Elea, line: bytes, at: int) -> None:
    result = elea("decode", *EARLY, "--unit", "vle", "--json", stdin=b"00\n" + line + b"\n01\n")

    bad = json.loads(result.lines[1])
    assert (result.status, len(result.lines)) == (1, 3)
    assert (bad["error"], bad["at"], bad["dialect"]) == ("NOT_HEX", at, "zenoh2018")
    assert json.loads(result.err)["hint"]


def test_bad_unit_is_an_error_object_with_its_place(elea: Elea) -> None:
    result = elea("decode", *EARLY, "--unit", "message", "--json", stdin=b"0301")

    assert result.status == 1
    assert json.loads(result.out).keys() == {"error", "at", "dialect", "problem"}
    assert json.loads(result.out)["error"] == "TRUNCATED"


def test_several_files_are_read_in_order(elea: Elea, tmp_path: Path) -> None:
    for name, text in (("a", "01"), ("b", "02")):
        (tmp_path / name).write_text(text)

    result = elea("decode", *EARLY, "--unit", "vle", "--json", str(tmp_path / "a"), str(tmp_path / "b"))

    assert result.lines == ['{"value": 1}', '{"value": 2}']


def test_file_that_is_not_there_is_an_error_with_a_hint(elea: Elea) -> None:
    result = elea("decode", *EARLY, "/nowhere/at/all")

    assert result.status == 1
    assert "/nowhere/at/all" in result.err
    assert result.err.splitlines()[-1].startswith("try: ")


def test_unit_of_another_dialect_is_wrong_usage(elea: Elea) -> None:
    result = elea("decode", *EARLY, "--unit", "batch")

    assert result.status == 2
    assert "packet" in result.err


def test_line_above_the_limit_is_bad_input(elea: Elea, monkeypatch: pytest.MonkeyPatch) -> None:
    from elea.cli import inputs

    monkeypatch.setattr(inputs.lines, "__defaults__", (8,))

    result = elea("decode", *EARLY, "--unit", "vle", "--json", stdin=b"00\n" + b"0" * 200_000 + b"\n01\n")

    assert [json.loads(line).get("error") for line in result.lines] == [None, "OVERSIZE", None]
    assert result.status == 1


# -- other formats -----------------------------------------------------------------------------------------


def test_raw_bytes_are_known_by_their_content(elea: Elea) -> None:
    result = elea("decode", *EARLY, "--unit", "vle", "--json", stdin=b"\xac\x02")

    assert result.out == '{"value": 300}\n'


def test_input_format_can_be_forced(elea: Elea) -> None:
    assert elea("decode", *EARLY, "--unit", "vle", "--json", "--input", "raw", stdin=b"0").out == '{"value": 48}\n'
    assert elea("decode", *EARLY, "--unit", "vle", "--json", "--input", "hex", stdin=b"\x01").status == 1
    assert elea("decode", *EARLY, "--json", "--input", "pcap", stdin=b"hello world").status == 1


def test_raw_input_above_the_limit_is_bad_input(elea: Elea, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elea.cli.inputs.CLI_UNIT_BYTES", 10)

    result = elea("decode", *EARLY, "--unit", "vle", "--json", stdin=bytes(11))

    assert json.loads(result.out)["error"] == "OVERSIZE"


def test_empty_input_is_no_unit(elea: Elea) -> None:
    assert elea("decode", *EARLY, "--json", stdin=b"") == (0, "", "")


# -- human output ------------------------------------------------------------------------------------------


def test_human_output_is_a_heading_and_fields_with_offsets(elea: Elea) -> None:
    result = elea("decode", *EARLY, "--unit", "message", stdin=b"05010a00")

    assert result.lines[0] == "-:1  zenoh2018 message  4 octets"
    assert any(line.split()[:3] == ["1-2", "01", "0a"] for line in result.lines)
    assert "\x1b" not in result.out


def test_human_output_is_coloured_when_asked(elea: Elea) -> None:
    assert "\x1b[" in elea("decode", *EARLY, "--unit", "message", "--color", "always", stdin=b"05010a00").out


def test_human_output_ends_a_bad_unit_with_its_error(elea: Elea) -> None:
    result = elea("decode", *EARLY, "--unit", "message", stdin=b"0501\nzz")

    assert result.status == 1
    assert "TRUNCATED" in result.out
    assert "NOT_HEX" in result.out
    assert result.err.splitlines()[-1].startswith("try: ")


def test_hint_names_the_unit_as_which_the_octets_decode(elea: Elea) -> None:
    result = elea("decode", *EARLY, "--unit", "message", stdin=b"06030101010000001001014700020178")

    assert "--unit stream" in result.err.splitlines()[-1]


# -- captures ----------------------------------------------------------------------------------------------


def test_capture_units_come_with_time_and_endpoints(elea: Elea, tmp_path: Path) -> None:
    batch = bytes.fromhex(PUT)
    file = tmp_path / "trace"
    file.write_bytes(pcap(conversation(struct.pack("<H", len(batch)) + batch, size=7)))

    result = elea("decode", "--json", str(file))

    found = json.loads(result.out)
    assert (result.status, result.err) == (0, "")
    assert list(found) == ["time", "src", "dst", "decoded"]
    assert (found["src"], found["dst"]) == ("10.0.0.1:40000", "10.0.0.2:7447")
    assert found["time"] == "2023-11-14T22:13:20.000004000Z"
    assert found["decoded"]["_"] == "FRAME"


@pytest.mark.parametrize("name", ["compression", "lowlatency"])
def test_recorded_session_in_a_capture_switches_its_framing(elea: Elea, tmp_path: Path, name: str) -> None:
    records = vectors(f"zenoh1/{name}.json")
    sequence = {False: 1, True: 1}
    frames = [segment(b"", seq=0, flags="S"), segment(b"", seq=0, flags="SA", reverse=True)]
    for number, record in enumerate(records):
        back = record["direction"] == "router->client"
        data = bytes.fromhex(record["hex"])
        wide = name == "lowlatency" and number >= 4 and "u16prefix" not in record["name"]
        data = struct.pack("<I" if wide else "<H", len(data)) + data
        frames.append(segment(data, seq=sequence[back], reverse=back))
        sequence[back] += len(data)
    file = tmp_path / "trace"
    file.write_bytes(pcapng(frames))

    result = elea("decode", "--json", str(file))

    assert (result.status, result.err) == (0, "")
    assert [json.loads(line)["decoded"] for line in result.lines] == [record["decoded"] for record in records]


def test_capture_of_an_early_dialect_has_packets(elea: Elea, tmp_path: Path) -> None:
    file = tmp_path / "trace"
    stream = bytes.fromhex("06030101010000001001014700020178")
    file.write_bytes(pcap([*conversation(stream, size=5), datagram(bytes.fromhex("4700020178"))]))

    result = elea("decode", *EARLY, "--json", str(file))

    kinds = [[m["message"]["kind"] for m in json.loads(line)["decoded"]["messages"]] for line in result.lines]
    assert (result.status, result.err) == (0, "")
    assert kinds[0] == ["Open"]
    assert [kind for packet in kinds[1:-1] for kind in packet] == ["KeepAlive", "StreamData"]
    assert kinds[-1] == ["StreamData"]


def test_capture_with_a_gap_tells_it_in_place(elea: Elea, tmp_path: Path) -> None:
    frames = conversation(b"\x01\x00\x04" * 3, size=3)
    (tmp_path / "trace").write_bytes(pcap(frames[:2] + frames[3:]))

    result = elea("decode", "--json", str(tmp_path / "trace"))

    found = [json.loads(line) for line in result.lines]
    assert [record.get("error") for record in found] == [None, "GAP", None]
    assert {"time", "src", "dst", "at", "problem"} <= found[1].keys()
    assert result.status == 1


def test_damaged_capture_is_bad_input(elea: Elea, tmp_path: Path) -> None:
    (tmp_path / "trace").write_bytes(pcap(conversation(b"\x01\x00\x04", size=3))[:-5])

    result = elea("decode", "--json", str(tmp_path / "trace"))

    assert result.status == 1
    assert json.loads(result.lines[-1])["dialect"] == "pcap"
    assert json.loads(result.lines[0])["decoded"] == {"_": "KEEP_ALIVE"}


def test_ports_of_a_capture_can_be_chosen(elea: Elea, tmp_path: Path) -> None:
    (tmp_path / "trace").write_bytes(pcap([segment(b"\x01\x00\x04", seq=1, port=9)]))
    file = str(tmp_path / "trace")

    assert elea("decode", "--json", file).out == ""
    assert "KEEP_ALIVE" in elea("decode", "--json", "--port", "9", file).out
    assert "KEEP_ALIVE" in elea("decode", "--json", "--port", "all", file).out
    assert elea("decode", "--json", "--port", "zero", file).status == 2


def test_human_heading_of_a_captured_unit_says_who_spoke(elea: Elea, tmp_path: Path) -> None:
    (tmp_path / "trace").write_bytes(pcap([segment(b"\x01\x00\x04", seq=1)]))

    assert "10.0.0.1:40000 → 10.0.0.2:7447" in elea("decode", str(tmp_path / "trace")).lines[0]


def test_time_out_of_range_is_still_a_time(elea: Elea, tmp_path: Path) -> None:
    from tests.unit.wire.frames import enhanced, interface, section

    file = section() + interface(resolution=0) + enhanced(segment(b"\x01\x00\x04", seq=1), ticks=2**63)
    (tmp_path / "trace").write_bytes(file)

    assert json.loads(elea("decode", "--json", str(tmp_path / "trace")).out)["time"] == "9223372036854775808.000000000"


def test_capture_without_times_has_none(elea: Elea, tmp_path: Path) -> None:
    from tests.unit.wire.frames import block, interface, section

    frame = segment(b"\x01\x00\x04", seq=1)
    (tmp_path / "trace").write_bytes(section() + interface() + block(3, struct.pack("<I", len(frame)) + frame))

    assert json.loads(elea("decode", "--json", str(tmp_path / "trace")).out)["time"] is None
    assert "no time" in elea("decode", str(tmp_path / "trace")).out


def test_hint_of_a_bad_unit_in_a_capture_is_about_ports(elea: Elea, tmp_path: Path) -> None:
    (tmp_path / "trace").write_bytes(pcap([datagram(b"\x09")]))

    assert "--port" in elea("decode", str(tmp_path / "trace")).err.splitlines()[-1]


def test_hint_of_octets_that_are_nothing_says_what_is_wanted(elea: Elea) -> None:
    assert "length prefix" in elea("decode", stdin=b"ffffffffffff").err.splitlines()[-1]


# -- encode ------------------------------------------------------------------------------------------------


def test_encode_is_the_inverse_of_decode(elea: Elea) -> None:
    octets = [r["hex"] for r in vectors("zenoh2018/valid.json") if r["unit"] == "packet" and r["canonical"]]

    decoded = elea("decode", *EARLY, "--json", "--full", stdin="\n".join(octets).encode())
    encoded = elea("encode", *EARLY, stdin=decoded.out.encode())

    assert (encoded.status, encoded.lines) == (0, octets)


def test_encode_writes_json_when_asked(elea: Elea) -> None:
    assert elea("encode", *EARLY, "--unit", "vle", "--json", stdin=b'{"value": 300}').out == '{"hex": "ac02"}\n'


def test_encode_writes_bytes_when_asked(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    (tmp_path / "numbers").write_text('{"value": 300}\n{"value": 1}\n')

    status = main(["encode", *EARLY, "--unit", "vle", "--raw", str(tmp_path / "numbers")])

    assert (status, capsysbinary.readouterr().out) == (0, b"\xac\x02\x01")


def test_encode_refuses_raw_and_json_together(elea: Elea) -> None:
    assert elea("encode", "--raw", "--json", *EARLY).status == 2


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{", "NOT_JSON"),
        (b"\xff\xfe", "NOT_JSON"),
        (b"1" * 5000, "NOT_JSON"),
        (b"[" * 100_000, "NOT_JSON"),
        (b"{}", "CANNOT_ENCODE"),
        (b"[]", "CANNOT_ENCODE"),
        (b"7", "CANNOT_ENCODE"),
        (b'{"value": -1}', "CANNOT_ENCODE"),
        (b'{"value": 99999999999999999999}', "CANNOT_ENCODE"),
        (b'{"value": "x"}', "CANNOT_ENCODE"),
    ],
)
def test_encode_tells_bad_lines_and_does_the_others(elea: Elea, line: bytes, code: str) -> None:
    stdin = b'{"value": 1}\n' + line + b'\n{"value": 2}\n'

    as_json = elea("encode", *EARLY, "--unit", "vle", "--json", stdin=stdin)
    plain = elea("encode", *EARLY, "--unit", "vle", stdin=stdin)

    assert [json.loads(text).get("error") for text in as_json.lines] == [None, code, None]
    assert (as_json.status, plain.status, plain.lines) == (1, 1, ["01", "02"])
    assert plain.err.splitlines()[-1].startswith("try: ")


def test_encode_tells_every_bad_line_and_gives_the_last_a_hint(elea: Elea) -> None:
    result = elea("encode", *EARLY, "--unit", "vle", stdin=b"{\n{}\n")

    assert [line.split(":")[0] for line in result.err.splitlines()] == ["elea encode", "elea encode", "try"]


def test_encode_refuses_a_line_above_the_limit(elea: Elea, monkeypatch: pytest.MonkeyPatch) -> None:
    from elea.cli import inputs

    monkeypatch.setattr(inputs.lines, "__defaults__", (20,))

    result = elea("encode", *EARLY, "--unit", "vle", "--json", stdin=b'{"value": 1}\n' + b" " * 30 + b"\n")

    assert [json.loads(line).get("error") for line in result.lines] == [None, "OVERSIZE"]


@pytest.mark.parametrize(
    ("dialect", "file", "unit"),
    [
        ("zenoh1", "zenoh1/handshake.json", "batch"),
        ("zenoh1", "zenoh1/pubsub.json", "batch"),
        ("zenoh1", "zenoh1/query.json", "batch"),
        ("zenoh2018", "zenoh2018/valid.json", "packet"),
        ("zenoh2018", "zenoh2018/valid.json", "message"),
        ("xrce2017", "xrce2017/valid.json", "declaration"),
    ],
)
def test_any_json_gives_octets_or_a_typed_refusal(elea: Elea, dialect: str, file: str, unit: str) -> None:
    chance = random.Random(3)
    forms = [record["decoded"] for record in vectors(file) if record.get("unit", "batch") == unit]
    lines = [json.dumps(_spoiled(form, chance)) for form in forms for _ in range(20)]

    result = elea("encode", "--dialect", dialect, "--unit", unit, "--json", stdin="\n".join(lines).encode())

    assert len(result.lines) == len(lines)


def _spoiled(form: object, chance: random.Random) -> object:
    """The form with one of its values replaced by something odd."""
    if chance.random() < 0.1 or not isinstance(form, dict | list) or not form:
        return chance.choice([None, True, -1, 2**70, 1.5, "é", "zz", [], {}, [[]], {"kind": "Nope"}])
    if isinstance(form, dict):
        key = chance.choice(list(form))
        return {k: _spoiled(v, chance) if k == key else v for k, v in form.items()}
    index = chance.randrange(len(form))
    return [_spoiled(v, chance) if i == index else v for i, v in enumerate(form)]
