"""Message values of zenoh1. Generated from zenoh1.zn: edit that, then `make generate`."""

from __future__ import annotations

from enum import IntEnum

from elea.wire.primitives import Unknown
from elea.wire.values import MessageValue

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


class Timestamp(MessageValue):
    ntp64: int
    id: bytes


class Encoding(MessageValue):
    id: int
    schema: bytes | None = None


class WireExpr(MessageValue):
    scope: int
    sender: bool = False
    suffix: str | None = None


class Scout(MessageValue):
    version: int
    what: int
    zid: bytes | None = None
    unknown: tuple[Unknown, ...] = ()


class Hello(MessageValue):
    version: int
    whatami: Role
    zid: bytes
    locators: tuple[str, ...] | None = None
    unknown: tuple[Unknown, ...] = ()


class Sizes(MessageValue):
    resolution: int
    batch_size: int


class Auth(MessageValue):
    pubkey_done: bool = False
    pubkey: bytes | None = None
    usrpwd: bool = False
    usrpwd_nonce: int | None = None
    usrpwd_proof: UserProof | None = None
    unknown: tuple[Unknown, ...] = ()


class UserProof(MessageValue):
    user: bytes
    hmac: bytes
    left: bytes


class Init(MessageValue):
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


class Open(MessageValue):
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


class Close(MessageValue):
    reason: int
    session: bool = False
    unknown: tuple[Unknown, ...] = ()


class KeepAlive(MessageValue):
    unknown: tuple[Unknown, ...] = ()


class Frame(MessageValue):
    sn: int
    messages: tuple[NetworkMessage, ...]
    reliable: bool = False
    qos: int | None = None
    unknown: tuple[Unknown, ...] = ()


class Fragment(MessageValue):
    sn: int
    chunk: bytes
    reliable: bool = False
    more: bool = False
    qos: int | None = None
    first: bool = False
    drop: bool = False
    unknown: tuple[Unknown, ...] = ()


class Join(MessageValue):
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


class NextSn(MessageValue):
    reliable: int
    best_effort: int


class PriorityNextSn(MessageValue):
    priorities: tuple[NextSn, ...]


class TransportOam(MessageValue):
    enc: BodyForm
    id: int
    qos: int | None = None
    unknown: tuple[Unknown, ...] = ()
    body: int | bytes | None = None


class Push(MessageValue):
    wire_expr: WireExpr
    body: PushBody
    qos: int | None = None
    timestamp: Timestamp | None = None
    node_id: int | None = None
    ts_stack: TsStack | None = None
    unknown: tuple[Unknown, ...] = ()


class Request(MessageValue):
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


class Response(MessageValue):
    id: int
    wire_expr: WireExpr
    body: ResponseBody
    qos: int | None = None
    timestamp: Timestamp | None = None
    responder: EntityId | None = None
    ts_stack: TsStack | None = None
    unknown: tuple[Unknown, ...] = ()


class ResponseFinal(MessageValue):
    id: int
    qos: int | None = None
    timestamp: Timestamp | None = None
    unknown: tuple[Unknown, ...] = ()


class Oam(MessageValue):
    enc: BodyForm
    id: int
    qos: int | None = None
    timestamp: Timestamp | None = None
    unknown: tuple[Unknown, ...] = ()
    body: int | bytes | None = None


class EntityId(MessageValue):
    zid: bytes
    eid: int


class TsStack(MessageValue):
    conf: int
    stack: tuple[TsEntry, ...]


class TsEntry(MessageValue):
    flags: int
    ts: bytes


class LinkStates(MessageValue):
    entries: tuple[LinkState, ...]


class LinkState(MessageValue):
    spare: int
    psid: int
    sn: int
    links: tuple[int, ...]
    gateway: bool = False
    zid: bytes | None = None
    whatami: int | None = None
    locators: tuple[str, ...] | None = None
    weights: tuple[int, ...] | None = None


class Declare(MessageValue):
    body: Declaration
    interest_id: int | None = None
    qos: int | None = None
    timestamp: Timestamp | None = None
    node_id: int | None = None
    unknown: tuple[Unknown, ...] = ()


class DeclareKeyExpr(MessageValue):
    id: int
    scope: int
    suffix: str | None = None
    unknown: tuple[Unknown, ...] = ()


class UndeclareKeyExpr(MessageValue):
    id: int
    unknown: tuple[Unknown, ...] = ()


class DeclareSubscriber(MessageValue):
    id: int
    wire_expr: WireExpr
    unknown: tuple[Unknown, ...] = ()


class DeclareToken(MessageValue):
    id: int
    wire_expr: WireExpr
    unknown: tuple[Unknown, ...] = ()


class DeclareQueryable(MessageValue):
    id: int
    wire_expr: WireExpr
    info: int | None = None
    unknown: tuple[Unknown, ...] = ()


class UndeclareSubscriber(MessageValue):
    id: int
    wire_expr: LooseWireExpr | None = None
    unknown: tuple[Unknown, ...] = ()


class UndeclareQueryable(MessageValue):
    id: int
    wire_expr: LooseWireExpr | None = None
    unknown: tuple[Unknown, ...] = ()


class UndeclareToken(MessageValue):
    id: int
    wire_expr: LooseWireExpr | None = None
    unknown: tuple[Unknown, ...] = ()


class LooseWireExpr(MessageValue):
    scope: int
    sender: bool = False
    suffix: str | None = None


class DeclareFinal(MessageValue):
    unknown: tuple[Unknown, ...] = ()


class Interest(MessageValue):
    mode: InterestMode
    id: int
    options: InterestOptions | None = None
    qos: int | None = None
    timestamp: Timestamp | None = None
    node_id: int | None = None
    unknown: tuple[Unknown, ...] = ()


class InterestOptions(MessageValue):
    kinds: int
    aggregate: bool = False
    wire_expr: WireExpr | None = None


class Put(MessageValue):
    payload: bytes
    timestamp: Timestamp | None = None
    encoding: Encoding | None = None
    source_info: SourceInfo | None = None
    shm: bool = False
    attachment: bytes | None = None
    unknown: tuple[Unknown, ...] = ()


class Del(MessageValue):
    timestamp: Timestamp | None = None
    source_info: SourceInfo | None = None
    attachment: bytes | None = None
    unknown: tuple[Unknown, ...] = ()


class Query(MessageValue):
    consolidation: Consolidation | None = None
    parameters: str | None = None
    source_info: SourceInfo | None = None
    value: Value | None = None
    attachment: bytes | None = None
    unknown: tuple[Unknown, ...] = ()


class Reply(MessageValue):
    body: PushBody
    consolidation: Consolidation | None = None
    unknown: tuple[Unknown, ...] = ()


class Err(MessageValue):
    payload: bytes
    encoding: Encoding | None = None
    source_info: SourceInfo | None = None
    shm: bool = False
    unknown: tuple[Unknown, ...] = ()


class SourceInfo(MessageValue):
    zid: bytes
    eid: int
    sn: int


class Value(MessageValue):
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
