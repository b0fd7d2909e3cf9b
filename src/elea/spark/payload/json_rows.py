"""One JSON payload after the other, with all the rules; the quick way (`json_format`) knows fewer and falls back here.

The rules are those of Spark's `from_json`, except that a payload which breaks one of them has no value at all (Spark
keeps the fields that fit) and that times without a zone are UTC (Spark: the session's zone):

| type | JSON |
|---|---|
| any | `null`, or no such field: null. Fields not in the schema are passed over; of one given twice, the last counts |
| BOOLEAN | `true`, `false` |
| TINYINT … BIGINT | a number without fraction and exponent, in range |
| FLOAT, DOUBLE | a number; `NaN`, `Infinity`, `-Infinity`, also as strings |
| DECIMAL | a number, or a string of one; rounded half up to the scale; in range |
| STRING | a string; anything else as its JSON text |
| BINARY | a string in base64 |
| DATE | `"2026-01-31"` |
| TIMESTAMP | `"2026-01-31T12:00:00.123456Z"`, `T` or blank, all behind the day may be missing; or seconds since 1970 |
| TIMESTAMP_NTZ | the same as a string, without zone |
| ARRAY, STRUCT, MAP (keys are strings) | an array, an object, an object |
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any, Final

import pyarrow as pa

from elea.model.errors import ConfigError

__all__ = ["DAY", "TIME", "ZONE", "JsonRows"]

DAY: Final = r"\d{4}-\d{2}-\d{2}"
TIME: Final = r"[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?"
ZONE: Final = r"Z|[+-]\d{2}(?::?\d{2})?"

STAMP: Final = re.compile(rf"({DAY})(?:({TIME})({ZONE})?)?", re.ASCII)
NUMBER: Final = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
SPECIAL: Final = {
    "NaN": float("nan"),
    "Infinity": float("inf"),
    "+Infinity": float("inf"),
    "-Infinity": float("-inf"),
    "+INF": float("inf"),
    "-INF": float("-inf"),
}
EPOCH: Final = datetime(1970, 1, 1)
MICROSECOND: Final = timedelta(microseconds=1)
LONGEST_INTEGER: Final = 20
DIGITS: Final = Context(prec=100)

Read = Callable[[Any], Any]


class Number(str):
    """A number as it was written: strings and decimals need every digit of it."""

    __slots__ = ()


class Mismatch(ValueError):
    """JSON that is not of the type wanted."""


class JsonRows:
    """Payloads to structs of `target`; null where a payload is not one.

    `alone` is asked for a payload too deep for Python: another reader, that gets it in an array of one.
    """

    def __init__(self, target: pa.StructType, alone: Callable[[pa.Array], pa.Array | None]) -> None:
        self._target = target
        self._read = reader(target, "value")
        self._alone = alone

    def __call__(self, payloads: pa.Array) -> pa.Array:
        """The values of an array without nulls."""
        return pa.array([self._value(payload) for payload in payloads], self._target)

    def _value(self, payload: Any) -> Any:
        try:
            # Python would count a mark at the beginning of UTF-8 as an error, and guess UTF-16 and UTF-32 from octets.
            found = json.loads(payload.as_py().decode(), parse_int=Number, parse_float=Number)
            return None if found is None else self._read(found)
        except (ValueError, ArithmeticError):
            return None
        except RecursionError:
            values = self._alone(pa.array([payload]))
            return None if values is None else values[0].as_py()


def reader(target: pa.DataType, path: str) -> Read:
    """The function that makes a Python value for `target` out of parsed JSON, or raises ValueError or ArithmeticError.

    Raises:
        ConfigError: JSON has nothing for the type.
    """
    if pa.types.is_struct(target):
        return _struct([(field.name, _nullable(reader(field.type, f"{path}.{field.name}"))) for field in target])
    if pa.types.is_list(target):
        return _array(_nullable(reader(target.value_type, f"{path}[]")))
    if pa.types.is_map(target) and pa.types.is_string(target.key_type):
        return _map(_nullable(reader(target.item_type, f"{path}{{}}")))
    if pa.types.is_signed_integer(target):
        return _integer(target.bit_width)
    if pa.types.is_decimal(target):
        return _decimal(target.precision, target.scale)
    if pa.types.is_timestamp(target) and target.unit == "us":
        return _timestamp if target.tz else _local_timestamp
    if target in SCALARS:
        return SCALARS[target]
    hint = "use STRING for it and convert in the query, or payloadFormat=raw"
    raise ConfigError("payloadSchema", f"{path} is {target}, which JSON cannot hold", hint)


def _nullable(read: Read) -> Read:
    return lambda found: None if found is None else read(found)


# -- containers --------------------------------------------------------------------------------------------------------


def _struct(fields: list[tuple[str, Read]]) -> Read:
    def read(found: Any) -> dict[str, Any]:
        if type(found) is not dict:
            raise Mismatch
        return {name: field(found.get(name)) for name, field in fields}

    return read


def _array(element: Read) -> Read:
    def read(found: Any) -> list[Any]:
        if type(found) is not list:
            raise Mismatch
        return [element(item) for item in found]

    return read


def _map(item: Read) -> Read:
    def read(found: Any) -> list[tuple[str, Any]]:
        if type(found) is not dict:
            raise Mismatch
        return [(_text(key), item(value)) for key, value in found.items()]

    return read


# -- numbers -----------------------------------------------------------------------------------------------------------


def _boolean(found: Any) -> bool:
    if type(found) is not bool:
        raise Mismatch
    return found


def _integer(bits: int) -> Read:
    bound = 1 << (bits - 1)

    def read(found: Any) -> int:
        # Python refuses, and is slow with, integers of thousands of digits; none of them is in range.
        if type(found) is not Number or len(found) > LONGEST_INTEGER:
            raise Mismatch
        value = int(found)  # raises ValueError for a fraction or an exponent
        if not -bound <= value < bound:
            raise Mismatch
        return value

    return read


def _float(found: Any) -> float:
    if type(found) is Number or type(found) is float:  # json.loads makes floats of NaN and Infinity only
        return float(found)
    if type(found) is str and found in SPECIAL:
        return SPECIAL[found]
    raise Mismatch


def _decimal(precision: int, scale: int) -> Read:
    unit = Decimal(1).scaleb(-scale)
    bound = Decimal(10) ** (precision - scale)

    def read(found: Any) -> Decimal:
        if type(found) not in (Number, str) or not NUMBER.fullmatch(found):
            raise Mismatch
        value = Decimal(found).quantize(unit, ROUND_HALF_UP, DIGITS)
        if abs(value) >= bound:
            raise Mismatch
        return value

    return read


# -- text and time -----------------------------------------------------------------------------------------------------


def _text(found: Any) -> str:
    text = found if isinstance(found, str) else _written(found)
    if not text.isascii():
        text.encode()  # raises for half of a surrogate pair, which JSON can write and UTF-8 cannot
    return str(text)


def _written(found: Any) -> str:
    """JSON text of what is not a string, numbers as they came."""
    if isinstance(found, Number):
        return str(found)
    if isinstance(found, dict):
        return "{" + ",".join(f"{json.dumps(k, ensure_ascii=False)}:{_written(v)}" for k, v in found.items()) + "}"
    if isinstance(found, list):
        return "[" + ",".join(map(_written, found)) + "]"
    return json.dumps(found, ensure_ascii=False)


def _binary(found: Any) -> bytes:
    if type(found) is not str:
        raise Mismatch
    return b64decode(found, validate=True)


def _date(found: Any) -> date:
    if type(found) is not str or not re.fullmatch(DAY, found, re.ASCII):
        raise Mismatch
    return date.fromisoformat(found)


def _timestamp(found: Any) -> int:
    if type(found) is Number:
        seconds: int = _integer(64)(found)
        return _in_range(seconds * 1_000_000)
    stamp, zone = _stamp(found)
    if zone in (None, "Z"):
        return stamp
    hours, minutes = int(zone[1:3]), int(zone[3:].lstrip(":") or 0)
    if hours > 23 or minutes > 59:
        raise Mismatch
    offset = (hours * 60 + minutes) * 60_000_000
    return stamp + offset if zone[0] == "-" else stamp - offset


def _local_timestamp(found: Any) -> int:
    stamp, zone = _stamp(found)
    if zone is not None:
        raise Mismatch
    return stamp


def _stamp(found: Any) -> tuple[int, str | None]:
    """Microseconds since 1970 as the clock of the zone shows them, and the zone."""
    parts = STAMP.fullmatch(found) if type(found) is str else None
    if parts is None:
        raise Mismatch
    day, time, zone = parts.groups()
    whole, _, fraction = (time or "").partition(".")
    stamp = (datetime.fromisoformat(day + whole) - EPOCH) // MICROSECOND
    return stamp + int(fraction[:6].ljust(6, "0")), zone


def _in_range(stamp: int) -> int:
    if not -(1 << 63) <= stamp < 1 << 63:
        raise Mismatch
    return stamp


SCALARS: Final[dict[pa.DataType, Read]] = {
    pa.bool_(): _boolean,
    pa.float32(): _float,
    pa.float64(): _float,
    pa.string(): _text,
    pa.binary(): _binary,
    pa.date32(): _date,
}
