"""`xrce2017` behind the common interface."""

from __future__ import annotations

from elea.wire.early import Codec
from elea.wire.early_dialect import EarlyDialect
from elea.wire.xrce2017 import codec, messages

__all__ = ["DIALECT"]

DIALECT = EarlyDialect("xrce2017", Codec.of(codec), codec, messages)
