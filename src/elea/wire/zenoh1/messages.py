"""Message values of zenoh1. Generated from zenoh1.zn: edit that, then `make generate`."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from elea.wire.primitives import Unknown
from elea.wire.values import message

__all__ = [
    "Auth",
    "BodyForm",
    "BodyId",
    "Close",
    "Consolidation",
    "Declaration",
    "DeclarationId",
    "Declare",
    "DeclareFinal",
    "DeclareKeyExpr",
    "DeclareQueryable",
    "DeclareSubscriber",
    "DeclareToken",
    "Del",
    "Encoding",
    "EntityId",
    "Err",
    "Fragment",
    "Frame",
    "Hello",
    "Init",
    "Interest",
    "InterestMode",
    "InterestOptions",
    "Join",
    "KeepAlive",
    "LinkState",
    "LinkStates",
    "LooseWireExpr",
    "NetworkId",
    "NetworkMessage",
    "NextSn",
    "Oam",
    "Open",
    "PriorityNextSn",
    "Push",
    "PushBody",
    "Put",
    "Query",
    "Reply",
    "Request",
    "RequestBody",
    "Response",
    "ResponseBody",
    "ResponseFinal",
    "Role",
    "Scout",
    "ScoutingId",
    "ScoutingMessage",
    "Sizes",
    "SourceInfo",
    "Target",
    "Timestamp",
    "TransportId",
    "TransportMessage",
    "TransportOam",
    "TsEntry",
    "TsStack",
    "UndeclareKeyExpr",
    "UndeclareQueryable",
    "UndeclareSubscriber",
    "UndeclareToken",
    "UserProof",
    "Value",
    "WireExpr",
]


class Role(IntEnum):
    router = 0
    peer = 1
    client = 2


class ScoutingId(IntEnum):
    ScoutId = 1
    HelloId = 2


class TransportId(IntEnum):
    TransportOamId = 0
    InitId = 1
    OpenId = 2
    CloseId = 3
    KeepAliveId = 4
    FrameId = 5
    FragmentId = 6
    JoinId = 7


class BodyForm(IntEnum):
    UnitForm = 0
    Z64Form = 1
    ZBufForm = 2


class NetworkId(IntEnum):
    InterestId = 25
    ResponseFinalId = 26
    ResponseId = 27
    RequestId = 28
    PushId = 29
    DeclareId = 30
    OamId = 31


class Target(IntEnum):
    best_matching = 0
    all = 1
    all_complete = 2


class DeclarationId(IntEnum):
    DeclareKeyExprId = 0
    UndeclareKeyExprId = 1
    DeclareSubscriberId = 2
    UndeclareSubscriberId = 3
    DeclareQueryableId = 4
    UndeclareQueryableId = 5
    DeclareTokenId = 6
    UndeclareTokenId = 7
    DeclareFinalId = 26


class InterestMode(IntEnum):
    final = 0
    current = 1
    future = 2
    current_future = 3


class BodyId(IntEnum):
    PutId = 1
    DelId = 2
    QueryId = 3
    ReplyId = 4
    ErrId = 5


class Consolidation(IntEnum):
    auto = 0
    none = 1
    monotonic = 2
    latest = 3


@message
class Timestamp(NamedTuple):
    ntp64: int
    id: bytes


@message
class Encoding(NamedTuple):
    id: int
    schema: bytes | None = None


@message
class WireExpr(NamedTuple):
    scope: int
    sender: bool = False
    suffix: str | None = None


@message
class Scout(NamedTuple):
    version: int
    what: int
    zid: bytes | None = None
    unknown: tuple[Unknown, ...] = ()


@message
class Hello(NamedTuple):
    version: int
    whatami: Role
    zid: bytes
    locators: tuple[str, ...] | None = None
    unknown: tuple[Unknown, ...] = ()


@message
class Sizes(NamedTuple):
    resolution: int
    batch_size: int


@message
class Auth(NamedTuple):
    pubkey_done: bool = False
    pubkey: bytes | None = None
    usrpwd: bool = False
    usrpwd_nonce: int | None = None
    usrpwd_proof: UserProof | None = None
    unknown: tuple[Unknown, ...] = ()


@message
class UserProof(NamedTuple):
    user: bytes
    hmac: bytes
    left: bytes


@message
class Init(NamedTuple):
    version: int
    whatami: Role
    zid: bytes
    ack: bool = False
    sizes: Sizes | None = None
    cookie: bytes | None = None
    qos: bool = False
    qos_link: int | None = None
    shm: bytes | None = None
    auth: Auth | None = None
    multilink: bytes | None = None
    lowlatency: bool = False
    compression: bool = False
    patch: int | None = None
    region_name: bytes | None = None
    unknown: tuple[Unknown, ...] = ()


@message
class Open(NamedTuple):
    lease: int
    initial_sn: int
    ack: bool = False
    seconds: bool = False
    cookie: bytes | None = None
    qos: bool = False
    shm: bytes | None = None
    auth: Auth | None = None
    multilink_syn: bytes | None = None
    multilink_ack: bool = False
    lowlatency: bool = False
    compression: bool = False
    remote_bound: int | None = None
    unknown: tuple[Unknown, ...] = ()


@message
class Close(NamedTuple):
    reason: int
    session: bool = False
    unknown: tuple[Unknown, ...] = ()


@message
class KeepAlive(NamedTuple):
    unknown: tuple[Unknown, ...] = ()


@message
class Frame(NamedTuple):
    sn: int
    messages: tuple[NetworkMessage, ...]
    reliable: bool = False
    qos: int | None = None
    unknown: tuple[Unknown, ...] = ()


@message
class Fragment(NamedTuple):
    sn: int
    chunk: bytes
    reliable: bool = False
    more: bool = False
    qos: int | None = None
    first: bool = False
    drop: bool = False
    unknown: tuple[Unknown, ...] = ()


@message
class Join(NamedTuple):
    version: int
    whatami: Role
    zid: bytes
    lease: int
    next_sn: NextSn
    seconds: bool = False
    sizes: Sizes | None = None
    qos: PriorityNextSn | None = None
    shm: bytes | None = None
    patch: int | None = None
    unknown: tuple[Unknown, ...] = ()


@message
class NextSn(NamedTuple):
    reliable: int
    best_effort: int


@message
class PriorityNextSn(NamedTuple):
    priorities: tuple[NextSn, ...]


@message
class TransportOam(NamedTuple):
    enc: BodyForm
    id: int
    qos: int | None = None
    unknown: tuple[Unknown, ...] = ()
    body: int | bytes | None = None


@message
class Push(NamedTuple):
    wire_expr: WireExpr
    body: PushBody
    qos: int | None = None
    timestamp: Timestamp | None = None
    node_id: int | None = None
    ts_stack: TsStack | None = None
    unknown: tuple[Unknown, ...] = ()


@message
class Request(NamedTuple):
    id: int
    wire_expr: WireExpr
    body: RequestBody
    qos: int | None = None
    timestamp: Timestamp | None = None
    target: Target | None = None
    budget: int | None = None
    timeout: int | None = None
    node_id: int | None = None
    ts_stack: TsStack | None = None
    unknown: tuple[Unknown, ...] = ()


@message
class Response(NamedTuple):
    id: int
    wire_expr: WireExpr
    body: ResponseBody
    qos: int | None = None
    timestamp: Timestamp | None = None
    responder: EntityId | None = None
    ts_stack: TsStack | None = None
    unknown: tuple[Unknown, ...] = ()


@message
class ResponseFinal(NamedTuple):
    id: int
    qos: int | None = None
    timestamp: Timestamp | None = None
    unknown: tuple[Unknown, ...] = ()


@message
class Oam(NamedTuple):
    enc: BodyForm
    id: int
    qos: int | None = None
    timestamp: Timestamp | None = None
    unknown: tuple[Unknown, ...] = ()
    body: int | bytes | None = None


@message
class EntityId(NamedTuple):
    zid: bytes
    eid: int


@message
class TsStack(NamedTuple):
    conf: int
    stack: tuple[TsEntry, ...]


@message
class TsEntry(NamedTuple):
    flags: int
    ts: bytes


@message
class LinkStates(NamedTuple):
    entries: tuple[LinkState, ...]


@message
class LinkState(NamedTuple):
    spare: int
    psid: int
    sn: int
    links: tuple[int, ...]
    gateway: bool = False
    zid: bytes | None = None
    whatami: int | None = None
    locators: tuple[str, ...] | None = None
    weights: tuple[int, ...] | None = None


@message
class Declare(NamedTuple):
    body: Declaration
    interest_id: int | None = None
    qos: int | None = None
    timestamp: Timestamp | None = None
    node_id: int | None = None
    unknown: tuple[Unknown, ...] = ()


@message
class DeclareKeyExpr(NamedTuple):
    id: int
    scope: int
    suffix: str | None = None
    unknown: tuple[Unknown, ...] = ()


@message
class UndeclareKeyExpr(NamedTuple):
    id: int
    unknown: tuple[Unknown, ...] = ()


@message
class DeclareSubscriber(NamedTuple):
    id: int
    wire_expr: WireExpr
    unknown: tuple[Unknown, ...] = ()


@message
class DeclareToken(NamedTuple):
    id: int
    wire_expr: WireExpr
    unknown: tuple[Unknown, ...] = ()


@message
class DeclareQueryable(NamedTuple):
    id: int
    wire_expr: WireExpr
    info: int | None = None
    unknown: tuple[Unknown, ...] = ()


@message
class UndeclareSubscriber(NamedTuple):
    id: int
    wire_expr: LooseWireExpr | None = None
    unknown: tuple[Unknown, ...] = ()


@message
class UndeclareQueryable(NamedTuple):
    id: int
    wire_expr: LooseWireExpr | None = None
    unknown: tuple[Unknown, ...] = ()


@message
class UndeclareToken(NamedTuple):
    id: int
    wire_expr: LooseWireExpr | None = None
    unknown: tuple[Unknown, ...] = ()


@message
class LooseWireExpr(NamedTuple):
    scope: int
    sender: bool = False
    suffix: str | None = None


@message
class DeclareFinal(NamedTuple):
    unknown: tuple[Unknown, ...] = ()


@message
class Interest(NamedTuple):
    mode: InterestMode
    id: int
    options: InterestOptions | None = None
    qos: int | None = None
    timestamp: Timestamp | None = None
    node_id: int | None = None
    unknown: tuple[Unknown, ...] = ()


@message
class InterestOptions(NamedTuple):
    kinds: int
    aggregate: bool = False
    wire_expr: WireExpr | None = None


@message
class Put(NamedTuple):
    payload: bytes
    timestamp: Timestamp | None = None
    encoding: Encoding | None = None
    source_info: SourceInfo | None = None
    shm: bool = False
    attachment: bytes | None = None
    unknown: tuple[Unknown, ...] = ()


@message
class Del(NamedTuple):
    timestamp: Timestamp | None = None
    source_info: SourceInfo | None = None
    attachment: bytes | None = None
    unknown: tuple[Unknown, ...] = ()


@message
class Query(NamedTuple):
    consolidation: Consolidation | None = None
    parameters: str | None = None
    source_info: SourceInfo | None = None
    value: Value | None = None
    attachment: bytes | None = None
    unknown: tuple[Unknown, ...] = ()


@message
class Reply(NamedTuple):
    body: PushBody
    consolidation: Consolidation | None = None
    unknown: tuple[Unknown, ...] = ()


@message
class Err(NamedTuple):
    payload: bytes
    encoding: Encoding | None = None
    source_info: SourceInfo | None = None
    shm: bool = False
    unknown: tuple[Unknown, ...] = ()


@message
class SourceInfo(NamedTuple):
    zid: bytes
    eid: int
    sn: int


@message
class Value(NamedTuple):
    encoding: Encoding
    payload: bytes


ScoutingMessage = Scout | Hello


TransportMessage = (
    TransportOam
    | Init
    | Open
    | Close
    | KeepAlive
    | Frame
    | Fragment
    | Join
)


NetworkMessage = (
    Interest
    | ResponseFinal
    | Response
    | Request
    | Push
    | Declare
    | Oam
)


Declaration = (
    DeclareKeyExpr
    | UndeclareKeyExpr
    | DeclareSubscriber
    | UndeclareSubscriber
    | DeclareQueryable
    | UndeclareQueryable
    | DeclareToken
    | UndeclareToken
    | DeclareFinal
)


PushBody = Put | Del


RequestBody = Query


ResponseBody = Reply | Err
