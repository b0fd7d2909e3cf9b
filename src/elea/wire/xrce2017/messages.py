"""Message values of xrce2017. Generated from xrce2017.zn: edit that, then `make generate`."""

from __future__ import annotations

from enum import IntEnum

from elea.wire.markers import Conduit
from elea.wire.values import MessageValue

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
    "Open",
    "Ping",
    "Pong",
    "Property",
    "PublisherDecl",
    "Pull",
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
    PingId = 12
    PongId = 13
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


class Property(MessageValue):
    id: int
    value: bytes


class Scout(MessageValue):
    mask: int
    properties: tuple[Property, ...] | None = None


class Hello(MessageValue):
    mask: int
    locators: tuple[bytes, ...]
    properties: tuple[Property, ...] | None = None


class Open(MessageValue):
    version: int
    pid: bytes
    lease: int
    locators: tuple[bytes, ...]
    properties: tuple[Property, ...] | None = None


class Accept(MessageValue):
    openPid: bytes
    acceptPid: bytes
    lease: int
    properties: tuple[Property, ...] | None = None


class Close(MessageValue):
    pid: bytes
    reason: int


class KeepAlive(MessageValue):
    pid: bytes


class Declare(MessageValue):
    sn: int
    declarations: tuple[Declaration, ...]
    sync: bool = False
    committed: bool = False


class ResourceDecl(MessageValue):
    rid: int
    resource: bytes
    properties: tuple[Property, ...] | None = None


class PublisherDecl(MessageValue):
    id: int
    properties: tuple[Property, ...] | None = None


class SubscriberDeclParams(MessageValue):
    temporalOrigin: int
    period: int
    duration: int


class SubscriberDecl(MessageValue):
    id: int
    mode: SubscriptionModeId
    params: SubscriberDeclParams | None = None
    properties: tuple[Property, ...] | None = None


class SelectionDecl(MessageValue):
    sid: int
    query: bytes
    global_: bool = False
    properties: tuple[Property, ...] | None = None


class BindingDecl(MessageValue):
    oldId: int
    newId: int
    global_: bool = False


class CommitDecl(MessageValue):
    commitId: int


class ResultDecl(MessageValue):
    commitId: int
    status: int
    id: int | None = None


class ForgetResourceDecl(MessageValue):
    rid: int


class ForgetPublisherDecl(MessageValue):
    id: int


class ForgetSubscriberDecl(MessageValue):
    id: int


class ForgetSelectionDecl(MessageValue):
    sid: int


class Frag(MessageValue):
    snBase: int
    n: int | None = None


class Synch(MessageValue):
    sn: int
    reliable: bool = False
    sync: bool = False
    count: int | None = None  # type: ignore[assignment]


class AckNack(MessageValue):
    sn: int
    mask: int | None = None


class WriteData(MessageValue):
    sn: int
    resource: bytes
    payload: bytes
    reliable: bool = False
    sync: bool = False


class StreamData(MessageValue):
    sn: int
    id: int
    payload: bytes
    reliable: bool = False
    sync: bool = False
    prid: int | None = None


class BatchedDataPayload(MessageValue):
    prid: int
    payload: bytes


class BatchedData(MessageValue):
    sn: int
    id: int
    payload: tuple[bytes, ...] | tuple[BatchedDataPayload, ...]
    reliable: bool = False
    sync: bool = False
    hasPrid: bool = False


class Pull(MessageValue):
    sn: int
    id: int
    pullId: int
    sync: bool = False
    maxSamples: int | None = None


class Ping(MessageValue):
    hash: int


class Pong(MessageValue):
    hash: int


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
    | Ping
    | Pong
    | Synch
    | AckNack
    | KeepAlive
    | Frag
    | Conduit
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
