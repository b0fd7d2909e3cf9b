"""Message values of zenoh2018. Generated from zenoh2018.zn: edit that, then `make generate`."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from elea.wire.markers import Conduit, RSpace
from elea.wire.values import message

__all__ = [
    "Accept",
    "AckNack",
    "BatchedData",
    "BatchedDataPayload",
    "BindingDecl",
    "Close",
    "CommitDecl",
    "Conduit",
    "Declaration",
    "DeclarationId",
    "Declare",
    "ForgetPublisherDecl",
    "ForgetResourceDecl",
    "ForgetSelectionDecl",
    "ForgetSubscriberDecl",
    "Frag",
    "Hello",
    "KeepAlive",
    "Message",
    "MessageId",
    "Migrate",
    "Open",
    "PingPong",
    "Property",
    "PublisherDecl",
    "Pull",
    "RSpace",
    "ResourceDecl",
    "ResultDecl",
    "Scout",
    "SelectionDecl",
    "StreamData",
    "SubscriberDecl",
    "SubscriberDeclParams",
    "SubscriptionModeId",
    "Synch",
    "WriteData",
]


class MessageId(IntEnum):
    ScoutId = 1
    HelloId = 2
    OpenId = 3
    AcceptId = 4
    CloseId = 5
    DeclareId = 6
    StreamDataId = 7
    BatchedDataId = 8
    WriteDataId = 9
    QueryId = 10
    PullId = 11
    PingPongId = 12
    SynchId = 14
    AckNackId = 15
    KeepAliveId = 16
    ConduitCloseId = 17
    FragId = 18
    ConduitId = 19
    MigrateId = 20
    StreamDeltaId = 21
    BatchedDeltaId = 22
    WriteDeltaId = 23
    RSpaceId = 24


class DeclarationId(IntEnum):
    ResourceDeclId = 1
    PublisherDeclId = 2
    SubscriberDeclId = 3
    SelectionDeclId = 4
    BindingDeclId = 5
    CommitDeclId = 6
    ResultDeclId = 7
    ForgetResourceDeclId = 8
    ForgetPublisherDeclId = 9
    ForgetSubscriberDeclId = 10
    ForgetSelectionDeclId = 11


class SubscriptionModeId(IntEnum):
    PushModeId = 1
    PullModeId = 2
    PeriodicPushModeId = 3
    PeriodicPullModeId = 4


@message
class Property(NamedTuple):
    id: int
    value: bytes


@message
class Scout(NamedTuple):
    mask: int
    properties: tuple[Property, ...] | None = None


@message
class Hello(NamedTuple):
    mask: int
    locators: tuple[bytes, ...]
    properties: tuple[Property, ...] | None = None


@message
class Open(NamedTuple):
    version: int
    pid: bytes
    lease: int
    locators: tuple[bytes, ...]
    properties: tuple[Property, ...] | None = None


@message
class Accept(NamedTuple):
    openPid: bytes
    acceptPid: bytes
    lease: int
    properties: tuple[Property, ...] | None = None


@message
class Close(NamedTuple):
    pid: bytes
    reason: int


@message
class KeepAlive(NamedTuple):
    pid: bytes


@message
class Declare(NamedTuple):
    sn: int
    declarations: tuple[Declaration, ...]
    sync: bool = False
    committed: bool = False


@message
class ResourceDecl(NamedTuple):
    rid: int
    resource: bytes
    properties: tuple[Property, ...] | None = None


@message
class PublisherDecl(NamedTuple):
    id: int
    properties: tuple[Property, ...] | None = None


@message
class SubscriberDeclParams(NamedTuple):
    temporalOrigin: int
    period: int
    duration: int


@message
class SubscriberDecl(NamedTuple):
    id: int
    mode: SubscriptionModeId
    params: SubscriberDeclParams | None = None
    properties: tuple[Property, ...] | None = None


@message
class SelectionDecl(NamedTuple):
    sid: int
    query: bytes
    global_: bool = False
    properties: tuple[Property, ...] | None = None


@message
class BindingDecl(NamedTuple):
    oldId: int
    newId: int
    global_: bool = False


@message
class CommitDecl(NamedTuple):
    commitId: int


@message
class ResultDecl(NamedTuple):
    commitId: int
    status: int
    id: int | None = None


@message
class ForgetResourceDecl(NamedTuple):
    rid: int


@message
class ForgetPublisherDecl(NamedTuple):
    id: int


@message
class ForgetSubscriberDecl(NamedTuple):
    id: int


@message
class ForgetSelectionDecl(NamedTuple):
    sid: int


@message
class Frag(NamedTuple):
    snBase: int
    n: int | None = None


@message
class Migrate(NamedTuple):
    ocid: int
    rchLastSN: int
    bechLastSN: int
    id: int | None = None


@message
class Synch(NamedTuple):
    sn: int
    reliable: bool = False
    sync: bool = False
    count: int | None = None  # type: ignore[assignment]


@message
class AckNack(NamedTuple):
    sn: int
    mask: int | None = None


@message
class WriteData(NamedTuple):
    sn: int
    resource: bytes
    payload: bytes
    reliable: bool = False
    sync: bool = False


@message
class StreamData(NamedTuple):
    sn: int
    id: int
    payload: bytes
    reliable: bool = False
    sync: bool = False
    prid: int | None = None


@message
class BatchedDataPayload(NamedTuple):
    prid: int
    payload: bytes


@message
class BatchedData(NamedTuple):
    sn: int
    id: int
    payload: tuple[bytes, ...] | tuple[BatchedDataPayload, ...]
    reliable: bool = False
    sync: bool = False
    hasPrid: bool = False


@message
class Pull(NamedTuple):
    sn: int
    id: int
    final: bool = False
    sync: bool = False
    maxSamples: int | None = None


@message
class PingPong(NamedTuple):
    hash: int
    ispong: bool = False


Message = (
    Scout
    | Hello
    | Open
    | Accept
    | Close
    | Declare
    | StreamData
    | BatchedData
    | WriteData
    | Pull
    | PingPong
    | Synch
    | AckNack
    | KeepAlive
    | Frag
    | Conduit
    | Migrate
    | RSpace
)


Declaration = (
    ResourceDecl
    | PublisherDecl
    | SubscriberDecl
    | SelectionDecl
    | BindingDecl
    | CommitDecl
    | ResultDecl
    | ForgetResourceDecl
    | ForgetPublisherDecl
    | ForgetSubscriberDecl
    | ForgetSelectionDecl
)
