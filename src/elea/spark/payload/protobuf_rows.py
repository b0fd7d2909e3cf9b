"""Where Spark finds the descriptors of protobuf messages, and what their columns are called there."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import Any

from elea.columnar.protobufcolumns import ProtobufRows, struct_type
from elea.content.protobuf import pool_of
from elea.model.errors import ConfigError, InvalidSchema

__all__ = ["ProtobufRows", "descriptor_of", "struct_type", "value_ddl"]


def descriptor_of(name: str, file: str | None) -> Any:
    """The descriptor of a message: out of what `protoc --descriptor_set_out` wrote, or of the modules imported here.

    Raises:
        ConfigError: the library is not there, the file is none, or it has no such message.
    """
    try:
        from google.protobuf import descriptor_pool
    except ImportError as error:
        hint = "in a clone of Elea: pip install '.[uprotocol]'"
        raise ConfigError("option payloadMessage", "it needs protobuf, which is not installed", hint) from error
    pool, names = (descriptor_pool.Default(), []) if file is None else _pool_of(file)
    try:
        return pool.FindMessageTypeByName(name)
    except KeyError:
        pass
    if file is None:
        hint = "name its _pb2 module with payloadModule, or a descriptor set with payloadDescriptor"
        raise ConfigError("option payloadMessage", f"no module here has a message {name}", hint) from None
    near = get_close_matches(name, names, 1, 0.3)
    hint = f"did you mean {near[0]}?" if near else f"messages are {', '.join(names)}"
    raise ConfigError("option payloadMessage", f"{file} has no message {name}", hint)


def _pool_of(file: str) -> tuple[Any, list[str]]:
    """All that a descriptor set has, and the full names of its messages."""
    hint = "protoc --include_imports --descriptor_set_out=FILE my.proto writes one"
    try:
        return pool_of(Path(file).read_bytes())
    except OSError as error:
        raise ConfigError("option payloadDescriptor", f"{file} is no descriptor set: {error}", hint) from error
    except InvalidSchema as error:
        raise ConfigError("option payloadDescriptor", f"{file}: {error.problem}", hint) from error


def value_ddl(descriptor: Any) -> str:
    """The type of a message in Spark's language."""
    from pyspark.sql.pandas.types import from_arrow_type

    from elea.spark.payload.types import value_type

    found: Any = from_arrow_type(struct_type(descriptor))
    return value_type(found.json())
