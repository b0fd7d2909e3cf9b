"""Every exception Elea raises, in one tree.

    ZError · EleaError
      ProtocolError(reason)          LocalProtocolError (EncodeError) · RemoteProtocolError
        DecodeError(dialect, at)     Truncated · Oversize (FrameTooLarge) · Malformed (…) · UnknownMandatoryExtension
        RuleBroken(rule, reaction)
      SessionError                   SessionRefused(reason) · SessionClosed(reason) · LeaseExpired
                                     BrokerAway(locators, seconds, limit)
      DeclarationRejected(id, status)
      InvalidKeyExpr · InvalidResource · InvalidSelector · InvalidPredicate(column)        all ValueError
      InvalidSample(column, row) · InvalidSchema(line, column)                             ValueError, too
      OperationTimeout(TimeoutError) · Congested · LimitReached(name, limit)
      StoreError                     StoreFull · StoreCorrupt(segment, position) · StoreReadOnly(reason)
                                     StoreInUse(path, holder) · StoreTrimmed(position, first) · NotStored(key)
                                     StampAhead(key, ahead_ns, limit_ns)
                                     KeptElsewhere(key, log) · ArrowRefused(what, problem) · StoreClosing
                                     StoreReplaced(log, epoch, was) · StoreFenced(writer, number, last)
      TableConflict(table, batch, last)
                                     AlignmentFailed
      AccessError                    AuthenticationFailed · AccessDenied(action, key)
      ConfigError(path, problem, hint) · CaptureError(file, packet, problem) · PipelineError(file, problems)
                                     CaptureDamaged(file, at, problem) · CaptureFull(file, size)
      DemoFailed(what, problem, place)
      NotationError(line, column)

An exception carries its data as attributes; its text says what happened, the value, the limit and what to do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

__all__ = [
    "AccessDenied",
    "AccessError",
    "AlignmentFailed",
    "ArrowRefused",
    "AuthenticationFailed",
    "BadEnum",
    "BadText",
    "BrokerAway",
    "CaptureDamaged",
    "CaptureError",
    "CaptureFull",
    "ConfigError",
    "Congested",
    "ConstraintViolated",
    "DataLost",
    "DeclarationRejected",
    "DecodeError",
    "DemoFailed",
    "EleaError",
    "EncodeError",
    "ExpectationFailed",
    "FrameTooLarge",
    "InvalidKeyExpr",
    "InvalidPredicate",
    "InvalidResource",
    "InvalidSample",
    "InvalidSchema",
    "InvalidSelector",
    "KeptElsewhere",
    "LeaseExpired",
    "LimitReached",
    "LocalProtocolError",
    "Malformed",
    "MarkerOrder",
    "MarkerTarget",
    "NaturalOverflow",
    "NoLog",
    "NotExpressible",
    "NotOwner",
    "NotStored",
    "NotationError",
    "OperationTimeout",
    "Oversize",
    "PaddedNatural",
    "PipelineBusy",
    "PipelineChanged",
    "PipelineError",
    "PipelineFailed",
    "ProtocolError",
    "RemoteProtocolError",
    "ReservedMessage",
    "RuleBroken",
    "SessionClosed",
    "SessionError",
    "SessionRefused",
    "StampAhead",
    "StoreClosing",
    "StoreCorrupt",
    "StoreError",
    "StoreFenced",
    "StoreFull",
    "StoreInUse",
    "StoreReadOnly",
    "StoreReplaced",
    "StoreTrimmed",
    "TableConflict",
    "TrailingBytes",
    "Truncated",
    "UnknownDeclaration",
    "UnknownMandatoryExtension",
    "UnknownMessage",
    "ZError",
]


class ZError(Exception):
    """The root under the name programs written for eclipse-zenoh know."""


class EleaError(ZError):
    """The root: `except EleaError` catches everything Elea raises on purpose."""


# -- protocol -----------------------------------------------------------------------------------------------------


class ProtocolError(EleaError):
    """Somebody broke the protocol; `close_reason` is what a session says when it ends because of it."""

    close_reason: ClassVar[int] = 255


class LocalProtocolError(ProtocolError):
    """This program asked for something the protocol forbids."""


class RemoteProtocolError(ProtocolError):
    """The other node sent something the protocol forbids."""


class EncodeError(LocalProtocolError):
    """A message value cannot be written: `what` names the field, `problem` says why."""

    def __init__(self, what: str, problem: str) -> None:
        super().__init__(f"cannot encode {what}: {problem}")
        self.what = what
        self.problem = problem


class DecodeError(RemoteProtocolError):
    """Bytes that are not a message. `code` is the class name used by tools and vectors, `at` the octet offset."""

    code: ClassVar[str] = "MALFORMED"

    def __init__(self, dialect: str, at: int, problem: str) -> None:
        super().__init__(f"{dialect}: {problem} at octet {at}")
        self.dialect = dialect
        self.at = at
        self.problem = problem

    def moved(self, by: int) -> DecodeError:
        """The same error seen from an enclosing buffer in which ours starts at `by`."""
        self.at += by
        self.args = (f"{self.dialect}: {self.problem} at octet {self.at}",)
        return self


class Truncated(DecodeError):
    """The octets end before the message does."""

    code = "TRUNCATED"

    def __init__(self, dialect: str, at: int, need: int = 1, have: int = 0) -> None:
        super().__init__(dialect, at, f"{need} more octets needed, {have} left")
        self.need = need
        self.have = have


class Oversize(DecodeError):
    """A size that is legal in form but above a limit of this node."""

    code = "OVERSIZE"

    def __init__(self, dialect: str, at: int, what: str, size: int, limit: int) -> None:
        super().__init__(dialect, at, f"{what} of {size} is above the limit of {limit}")
        self.what = what
        self.size = size
        self.limit = limit


class FrameTooLarge(Oversize):
    """A frame larger than the link's MTU."""

    code = "FRAME_TOO_LARGE"


class Malformed(DecodeError):
    """Bytes that no message has."""


class NaturalOverflow(Malformed):
    """A variable-length number above the bound of its field."""

    code = "VLE_OVERFLOW"


class PaddedNatural(Malformed):
    """A variable-length number with needless octets, where the dialect refuses them."""

    code = "VLE_NONCANONICAL"


class UnknownMessage(Malformed):
    """A message id nobody has assigned."""

    code = "UNKNOWN_MESSAGE"


class ReservedMessage(Malformed):
    """A message id that has a name but no body, so its length is unknown."""

    code = "RESERVED_MESSAGE"


class UnknownDeclaration(Malformed):
    """A declaration id nobody has assigned."""

    code = "UNKNOWN_DECLARATION"


class BadEnum(Malformed):
    """A number that is no symbol of its enumeration."""

    code = "BAD_ENUM"


class ConstraintViolated(Malformed):
    """A value or length outside the range its definition gives."""

    code = "CONSTRAINT"


class TrailingBytes(Malformed):
    """One message was expected and octets are left over."""

    code = "TRAILING"


class MarkerOrder(Malformed):
    """Markers of a message repeated or in the wrong order."""

    code = "MARKER_ORDER"


class MarkerTarget(Malformed):
    """A marker in front of a message it cannot decorate."""

    code = "MARKER_TARGET"


class BadText(Malformed):
    """Octets that should be text and are not UTF-8."""

    code = "BAD_TEXT"


class UnknownMandatoryExtension(DecodeError):
    """An extension we do not know and must not ignore."""

    code = "UNKNOWN_EXTENSION"

    def __init__(self, dialect: str, at: int, header: int) -> None:
        super().__init__(dialect, at, f"unknown mandatory extension {header:#04x}")
        self.header = header


class RuleBroken(RemoteProtocolError):
    """A well-formed message that breaks a rule of its session.

    `rule` is the name of the rule, `reaction` what the protocol prescribes: `result-N`, `close-N` or `ignore`.
    """

    def __init__(self, rule: str, reaction: str, problem: str) -> None:
        super().__init__(f"{rule}: {problem}")
        self.rule = rule
        self.reaction = reaction
        self.problem = problem


# -- sessions -----------------------------------------------------------------------------------------------------


class SessionError(EleaError):
    """A session could not be opened or did not last."""


class SessionRefused(SessionError):
    """The other node refused the session; `reason` is its close reason."""

    def __init__(self, reason: int, text: str = "") -> None:
        super().__init__(text or f"session refused with reason {reason}")
        self.reason = reason


class SessionClosed(SessionError):
    """The session has ended; `reason` is the close reason."""

    def __init__(self, reason: int = 0, text: str = "") -> None:
        super().__init__(text or f"session closed with reason {reason}")
        self.reason = reason


class LeaseExpired(SessionClosed):
    """The other node was silent for its whole lease."""


class BrokerAway(SessionError):
    """Brokers at `locators` have not been there for `seconds`, so nobody knows what they would have answered."""

    def __init__(self, locators: Sequence[str], seconds: float, limit: str) -> None:
        who, runs = ("brokers", "they run") if len(locators) > 1 else ("broker", "it runs")
        super().__init__(
            f"away for {seconds:.0f} s: {who} {', '.join(locators)} (the limit is {limit}); nothing is lost by that: "
            f"see whether {runs}, then start the query again, a stream goes on from its checkpoint; or take what is "
            "gone for good out of the option connect"
        )
        self.locators = tuple(locators)
        self.seconds = seconds
        self.limit = limit


class DeclarationRejected(EleaError):
    """The other node rejected a declaration."""

    def __init__(self, id: int, status: int) -> None:
        super().__init__(f"declaration of {id} rejected with status {status}")
        self.id = id
        self.status = status


# -- values -------------------------------------------------------------------------------------------------------


class NotExpressible(EleaError):
    """What a program wants has no words in the dialect that the session speaks.

    `dialect` is its name, `what` what it has no words for.
    """

    def __init__(self, dialect: str, what: str) -> None:
        super().__init__(f"{dialect} cannot express {what}; connect with another dialect for that")
        self.dialect = dialect
        self.what = what


class InvalidKeyExpr(EleaError, ValueError):
    """Text that is not a key expression."""

    def __init__(self, text: str, problem: str, hint: str = "") -> None:
        super().__init__(f"invalid key expression {text!r}: {problem}" + (f"; {hint}" if hint else ""))
        self.text = text
        self.problem = problem
        self.hint = hint


class InvalidResource(EleaError, ValueError):
    """Text that is not a resource of the early dialects."""

    def __init__(self, text: str, problem: str) -> None:
        super().__init__(f"invalid resource {text!r}: {problem}")
        self.text = text
        self.problem = problem


class InvalidSelector(EleaError, ValueError):
    """Text that is not a selector."""

    def __init__(self, text: str, problem: str) -> None:
        super().__init__(f"invalid selector {text!r}: {problem}")
        self.text = text
        self.problem = problem


class InvalidPredicate(EleaError, ValueError):
    """Text that is not a predicate; `column` is where, from 1."""

    def __init__(self, text: str, column: int, problem: str) -> None:
        super().__init__(f"invalid predicate {text!r}: {problem} at column {column}")
        self.text = text
        self.column = column
        self.problem = problem


class InvalidSample(EleaError, ValueError):
    """A row that cannot be a sample: `column` has a `value` that does not do in `row` of its batch, from 0."""

    def __init__(self, column: str, row: int, value: str | None, problem: str) -> None:
        super().__init__(f"row {row} of a batch has {column} {'null' if value is None else repr(value)}: {problem}")
        self.column = column
        self.row = row
        self.value = value
        self.problem = problem


class InvalidSchema(EleaError, ValueError):
    """Text that declares no types; `line` and `column` are where, from 1, and 0 if it is about all of it."""

    def __init__(self, language: str, problem: str, line: int = 0, column: int = 0) -> None:
        place = f" at line {line}, column {column}" if line else ""
        super().__init__(f"invalid {language} schema: {problem}{place}")
        self.language = language
        self.problem = problem
        self.line = line
        self.column = column


# -- operations ---------------------------------------------------------------------------------------------------


class OperationTimeout(EleaError, TimeoutError):
    """The operation did not finish in the time given."""


class Congested(EleaError):
    """A queue was full and its rule says to refuse."""


class LimitReached(EleaError):
    """A named limit of this node stops the operation; see `elea.model.limits`."""

    def __init__(self, name: str, limit: int) -> None:
        super().__init__(f"limit {name} of {limit} reached")
        self.name = name
        self.limit = limit


class StoreError(EleaError):
    """The durability service could not do its work."""


class StoreFull(StoreError):
    """No room on disk; nothing was acknowledged. Appending works again as soon as there is room."""


class StoreCorrupt(StoreError):
    """A segment is damaged: samples `position` to `last` cannot be read, `offset` is where in the file."""

    def __init__(self, segment: str, position: int, *, last: int | None = None, offset: int = 0, why: str = "") -> None:
        self.segment = segment
        self.position = position
        self.last = position if last is None else last
        self.offset = offset
        self.why = why
        lost = f"position {position}" if self.last == position else f"positions {position} to {self.last}"
        reason = f": {why}" if why else ""
        super().__init__(f"segment {segment} is damaged at octet {offset}, {lost}{reason}; run `elea store verify`")


class StoreReadOnly(StoreError):
    """The store has stopped taking samples; `reason` says why."""

    def __init__(self, reason: str = "opened for reading") -> None:
        super().__init__(f"the store takes no samples: {reason}")
        self.reason = reason


class StoreInUse(StoreError):
    """Another process has the store open for writing."""

    def __init__(self, path: str, holder: str) -> None:
        super().__init__(f"store {path} is in use by {holder}; stop it, or choose another directory")
        self.path = path
        self.holder = holder


class StoreClosing(StoreError):
    """The broker is ending and has not answered, or not all; what it would have said it says when it is back."""

    def __init__(self) -> None:
        super().__init__("the broker is ending: this is no answer, ask again when it is back")


class StoreTrimmed(StoreError):
    """A read starts before the oldest sample that retention has left."""

    def __init__(self, position: int, first: int) -> None:
        super().__init__(f"position {position} is no longer stored, the log starts at {first}")
        self.position = position
        self.first = first


class StampAhead(StoreError):
    """A sample is stamped further ahead of the time of this machine than the drift."""

    def __init__(self, key: str, ahead_ns: int, limit_ns: int) -> None:
        super().__init__(
            f"the sample on {key!r} is stamped {ahead_ns / 1e9:.1f} s ahead of this machine, "
            f"the limit is {limit_ns / 1e9:.1f} s"
        )
        self.key = key
        self.ahead_ns = ahead_ns
        self.limit_ns = limit_ns
        self.stored = 0
        """Samples that came before it and were stored."""


class StoreReplaced(StoreError):
    """Another log is in the place of the one that was read: its positions mean other samples."""

    def __init__(self, log: str, epoch: str, was: str) -> None:
        super().__init__(
            f"log {log} of epoch {was} is gone, one of epoch {epoch} is in its place; read it from its start"
        )
        self.log = log
        self.epoch = epoch
        self.was = was


class AlignmentFailed(StoreError):
    """The log of another broker could not be compared with ours; what was brought before stays."""


class ArrowRefused(StoreError):
    """Arrow from outside that is not what was asked for: `what` came, `problem` is what is wrong with it.

    The text never has anything in it that was read from the columns, nor what Arrow says of them.
    """

    def __init__(self, what: str, problem: str) -> None:
        super().__init__(f"{what} is refused: {problem}")
        self.what = what
        self.problem = problem


class StoreFenced(StoreError):
    """A batch is older than what its writer has committed: whoever sends it should have stopped."""

    def __init__(self, writer: str, number: int, last: int) -> None:
        super().__init__(
            f"batch {number} of writer {writer} is refused: the same writer has committed batch {last} since; "
            "stop the older of the two programs that write under this name"
        )
        self.writer = writer
        self.number = number
        self.last = last


class KeptElsewhere(StoreError):
    """A sample of a request for one log belongs to another: `key` must be put on its own, which finds the right one."""

    def __init__(self, key: str, log: str) -> None:
        super().__init__(f"{key} is not kept by log {log}; put it on its own")
        self.key = key
        self.log = log


class NotStored(StoreError):
    """No broker that keeps `key` has answered."""

    def __init__(self, key: str) -> None:
        super().__init__(f"no broker keeps {key}; start one with --persist, or put with a durability that one offers")
        self.key = key


class NoLog(StoreError):
    """No broker that was asked keeps any of `keys`."""

    def __init__(self, keys: str, where: str, logs: str = "") -> None:
        super().__init__(
            f"no log at {where} keeps keys of {keys}; {f'there are: {logs}' if logs else 'there is none'}; start the "
            f"broker with `--store DIR --persist '{keys}'`, or read a router without a store with the option "
            "ingest=spool (a stream) or mode=query (current values)"
        )
        self.keys = keys
        self.where = where
        self.logs = logs


class DataLost(StoreError):
    """Samples that were to be read cannot be had any more: `reason` is trimmed, replaced, gone or damaged."""

    def __init__(self, log: str, reason: str, what: str, *, first: int = 0, last: int = -1) -> None:
        super().__init__(
            f"log {log}: {what}; set failOnDataLoss=false to go on without them (they are counted in the offsets of "
            "the query's progress), or begin again with another checkpoint"
        )
        self.log = log
        self.reason = reason
        self.first = first
        self.last = last


class TableConflict(EleaError):
    """Two drivers write the same table under the same name: `batch` was not committed, `last` is what the other has."""

    def __init__(self, table: str, batch: int, last: int | None) -> None:
        super().__init__(
            f"batch {batch} was not committed to table {table}: another driver of the same query has committed "
            f"{'something' if last is None else f'batch {last}'} meanwhile; stop one of the two"
        )
        self.table = table
        self.batch = batch
        self.last = last


class AccessError(EleaError):
    """Not allowed."""


class AuthenticationFailed(AccessError):
    """The credentials were not accepted."""


class AccessDenied(AccessError):
    """An access rule forbids `action` on `key`."""

    def __init__(self, action: str, key: str) -> None:
        super().__init__(f"access rules forbid {action} on {key}")
        self.action = action
        self.key = key


class NotOwner(AccessError):
    """A cursor or a writer of batches is another user's: `kind` says which, `name` its name."""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"the {kind} {name[:200]!r} belongs to another user; choose another name")
        self.kind = kind
        self.name = name


class ConfigError(EleaError):
    """A configuration entry is wrong: `path` names it, `hint` says what to do."""

    def __init__(self, path: str, problem: str, hint: str = "") -> None:
        super().__init__(f"{path}: {problem}" + (f"; {hint}" if hint else ""))
        self.path = path
        self.problem = problem
        self.hint = hint


class CaptureError(EleaError):
    """A capture that cannot be read, or holds something that cannot, where this was not allowed to pass."""

    def __init__(self, file: str, packet: int, problem: str) -> None:
        super().__init__(f"{file}, packet {packet}: {problem}; mode=PERMISSIVE gives such things as rows with `error`")
        self.file = file
        self.packet = packet
        self.problem = problem

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.file, self.packet, self.problem)


class CaptureDamaged(EleaError):
    """A file that is no capture of samples, or not a whole one: `problem` says what is wrong, from byte `at` on."""

    def __init__(self, file: str, at: int, problem: str) -> None:
        super().__init__(f"{file} is no capture that can be read, at byte {at}: {problem}")
        self.file = file
        self.at = at
        self.problem = problem


class CaptureFull(EleaError):
    """There is no room for more samples where a capture is written; its first `size` bytes can be read."""

    def __init__(self, file: str, size: int) -> None:
        super().__init__(f"no room on disk for more of {file}; what was written, {size} bytes, can be read")
        self.file = file
        self.size = size


class PipelineError(EleaError):
    """A pipeline file is wrong: `problems` are all of its mistakes, each prints its line, what it is and the fix."""

    def __init__(self, file: str, problems: Sequence[object]) -> None:
        super().__init__("\n".join(f"{file}:{problem}" for problem in problems))
        self.file = file
        self.problems = tuple(problems)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.file, self.problems)


class DemoFailed(EleaError):
    """A part of `elea demo` did not do what it should; `place` has what it said."""

    def __init__(self, what: str, problem: str, place: object) -> None:
        super().__init__(f"{what}: {problem}; what the processes said is in {place}")
        self.what = what
        self.problem = problem
        self.place = place


class ExpectationFailed(EleaError):
    """Rows of a table break rules that end the run: `broken` says how many broke which. Nothing of the batch counts."""

    def __init__(self, table: str, broken: dict[str, int], example: str) -> None:
        told = ", ".join(f"{count} broke {name!r}" for name, count in sorted(broken.items()))
        super().__init__(
            f"rows of table {table} break rules that end the run: {told}; one is {example}; nothing of the batch is in "
            'the table: mend the step or the rule, or say otherwise = "quarantine", and run it again'
        )
        self.table = table
        self.broken = broken
        self.example = example

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.table, self.broken, self.example)


class PipelineBusy(EleaError):
    """Somebody runs the pipeline already: `place` has its checkpoints, `holder` says who."""

    def __init__(self, name: str, place: str, holder: str) -> None:
        super().__init__(
            f"pipeline {name} runs already ({holder}), with checkpoints in {place}; stop that run, or give this one "
            "another name and other checkpoints"
        )
        self.name = name
        self.place = place
        self.holder = holder


class PipelineChanged(EleaError):
    """The definition of tables is not the one that their rows and states were computed with: `changed` says in what."""

    def __init__(self, name: str, changed: Mapping[str, Sequence[str]], place: str) -> None:
        told = "; ".join(f"{sink}: {', '.join(parts)}" for sink, parts in changed.items())
        super().__init__(
            f"pipeline {name} has changed, and what it has computed so far is of the old definition: {told}; make the "
            "tables anew with --backfill (backfill=True), bring the old definition back, or go on with rows of both "
            "and the old state with --accept-change (accept_change=True); a publish begins again if its directory in "
            f"{place} is deleted"
        )
        self.name = name
        self.changed = {sink: tuple(parts) for sink, parts in changed.items()}
        self.place = place


class PipelineFailed(EleaError):
    """A query of a pipeline has ended with an error: `sink` is its table or publish, `report` what was done so far."""

    def __init__(self, sink: str, problem: str, report: object = None) -> None:
        super().__init__(f"{sink}: {problem}")
        self.sink = sink
        self.problem = problem
        self.report = report


class NotationError(EleaError):
    """A definition file is wrong at a line and column, both from 1."""

    def __init__(self, source: str, line: int, column: int, problem: str) -> None:
        super().__init__(f"{source}:{line}:{column}: {problem}")
        self.source = source
        self.line = line
        self.column = column
        self.problem = problem
