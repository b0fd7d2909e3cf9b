"""Declared types of payloads, and the languages they are declared in. See docs/payloads.md."""

from elea.content.schema.declared import Struct
from elea.content.schema.idl import parse_idl
from elea.content.schema.rosmsg import parse_rosmsg

__all__ = ["Struct", "parse_idl", "parse_rosmsg"]
