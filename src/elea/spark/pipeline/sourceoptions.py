"""Options that a pipeline file passes on to `format("zenoh")`: looked at by the same code as Spark's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from elea.model.errors import ConfigError
from elea.spark.options import ReadOptions, WriteOptions
from elea.spark.pipeline.lines import Path as Entry
from elea.spark.pipeline.parts import Reporter
from elea.spark.pipeline.spec import Publish, Source
from elea.spark.schema import UPROTOCOL

__all__ = ["check_publish", "check_source"]

_OWN_OPTIONS: Final = {"connect", "keyexpr", "subscribe", "path", "payloadformat", "payloadschema", "kind", "asof"} | {
    "includemetadata",
    "startingoffsets",
    "startingtimestamp",
    "key",
    "sourceid",
    "writerid",
    "writerbatch",
}
"""Options that a key of the file says, or that a run sets itself."""


def check_source(source: Source, to: Reporter) -> None:
    """Report what is wrong with the options of a source."""
    path = ("source", source.name)
    if not _are_others(path, source.options, to):
        return
    try:
        # Those have options of their own. A schema needs Spark; any stands for it.
        is_declared = source.format in (UPROTOCOL, "cdr", "protobuf")
        kind = source.format if is_declared else "raw"
        schema = "a INT" if is_declared and source.format != UPROTOCOL else None
        options = ReadOptions.parse(replace(source, format=kind, schema=schema).read_options())
        if source.is_stream:
            options.check_stream()
        else:
            options.check_batch()
    except ConfigError as error:
        _report(path, error, to)


def check_publish(publish: Publish, to: Reporter) -> None:
    """Report what is wrong with the options of a publish."""
    path = ("publish", publish.name)
    if not _are_others(path, publish.options, to):
        return
    try:
        WriteOptions.parse(publish.write_options())
    except ConfigError as error:
        _report(path, error, to)


def _are_others(path: Entry, options: Mapping[str, str], to: Reporter) -> bool:
    """Report an option that has a key of its own; whether there is none."""
    for name in options:
        if name.replace("_", "").lower() in _OWN_OPTIONS:
            fix = "leave it out: the table has a key for it, or the run sets it"
            to.report((*path, "options", name), f"options must not say {name}", fix)
            return False
    return True


def _report(path: Entry, error: ConfigError, to: Reporter) -> None:
    name = error.path.removeprefix("option ")
    to.report((*path, "options", name), f"{name}: {error.problem}", error.hint or "docs/spark.md has all options")
