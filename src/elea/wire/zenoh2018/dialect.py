"""`zenoh2018` behind the common interface."""

from __future__ import annotations

from elea.wire.early import Codec
from elea.wire.early_dialect import EarlyDialect
from elea.wire.zenoh2018 import codec, messages

__all__ = ["DIALECT"]

DIALECT = EarlyDialect("zenoh2018", Codec.of(codec), codec, messages)
