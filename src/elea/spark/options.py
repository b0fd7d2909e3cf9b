"""The options of `format("zenoh")`, read once into values; a name nobody knows is an error that says the nearest one.

Spark hands options over as texts, whatever their case; `starting_offsets` means `startingOffsets`. What begins with
`zenoh.` goes to the configuration of the session as it is: `zenoh.transport.link.tls.…`.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Final, Self

from elea.model.errors import ConfigError, InvalidKeyExpr, InvalidSelector
from elea.model.qos import CongestionControl, Priority
from elea.spark.texts import expressions, instant, listed, member, one_of, predicate, truth, whole

__all__ = ["SPOOL", "Access", "ReadOptions", "WriteOptions"]

CONNECT: Final = "tcp/127.0.0.1:7447"
PASSED_ON: Final = "zenoh."
SPOOL: Final = "spool"
OF_SPARK: Final = {"checkpointlocation", "queryname", "outputmode"}
"""Options that Spark takes itself and hands on to the sink of a stream."""
PARALLELISM: Final = "ELEA_SPARK_PARALLELISM"
"""An environment variable that `elea.spark.session` sets for the driver's processes: how many tasks run at once."""


# -- what an option is -----------------------------------------------------------------------------------------------


def _option(
    parse: Callable[[str], Any] = str, default: Any = None, *, also: Iterable[str] = (), name: str | None = None
) -> Any:
    """A field that comes from an option; without a default it is None."""
    return field(default=default, metadata={"parse": parse, "also": tuple(also), "name": name})


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


@dataclass(frozen=True, kw_only=True)
class Access:
    """How a session is opened; the same for reading and writing."""

    connect: tuple[str, ...] = _option(listed, (CONNECT,))
    """Locators."""

    config: str | None = _option()
    """A configuration of a session: the path of a file, or JSON5."""

    dialect: str = _option(one_of("1.x", "2018", "xrce"), "1.x")
    connect_timeout_ms: int = _option(whole(1), 10_000)
    """How long a broker may take to be reached."""

    request_timeout_ms: int = _option(whole(1), 60_000)
    """How long a broker may be away, or take for one answer, before a task gives up."""

    payload_format: str = _option(lambda text: text.strip().lower(), "raw")
    payload_schema: str | None = _option()
    payload_module: str | None = _option()
    """A module that registers the format; every process of Spark imports it."""

    passed_on: tuple[tuple[str, str], ...] = ()
    """Entries of the session's configuration: path and value."""

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> Self:
        """Read options.

        Raises:
            ConfigError: a name is unknown, given twice, or has a value that makes no sense.
        """
        known = {_plain(name): one for one in fields(cls) if one.metadata for name in _names(one)}
        found: dict[str, Any] = {}
        given: dict[str, str] = {}
        passed_on = []
        for name, text in options.items():
            if name.lower().startswith(PASSED_ON):
                passed_on.append((name[len(PASSED_ON) :].replace(".", "/"), text))
                continue
            one = known.get(_plain(name))
            if one is None and _plain(name) in OF_SPARK:
                continue
            if one is None:
                raise ConfigError(f"option {name}", "there is no such option", cls._nearest(name))
            if one.name in found:
                raise ConfigError(f"option {name}", f"it says the same as {given[one.name]}", "give one of them")
            given[one.name] = name
            found[one.name] = _parsed(one, _documented(one, name), str(text))
        made = cls(**found, passed_on=tuple(sorted(passed_on)))
        made.check()
        return made

    def check(self) -> None:
        """Look at options that have to fit each other."""
        if self.dialect != "1.x":
            raise ConfigError("option dialect", f"Spark reads and writes 1.x, not {self.dialect}", "leave it out")

    @classmethod
    def _nearest(cls, name: str) -> str:
        names = {_plain(one): one for one in cls.names()}
        near = difflib.get_close_matches(_plain(name), names, 1, 0.5)
        listed = ", ".join(sorted(names.values(), key=str.lower))
        return f"did you mean {names[near[0]]}?" if near else f"options are {listed}"

    @classmethod
    def names(cls) -> list[str]:
        """Every option, as documented."""
        return [name for one in fields(cls) if one.metadata for name in _names(one)]


def _names(one: Any) -> list[str]:
    """The name of an option and its other names."""
    head, *rest = one.name.split("_")
    camel = one.metadata["name"] or head + "".join(piece.capitalize() for piece in rest)
    return [camel, *one.metadata["also"]]


def _documented(one: Any, name: str) -> str:
    """An option as it is written in the documentation: Spark hands over lower case."""
    return next(each for each in _names(one) if _plain(each) == _plain(name))


def _parsed(one: Any, name: str, text: str) -> Any:
    try:
        return one.metadata["parse"](text)
    except (ValueError, InvalidKeyExpr, InvalidSelector) as error:
        hint = "" if one.default in (None, MISSING, ()) else f"the default is {_shown(one.default)}"
        raise ConfigError(f"option {name}", f"{text!r} does not do: {error}", hint) from error


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)


_PRIORITY: Final = member(Priority)
_CONGESTION: Final = member(CongestionControl)


# -- the options -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ReadOptions(Access):
    """What `spark.read` and `spark.readStream` can be told; docs/spark.md has the table."""

    key_exprs: tuple[str, ...] = _option(expressions, (), name="keyexpr", also=("subscribe", "path"))
    mode: str = _option(one_of("log", "query"), "log")
    """`log`: what a store has kept, in its order. `query`: what a get on the selector brings."""

    selector: str | None = _option()
    as_of: int | None = _option(instant)
    kind: str | None = _option(one_of("put", "delete"))
    predicate: str | None = _option(predicate)
    """Only samples for which it holds; looked at by the broker, and again where blocks are read in place."""

    starting_offsets: str | None = _option()
    ending_offsets: str | None = _option()
    starting_timestamp: int | None = _option(instant)
    ending_timestamp: int | None = _option(instant)
    max_offsets_per_trigger: int | None = _option(whole(1))
    max_bytes_per_trigger: int | None = _option(whole(1))
    min_partitions: int | None = _option(whole(1))
    fail_on_data_loss: bool = _option(truth, True)
    source_id: str | None = _option()
    ingest: str = _option(one_of("log", SPOOL), "log")
    spool_dir: str | None = _option()
    history: bool = _option(truth, False)
    poll_timeout_ms: int = _option(whole(0), 100)
    include_metadata: bool = _option(truth, False)
    pushdown: bool = _option(truth, False)
    payload_message: str | None = _option()
    """The declared type of payloads: a protobuf message, or a type of CDR."""

    payload_descriptor: str | None = _option()
    """What `protoc --descriptor_set_out` writes, or IDL, or a ROS message: a file on every machine. Without it,
    `payload_module` has it, or the data space."""

    landing: str | None = _option()
    """The directory of a table: tasks write the rows there, and the rows of the stream are the files. What
    `elea.spark.ingest` is made of."""

    landing_schema: str | None = _option()
    """The columns of the files, as Spark's JSON."""

    landing_partitions: tuple[str, ...] = _option(listed, ())
    """Columns of which each value has files of its own."""

    def check(self) -> None:
        super().check()
        if not self.key_exprs and self.selector is None:
            hint = 'write .load("fleet/**") or .option("keyexpr", "fleet/**")'
            raise ConfigError("option keyexpr", "nothing says what to read", hint)
        if self.max_offsets_per_trigger is not None and self.max_bytes_per_trigger is not None:
            hint = "give maxOffsetsPerTrigger or maxBytesPerTrigger"
            raise ConfigError("option maxBytesPerTrigger", "a micro-batch has one limit", hint)
        for first, second in (("starting_offsets", "starting_timestamp"), ("ending_offsets", "ending_timestamp")):
            if getattr(self, first) is not None and getattr(self, second) is not None:
                raise ConfigError(f"option {first}", f"{second} says the same", "give one of them")
        if self.ingest == SPOOL and self.spool_dir is None:
            hint = "name a directory that lasts, on a disk that all executors see"
            raise ConfigError("option spoolDir", "ingest=spool needs a place for its spool", hint)
        if (self.mode == "query" or self.as_of is not None or self.selector is not None) and self.ingest == SPOOL:
            raise ConfigError("option mode", "a get knows no spool", "leave ingest out")
        if self.history and self.ingest != SPOOL:
            hint = "leave it out: a log has its history, startingOffsets=earliest reads it"
            raise ConfigError("option history", "it is for ingest=spool", hint)
        if self.payload_format == "raw" and self.payload_schema is not None:
            hint = "name the format: .option('payloadFormat', 'json')"
            raise ConfigError("option payloadSchema", "raw payloads have no schema", hint)
        for name, given in (("payloadMessage", self.payload_message), ("payloadDescriptor", self.payload_descriptor)):
            if given is not None and self.payload_format not in ("uprotocol", "protobuf", "cdr"):
                problem = f"payloadFormat={self.payload_format} knows no declared types, such as protobuf messages"
                hint = "write .option('payloadFormat', 'uprotocol'), 'protobuf' or 'cdr'"
                raise ConfigError(f"option {name}", problem, hint)
        if self.payload_descriptor is not None and self.payload_message is None:
            hint = "write .option('payloadMessage', 'my.package.Speed')"
            raise ConfigError("option payloadDescriptor", "nothing says which of its messages payloads are", hint)
        if self.source_id is not None and (not self.source_id or ";" in self.source_id):
            raise ConfigError("option sourceId", f"{self.source_id!r} is no name of a cursor", "use letters and digits")

    def check_batch(self) -> None:
        """Look at what a batch cannot do."""
        if self.landing is not None:
            raise ConfigError("option landing", "it is for spark.readStream", "use elea.spark.ingest")
        if self.ingest == SPOOL:
            raise ConfigError("option ingest", "a spool is for spark.readStream", "use mode=query for current values")

    def check_stream(self) -> None:
        """Look at what a stream cannot do."""
        for name, value in (
            ("mode", "query" if self.is_query else None),
            ("endingOffsets", self.ending_offsets),
            ("endingTimestamp", self.ending_timestamp),
            ("pushdown", self.pushdown or None),
        ):
            if value is not None:
                raise ConfigError(f"option {name}", "it is for spark.read, not for a stream", "leave it out")

    @property
    def is_query(self) -> bool:
        """Whether it is answered by a get."""
        return self.mode == "query" or self.as_of is not None or self.selector is not None

    @property
    def cursor(self) -> str:
        """The name of the durable cursor: what one query of Spark has not committed retention does not remove.

        Without `source_id` queries with the same options have this in common; each adds something of its own.
        """
        if self.source_id is not None:
            return self.source_id
        said = json.dumps([self.connect, self.key_exprs, self.predicate, self.kind])
        return f"spark-{hashlib.sha256(said.encode()).hexdigest()[:16]}"


@dataclass(frozen=True, kw_only=True)
class WriteOptions(Access):
    """What `df.write` and `df.writeStream` can be told; docs/spark.md has the table."""

    key: str | None = _option(also=("path",))
    encoding: str | None = _option()
    priority: Priority | None = _option(_PRIORITY)  # noqa: RUF009 - it makes a field
    congestion_control: CongestionControl | None = _option(_CONGESTION)  # noqa: RUF009
    express: bool | None = _option(truth)
    reliability: str = _option(one_of("reliable"), "reliable")
    """Nothing else: a sink that may lose rows is none."""

    idempotent: bool | None = _option(truth)
    """Exactly once, or an error; False never; None wherever a broker keeps the samples."""

    writer_id: str | None = _option()
    writer_batch: int | None = _option(whole(0))
    """Who writes and which batch it is: `df.write` stores a number of a writer once, e.g. in foreachBatch."""
