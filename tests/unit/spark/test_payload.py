"""Payloads to columns and back: every rule, bad ones among good ones, and an oracle that knows nothing of Arrow."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elea.columnar.permissive import FEW
from elea.model.errors import ConfigError
from elea.spark.payload import decoder, encoder, formats, load, register, registry, struct_of, value_type

UTC_STAMP = pa.timestamp("us", "UTC")
LOCAL_STAMP = pa.timestamp("us")

ALL = pa.struct(
    [
        ("flag", pa.bool_()),
        ("tiny", pa.int8()),
        ("big", pa.int64()),
        ("single", pa.float32()),
        ("double", pa.float64()),
        ("exact", pa.decimal128(9, 3)),
        ("text", pa.string()),
        ("day", pa.date32()),
        ("at", UTC_STAMP),
        ("local", LOCAL_STAMP),
        ("list", pa.list_(pa.int32())),
        ("inner", pa.struct([("x", pa.float64()), ("ys", pa.list_(pa.struct([("at", UTC_STAMP)])))])),
    ]
)


def one(kind: pa.DataType, text: bytes) -> tuple[bool, Any]:
    """Whether `{"a": text}` is taken as a payload whose `a` is of `kind`, and what `a` is."""
    values, corrupt = decoder("json", pa.struct([("a", kind)]))(pa.array([b'{"a":' + text + b"}"]))
    value = values[0].as_py()
    assert (value is None) == (corrupt[0].as_py() is not None)
    return value is not None, value and value["a"]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (pa.bool_(), b"true", True),
        (pa.int8(), b"-128", -128),
        (pa.int64(), b"9223372036854775807", 2**63 - 1),
        (pa.int64(), b"-0", 0),
        (pa.int64(), b"null", None),
        (pa.float64(), b"3", 3.0),
        (pa.float64(), b"1e400", math.inf),
        (pa.float64(), b"-Infinity", -math.inf),
        (pa.float64(), b'"Infinity"', math.inf),
        (pa.float32(), b"0.5", 0.5),
        (pa.decimal128(5, 2), b"1.005", Decimal("1.01")),
        (pa.decimal128(5, 2), b'"-7"', Decimal("-7.00")),
        (pa.decimal128(38, 0), b"9" * 38, Decimal("9" * 38)),
        (pa.string(), b'"a } \\n\\u00e9\\ud83d\\ude00\\u0000"', "a } \né😀\0"),
        (pa.string(), b"1.50", "1.50"),
        (pa.string(), b'{"b": [1, true, "x"]}', '{"b":[1,true,"x"]}'),
        (pa.binary(), b'"aGk="', b"hi"),
        (pa.date32(), b'"2026-01-31"', date(2026, 1, 31)),
        (UTC_STAMP, b'"2026-01-31"', datetime(2026, 1, 31, tzinfo=UTC)),
        (UTC_STAMP, b'"2026-01-31 10:00"', datetime(2026, 1, 31, 10, tzinfo=UTC)),
        (UTC_STAMP, b'"2026-01-31T10:00:00.123456789+01:30"', datetime(2026, 1, 31, 8, 30, 0, 123456, tzinfo=UTC)),
        (UTC_STAMP, b"-1", datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)),
        (LOCAL_STAMP, b'"2026-01-31T10:00:00.5"', datetime(2026, 1, 31, 10, 0, 0, 500000)),
        (pa.list_(pa.int32()), b"[1, null, 3]", [1, None, 3]),
        (pa.map_(pa.string(), pa.int32()), b'{"x": 1, "y": null}', [("x", 1), ("y", None)]),
        (pa.struct([("x", pa.int32())]), b'{"y": 1}', {"x": None}),
        (pa.int64(), b'1, "a": 2', 2),
        (pa.int64(), b'1,\n\t"b": {"c": [[], {}]}\r\n', 1),
    ],
)
def test_json_value_is_of_its_type(kind: pa.DataType, text: bytes, value: object) -> None:
    assert one(kind, text) == (True, value)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (pa.bool_(), b"1"),
        (pa.int8(), b"128"),
        (pa.int32(), b"1.0"),
        (pa.int32(), b"1e2"),
        (pa.int64(), b'"1"'),
        (pa.int64(), b"9223372036854775808"),
        (pa.int64(), b"9" * 5000),
        (pa.int64(), b"true"),
        (pa.int64(), b"NaN"),
        (pa.float64(), b'"1"'),
        (pa.float64(), b"Inf"),
        (pa.decimal128(5, 2), b"1000"),
        (pa.decimal128(5, 2), b"999.999"),
        (pa.decimal128(38, 0), b"9" * 39),
        (pa.decimal128(5, 2), b"1e999999999"),
        (pa.decimal128(5, 2), b'"1_0"'),
        (pa.decimal128(5, 2), b'"x"'),
        (pa.string(), b'"\\ud800"'),
        (pa.string(), b'"line\nend"'),
        (pa.string(), b'"\xff"'),
        (pa.binary(), b'"a"'),
        (pa.date32(), b'"2026-02-30"'),
        (pa.date32(), b"5"),
        (UTC_STAMP, b'"2026-01-31T24:00:00Z"'),
        (UTC_STAMP, b'"yesterday"'),
        (UTC_STAMP, b"1.5"),
        (UTC_STAMP, b"9" * 19),
        (LOCAL_STAMP, b'"2026-01-31T10:00:00Z"'),
        (pa.list_(pa.int32()), b"1"),
        (pa.list_(pa.int32()), b'[1, "x"]'),
        (pa.struct([("x", pa.int32())]), b"[1]"),
        (pa.map_(pa.string(), pa.int32()), b"[1]"),
        (pa.int64(), b""),
        (pa.int64(), b"01"),
        (pa.int64(), b"1}{"),
        (pa.int64(), b"1} null"),
    ],
)
def test_json_value_of_another_type_is_corrupt(kind: pa.DataType, text: bytes) -> None:
    assert one(kind, text) == (False, None)


BAD = [
    b"",
    b" ",
    b"null",
    b"3",
    b"[]",
    b'"x"',
    b"{",
    b"}",
    b"{} null",
    b"{}{}",
    b'{"n":1',
    b"}",
    b'{"n":"1"}',
    b"\xff",
    b"{}\0",
]
"""Among them ones that make up for each other's rows, and the one at which Arrow's reader alone ends the process."""


@pytest.mark.parametrize("good", [0, 1, FEW + 1, 5 * FEW])
@pytest.mark.parametrize("bad", [*[[one] for one in BAD], BAD, BAD * 100], ids=lambda bad: repr(bad)[:30])
def test_bad_payloads_leave_the_good_ones_alone(good: int, bad: list[bytes]) -> None:
    rows = [b'{"n":%d}' % i for i in range(good)]
    for i, payload in enumerate(bad):
        rows.insert(i * 7 % (len(rows) + 1), payload)

    values, corrupt = decoder("json", pa.struct([("n", pa.int64())]))(pa.array(rows))

    expected = [oracle_row(row, pa.struct([("n", pa.int64())])) for row in rows]
    assert values.to_pylist() == expected
    assert corrupt.to_pylist() == [row if value is None else None for row, value in zip(rows, expected, strict=True)]


@pytest.mark.parametrize(
    "bad", [[b'{"x":', b'{"n":5}}'], [b'{"n":1}{"n":2}', b'{"x":', b'{"n":5}}'], [b"{} null", b'{"x":', b"{}}"]]
)
def test_payloads_that_make_up_for_each_other_are_corrupt(bad: list[bytes]) -> None:
    """As one text, these are as many documents as there are payloads, or fewer; but not one each."""
    good = [b'{"n":%d}' % i for i in range(10)]

    values, corrupt = decoder("json", pa.struct([("n", pa.int64())]))(pa.array([*good, *bad, *good]))

    expected = [{"n": i} for i in range(10)]
    assert values.to_pylist() == [*expected, *[None] * len(bad), *expected]
    assert corrupt.to_pylist()[10:-10] == bad


def test_no_payload_is_no_value_and_nothing_corrupt() -> None:
    values, corrupt = decoder("json", pa.struct([("n", pa.int64())]))(pa.array([None, b'{"n":1}', None, b"x"]))

    assert values.to_pylist() == [None, {"n": 1}, None, None]
    assert corrupt.to_pylist() == [None, None, None, b"x"]


def test_column_without_rows_and_slices_of_columns() -> None:
    decode = decoder("json", ALL)
    whole = pa.array([b"x", b'{"tiny":1}', None, b'{"tiny":2}'])

    assert [len(column) for column in decode(pa.array([], pa.binary()))] == [0, 0]
    assert pc.struct_field(decode(whole.slice(1))[0], "tiny").to_pylist() == [1, None, 2]
    assert pc.struct_field(decode(pa.chunked_array([whole, whole]))[0], "tiny").to_pylist() == [None, 1, None, 2] * 2
    assert pc.struct_field(decode(pa.array(['{"tiny":3}']))[0], "tiny").to_pylist() == [3]


def test_payload_deeper_than_python_goes_is_read_all_the_same() -> None:
    deep = b'{"n":1,"x":' + b"[" * 50_000 + b"]" * 50_000 + b"}"
    decode = decoder("json", pa.struct([("n", pa.int64()), ("t", UTC_STAMP)]))

    # Among so many bad ones it is read row by row, where Python gives up.
    for others in ([], [b"bad"] * 9):
        values, _ = decode(pa.array([deep, *others]))
        assert values.to_pylist() == [{"n": 1, "t": None}, *[None] * len(others)]


# -- the oracle: json.loads and the rules, no Arrow --------------------------------------------------------------------


def oracle_row(payload: bytes, kind: pa.DataType) -> Any:
    try:
        document = json.loads(payload.decode(), parse_float=Decimal, parse_int=lambda text: Decimal(text))
        return None if document is None else oracle(document, kind)
    except (ValueError, ArithmeticError, KeyError):
        return None


def oracle(found: Any, kind: pa.DataType) -> Any:
    """What is wanted of documents written by `documents`: a smaller language than JSON."""
    if found is None:
        return None
    if pa.types.is_struct(kind):
        return {field.name: oracle(is_a(dict, found).get(field.name), field.type) for field in kind}
    if pa.types.is_list(kind):
        return [oracle(item, kind.value_type) for item in is_a(list, found)]
    if pa.types.is_integer(kind):
        number = is_a(Decimal, found)
        if (
            "." in str(found)
            or "E" in str(found)
            or not -(2 ** (kind.bit_width - 1)) <= number < 2 ** (kind.bit_width - 1)
        ):
            raise ValueError
        return int(number)
    if pa.types.is_float32(kind):
        return pa.scalar(float(is_a(Decimal, found)), pa.float32()).as_py()
    if pa.types.is_float64(kind):
        return float(is_a(Decimal, found))
    if pa.types.is_decimal(kind):
        if isinstance(found, str) and not found.strip("+-0123456789.") == "":
            raise ValueError
        value = Decimal(is_a((Decimal, str), found)).quantize(Decimal(10) ** -kind.scale, ROUND_HALF_UP)
        if abs(value) >= Decimal(10) ** (kind.precision - kind.scale):
            raise ValueError
        return value
    if kind == pa.string():
        return is_a(str, found)
    if kind == pa.bool_():
        return is_a(bool, found)
    if kind == pa.date32():
        return datetime.strptime(is_a(str, found), "%Y-%m-%d").date()
    stamp = datetime.fromisoformat(is_a(str, found))
    if kind.tz is None:
        return stamp if stamp.tzinfo is None else is_a(bool, None)
    return (stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)).astimezone(UTC)


def is_a(kind: Any, found: Any) -> Any:
    if not isinstance(found, kind):
        raise ValueError
    return found


# -- documents ---------------------------------------------------------------------------------------------------------

TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
LETTERS = 'ab{}[]," \\\n\0é😀'

WRONG: list[Callable[[Random], Any]] = [
    lambda chance: None,
    lambda chance: chance.random() < 0.5,
    lambda chance: chance.randint(-(2**65), 2**65),
    lambda chance: chance.randint(-200, 200),
    lambda chance: chance.uniform(-1000, 1000),
    lambda chance: "2026-01-31",
    lambda chance: "2026-13-31T00:00",
    lambda chance: [],
    lambda chance: {},
]


def document(chance: Random, kind: pa.DataType, wrongs: float) -> Any:
    """JSON of the type, or with something `wrong` in it, as often as that."""
    if chance.random() < wrongs:
        wrong = chance.choice(WRONG)(chance)
        # The oracle does not know how Spark writes other things into strings, nor stamps that are numbers.
        known = not (kind == pa.string() and wrong is not None) and not pa.types.is_timestamp(kind)
        return wrong if known or wrong is None else None
    if pa.types.is_struct(kind):
        fields = {field.name: document(chance, field.type, wrongs) for field in kind if chance.random() < 0.9}
        return fields | ({"more": {"list": fields}} if chance.random() < 0.2 else {})
    if pa.types.is_list(kind):
        return [document(chance, kind.value_type, wrongs) for _ in range(chance.randrange(4))]
    if pa.types.is_integer(kind):
        return chance.randint(-(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1)
    if pa.types.is_floating(kind):
        return chance.choice([chance.random(), chance.uniform(-1e30, 1e30), chance.randint(-9, 9), -0.0, 1e-320])
    if pa.types.is_decimal(kind):
        return chance.choice(
            [chance.randint(-99999, 99999), round(chance.uniform(-999, 999), chance.randrange(6)), "1.5"]
        )
    if kind == pa.bool_():
        return chance.random() < 0.5
    if kind == pa.string():
        return "".join(chance.choices(LETTERS, k=chance.randrange(8)))
    stamp = datetime(1900, 1, 1) + timedelta(microseconds=chance.randrange(10**16))
    if kind == pa.date32():
        return str(stamp.date())
    zone = chance.choice(["", "Z", "+05:30", "-08:00", "+0100", "-03"]) if kind.tz else ""
    return stamp.isoformat(chance.choice("T "), chance.choice(["auto", "minutes", "seconds"])) + zone


def documents(seed: int) -> list[bytes]:
    chance = Random(seed)
    wrongs = chance.choice([0, 0.002, 0.03])  # all read at once, some row by row, most row by row
    made = []
    for _ in range(chance.randrange(1, 30)):
        text = json.dumps(
            document(chance, ALL, wrongs), ensure_ascii=chance.random() < 0.5, indent=chance.choice([None, None, 1])
        )
        made.append(chance.choice(BAD) if chance.random() < wrongs else text.encode())
    return made


SEEDS = st.integers(0, 2**32)


@settings(max_examples=100, deadline=None)
@given(SEEDS)
def test_json_columns_are_what_the_oracle_says(seed: int) -> None:
    payloads = documents(seed)

    values, corrupt = decoder("json", ALL)(pa.array(payloads))

    expected = [oracle_row(payload, ALL) for payload in payloads]
    assert values.to_pylist() == expected
    assert [found is not None for found in corrupt.to_pylist()] == [value is None for value in expected]


@settings(max_examples=30, deadline=None)
@given(SEEDS)
def test_what_a_payload_is_does_not_depend_on_its_neighbours(seed: int) -> None:
    payloads = documents(seed)
    decode = decoder("json", ALL)

    together, _ = decode(pa.array(payloads))

    assert [value.as_py() for value in together] == [decode(pa.array([payload]))[0][0].as_py() for payload in payloads]


# -- encoding ----------------------------------------------------------------------------------------------------------

WRITTEN = pa.struct([*ALL, ("octets", pa.binary()), ("map", pa.map_(pa.string(), pa.list_(pa.float64())))])


def values_of(kind: pa.DataType) -> st.SearchStrategy[Any]:
    by_type: dict[Any, Callable[[], st.SearchStrategy[Any]]] = {
        pa.bool_(): st.booleans,
        pa.float32(): lambda: st.floats(width=32, allow_nan=False),
        pa.float64(): lambda: st.floats(allow_nan=False),
        pa.string(): lambda: TEXTS,
        pa.binary(): lambda: st.binary(max_size=8),
        pa.date32(): lambda: st.dates(date(1, 1, 1)),
        LOCAL_STAMP: st.datetimes,
        UTC_STAMP: lambda: st.datetimes(timezones=st.just(UTC)),
    }
    made: st.SearchStrategy[Any]
    if pa.types.is_struct(kind):
        made = st.fixed_dictionaries({field.name: values_of(field.type) for field in kind})
    elif pa.types.is_map(kind):
        made = st.dictionaries(TEXTS, values_of(kind.item_type), max_size=3).map(lambda found: list(found.items()))
    elif pa.types.is_list(kind):
        made = st.lists(values_of(kind.value_type), max_size=3)
    elif pa.types.is_integer(kind):
        made = st.integers(-(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1)
    elif pa.types.is_decimal(kind):
        made = st.decimals(-(10**5), 10**5, places=kind.scale)
    else:
        made = by_type[kind]()
    return st.none() | made


@pytest.mark.parametrize("name", ["json", "arrow"])
@settings(max_examples=50, deadline=None)
@given(st.lists(values_of(WRITTEN), max_size=6), st.integers(0, 2))
def test_what_the_sink_writes_the_source_reads(name: str, rows: list[Any], cut: int) -> None:
    array = pa.array(rows, WRITTEN).slice(cut)

    payloads = encoder(name, WRITTEN)(array)
    values, corrupt = decoder(name, WRITTEN)(payloads)

    assert values.to_pylist() == array.to_pylist()
    assert corrupt.null_count == len(array)
    if name == "json":
        assert all(type(json.loads(text)) is dict for text in payloads.to_pylist() if text is not None)


def test_json_written_is_plain() -> None:
    schema = pa.schema([("a", pa.int64()), ('b"', pa.string()), ("c", pa.float64()), ("d", pa.list_(pa.string()))])
    batch = pa.RecordBatch.from_pylist([{"a": 1, 'b"': 'x"\n', "c": math.nan, "d": ["é", None]}, {}], schema)

    written = encoder("json", schema)(batch).to_pylist()

    assert written == ['{"a":1,"b\\"":"x\\"\\n","c":"NaN","d":["é",null]}'.encode(), b"{}"]


# -- arrow -------------------------------------------------------------------------------------------------------------


def stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        for batch in table.to_batches():
            writer.write_batch(batch)
    return bytes(sink.getvalue())


def test_arrow_streams_of_different_senders_are_read_by_name() -> None:
    decode = decoder("arrow", pa.struct([("a", pa.int64()), ("b", pa.string())]))
    first, second = pa.table({"b": ["x"], "a": pa.array([1], pa.int8())}), pa.table({"a": [2], "more": [0.5]})
    dictionary = pa.table({"b": pa.array(["y"]).dictionary_encode()})

    values, corrupt = decode(pa.array([stream(first), stream(second), stream(dictionary), stream(first)]))

    ab = [{"a": 1, "b": "x"}, {"a": 2, "b": None}, {"a": None, "b": "y"}, {"a": 1, "b": "x"}]
    assert values.to_pylist() == ab
    assert corrupt.null_count == 4


def test_arrow_payloads_that_are_not_one_row_of_the_schema_are_corrupt() -> None:
    row, two, none = pa.table({"a": [1]}), pa.table({"a": [1, 2]}), pa.table({"a": pa.array([], pa.int64())})
    good = stream(row)
    head = row.schema.serialize().to_pybytes()
    bad = [
        stream(two),
        stream(none),
        stream(pa.table({"a": ["x"]})),
        stream(pa.table({"a": [2**40]})),
        b"",
        b"\xff" * 40,
    ]
    # Octets that would make up for each other if all were read as one stream: two batches here, none there.
    batches = row.to_batches()[0].serialize().to_pybytes()
    end = b"\xff\xff\xff\xff\0\0\0\0"
    bad += [head + batches + batches + end, head + end, head + end + end, good[:-9], good[:100]]

    decode = decoder("arrow", pa.struct([("a", pa.int32())]))
    values, corrupt = decode(pa.array([good, *bad, good]))

    assert decode(pa.array([head + batches + batches + end, head + end]))[0].null_count == 2
    assert decode(pa.array([good, head + end + end]))[0].to_pylist() == [{"a": 1}, None]
    assert values.to_pylist() == [{"a": 1}, *[None] * len(bad), {"a": 1}]
    assert corrupt.to_pylist() == [None, *bad, None]


# -- the registry ------------------------------------------------------------------------------------------------------


def test_unknown_format_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"no format 'jsn'; did you mean json\?"):
        decoder("jsn", ALL)


@pytest.mark.parametrize(
    ("name", "schema", "problem"),
    [
        ("raw", ALL, "raw payloads have no value column"),
        ("json", None, "json payloads need a schema"),
        ("json", pa.int64(), "int64 is no struct"),
        ("json", pa.struct([]), "value has no fields"),
        ("json", pa.struct([pa.field("a", pa.int64(), nullable=False)]), r"value\.a must not be null"),
        ("json", pa.schema([("a", pa.int64()), ("a", pa.int64())]), "'a' twice"),
        ("json", pa.struct([("a", pa.list_(pa.duration("us")))]), r"value\.a\[\] is duration\[us\]"),
    ],
)
def test_schema_that_cannot_be_is_refused_with_its_field(name: str, schema: Any, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        decoder(name, schema)


def test_third_party_format_is_used_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", {})  # it is gone when the test is over

    def of_numbers(schema: pa.StructType) -> Any:
        def decode(payloads: pa.Array) -> tuple[pa.Array, pa.Array]:
            numbers = [{"n": int(payload)} for payload in payloads.to_pylist()]
            return pa.array(numbers, schema), pa.nulls(len(payloads), pa.binary())

        return decode

    register("test-numbers", of_numbers)

    assert "test-numbers" in formats()
    assert decoder("test-numbers", pa.struct([("n", pa.int64())]))(pa.array([b"7"]))[0].to_pylist() == [{"n": 7}]
    with pytest.raises(ConfigError, match="test-numbers can be read only"):
        encoder("test-numbers", ALL)
    with pytest.raises(ConfigError, match="there is a format 'json' already"):
        register("json", of_numbers)


def test_module_that_an_option_names_brings_its_format(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:  # fmt: skip
    monkeypatch.setattr(registry, "_registered", {})
    monkeypatch.syspath_prepend(tmp_path)
    text = "from elea.spark.payload import register\nregister('of-a-module', lambda schema: print)\n"
    (tmp_path / "formats_of_a_test.py").write_text(text)
    (tmp_path / "broken_formats_of_a_test.py").write_text("1 / 0")

    with pytest.raises(ConfigError, match=r"there is no format 'of-a-module'.*payloadModule"):
        load("of-a-module", None)
    load("of-a-module", "formats_of_a_test")
    assert "of-a-module" in formats()
    with pytest.raises(ConfigError, match=r"no format 'other', also not in formats_of_a_test"):
        load("other", "formats_of_a_test")
    with pytest.raises(ConfigError, match=r"broken_formats_of_a_test cannot be imported: ZeroDivisionError.*py-files"):
        load("of-a-module", "broken_formats_of_a_test")


def test_type_of_spark_becomes_arrows_without_a_jvm() -> None:
    from pyspark.sql.types import ArrayType, DecimalType, LongType, StructField, StructType, TimestampType

    fields = [
        StructField("a", LongType()),
        StructField("t", ArrayType(TimestampType())),
        StructField("d", DecimalType(9, 3)),
    ]
    schema = StructType(fields)

    assert [field.type for field in struct_of(schema)][::2] == [pa.int64(), pa.decimal128(9, 3)]
    assert struct_of(schema).field("t").type.value_type == UTC_STAMP
    assert value_type(schema.json()) == "STRUCT<`a`: bigint, `t`: ARRAY<timestamp>, `d`: decimal(9,3)>"
    assert value_type(" a BIGINT, b STRING ") == "STRUCT<a BIGINT, b STRING>"
    assert value_type("struct<a: int>") == "struct<a: int>"


@pytest.mark.parametrize("text", ["", "{", '{"type": "struct"}'])
def test_schema_text_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="payloadSchema"):
        value_type(text)


def test_importing_the_package_starts_nothing() -> None:
    code = (
        "import sys, elea.spark.payload; print([m for m in ('pyspark', 'py4j', 'numba', 'pandas') if m in sys.modules])"
    )

    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )
