"""The formats of payloads, by name. A format is loaded when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from importlib import import_module
from typing import Any, Final, NamedTuple

from elea.model.errors import ConfigError
from elea.spark.payload.types import struct_of

__all__ = ["Decoder", "Encoder", "decoder", "encoder", "formats", "load", "register"]

Decoder = Callable[[Any], tuple[Any, Any]]
"""A column of binary payloads to (column of structs, column of the corrupt payloads); both as long as the first."""

Encoder = Callable[[Any], Any]
"""A RecordBatch to a column of binary payloads, one a row."""

RAW: Final = "raw"
DECLARED: Final = ("cdr", "protobuf")
"""Payloads of declared types: `elea.spark.payload.declared_format` reads them, and nobody writes them."""

UPROTOCOL: Final = "uprotocol"
"""Whole samples, not payloads alone: `elea.spark.payload.uprotocol_format` makes columns of them."""

MODULES: Final = {
    "json": "elea.spark.payload.json_format",
    "arrow": "elea.spark.payload.arrow_format",
}
"""Where the formats are. To add one: a module with `decoder(schema)` and `encoder(schema)`, and a line here."""


class _Format(NamedTuple):
    decoder: Callable[[Any], Decoder]
    encoder: Callable[[Any], Encoder] | None


_registered: dict[str, _Format] = {}


def register(
    name: str,
    decoder: Callable[[Any], Decoder],
    encoder: Callable[[Any], Encoder] | None = None,
    *,
    replace: bool = False,
) -> None:
    """Add a format of one's own, when a module is imported that the option `payloadModule` names.

    Args:
        name: what `payloadFormat` calls it.
        decoder: the `pyarrow.StructType` of a payload to the function that decodes columns.
        encoder: the same for the sink; without it the format can only be read.
        replace: allow a name that is taken.
    """
    if not replace and name in formats():
        raise ConfigError(
            "payloadFormat", f"there is a format {name!r} already", "choose another name, or replace=True"
        )
    _registered[name] = _Format(decoder, encoder)


def formats() -> tuple[str, ...]:
    """The names `payloadFormat` may have."""
    return tuple(sorted({RAW, UPROTOCOL, *DECLARED, *MODULES, *_registered}))


def load(name: str, module: str | None) -> None:
    """Have a format: import the module that registers it. Every process of Spark has to, for each has its own formats.

    Raises:
        ConfigError: the module cannot be imported here, or there is no such format all the same.
    """
    if module is not None:
        try:
            import_module(module)
        except Exception as error:
            hint = "install it on every machine of the cluster, or bring it with --py-files"
            told = f"{module} cannot be imported: {type(error).__name__}: {error}"
            raise ConfigError("payloadModule", told, hint) from error
    if name != RAW and name not in formats():
        _format(name, module)


def decoder(name: str, schema: Any) -> Decoder:
    """The function that turns payloads of format `name` into structs of `schema`.

    Raises:
        ConfigError: there is no such format, or it cannot hold such a schema.
    """
    return _format(name).decoder(_given(name, schema, read=True))


def encoder(name: str, schema: Any) -> Encoder:
    """The function that turns rows of `schema` into payloads of format `name`.

    Raises:
        ConfigError: there is no such format, or it cannot hold such a schema.
    """
    found = _format(name).encoder
    if found is None:
        raise ConfigError("payloadFormat", f"{name} can be read only", f"write with {' or '.join(MODULES)}")
    return found(_given(name, schema, read=False))


def _format(name: str, module: str | None = None) -> _Format:
    if name in _registered:
        return _registered[name]
    if name in MODULES:
        own = import_module(MODULES[name])
        return _Format(own.decoder, own.encoder)
    if name == RAW:
        raise ConfigError(
            "payloadFormat", "raw payloads have no value column", "leave out payloadSchema, or name a format"
        )
    if name == UPROTOCOL:
        problem = "a uProtocol message is more than its payload, and can be read only"
        raise ConfigError("payloadFormat", problem, f"write with {' or '.join(MODULES)}")
    if name in DECLARED:
        raise ConfigError("payloadFormat", f"{name} can be read only", f"write with {' or '.join(MODULES)}")
    near = get_close_matches(name, formats(), 1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(formats())}"
    if module is None:
        hint += "; one of your own: name the module that registers it with the option payloadModule"
    told = f"there is no format {name!r}" + ("" if module is None else f", also not in {module}")
    raise ConfigError("payloadFormat", told, hint)


def _given(name: str, schema: Any, *, read: bool) -> Any:
    if schema is None:
        raise ConfigError(
            "payloadSchema", f"{name} payloads need a schema", "e.g. payloadSchema='id BIGINT, temp DOUBLE'"
        )
    return struct_of(schema, read=read)
