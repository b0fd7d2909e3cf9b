"""What the payloads of samples hold: a registry of formats, each a pair of vectorised functions on Arrow columns.

    values, corrupt = decoder("json", schema)(payloads)      # the source: binary column to struct column
    payloads = encoder("json", schema)(batch)                # the sink: columns to one payload a row

`schema` is the struct of one payload: a `pyarrow.StructType` or `pyarrow.Schema`, or the pyspark `StructType` that
Spark has parsed from the option `payloadSchema` (`value_type` makes the text that Spark parses). Decoding is
permissive: a payload that is not of the schema gives a null value, and stands whole in `corrupt`; `observed` counts
them.

| name | payload | several rows in one payload |
|---|---|---|
| `raw` | octets, not looked into: no `value` column | – |
| `json` | one JSON object in UTF-8 (`elea.spark.payload.json_rows` has the rules) | corrupt |
| `arrow` | an Arrow IPC stream with one row | corrupt |
| `cdr`, `protobuf` | by declared types (`declared_format`); to read only | – |
| `uprotocol` | that of a uProtocol message; read whole, with its attributes (`uprotocol_format`) | – |

A format is one module with two functions, `decoder(schema)` and `encoder(schema)`, and a line in `registry.MODULES`;
third parties call `register` in a module that the option `payloadModule` names. Nothing here starts or needs a JVM.
"""

from __future__ import annotations

from elea.spark.payload.counting import CORRUPT, VALUE, observed
from elea.spark.payload.registry import DECLARED, Decoder, Encoder, decoder, encoder, formats, load, register
from elea.spark.payload.types import struct_of, value_type

__all__ = [
    "CORRUPT",
    "DECLARED",
    "VALUE",
    "Decoder",
    "Encoder",
    "decoder",
    "encoder",
    "formats",
    "load",
    "observed",
    "register",
    "struct_of",
    "value_type",
]
