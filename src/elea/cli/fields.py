"""The fields of payloads as JSON: what `--fields` of `elea sub` and `elea get` print."""

from __future__ import annotations

import math
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from elea.content.contents import UNKNOWN
from elea.model.predicate.types import Label

if TYPE_CHECKING:
    from elea.api.sample import Sample
    from elea.content import Contents

__all__ = ["fields_of"]


def fields_of(sample: Sample, contents: Contents) -> object:
    """What a sample says, as JSON has it; None if nobody can read it."""
    encoding = sample.encoding
    found = contents.decode(str(sample.key_expr), encoding.id, encoding.schema, sample.payload.to_bytes())
    return None if found is UNKNOWN else _plain(found)


def _plain(value: object) -> object:
    """Labels by name, bytes in hex, times in ISO 8601; numbers that JSON has not as text."""
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, Label):
        return value.name
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal) else value
