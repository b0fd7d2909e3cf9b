"""Bytes of zenoh1 to values and back. Generated from zenoh1.zn, see messages.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

from elea.model.errors import (
    BadEnum,
    ConstraintViolated,
    EncodeError,
    ReservedMessage,
    Truncated,
    UnknownDeclaration,
    UnknownMessage,
)
from elea.wire.primitives import (
    Unknown,
    bits,
    long_z,
    read_extension,
    read_text,
    sized,
    sized_bytes,
    write_extensions,
    write_sized,
    write_z,
)
from elea.wire.zenoh1.messages import (
    Auth,
    BodyForm,
    Close,
    Consolidation,
    Declaration,
    Declare,
    DeclareFinal,
    DeclareKeyExpr,
    DeclareQueryable,
    DeclareSubscriber,
    DeclareToken,
    Del,
    Encoding,
    EntityId,
    Err,
    Fragment,
    Frame,
    Hello,
    Init,
    Interest,
    InterestMode,
    InterestOptions,
    Join,
    KeepAlive,
    LinkState,
    LinkStates,
    LooseWireExpr,
    NetworkMessage,
    NextSn,
    Oam,
    Open,
    PriorityNextSn,
    Push,
    PushBody,
    Put,
    Query,
    Reply,
    Request,
    RequestBody,
    Response,
    ResponseBody,
    ResponseFinal,
    Role,
    Scout,
    ScoutingMessage,
    Sizes,
    SourceInfo,
    Target,
    Timestamp,
    TransportMessage,
    TransportOam,
    TsEntry,
    TsStack,
    UndeclareKeyExpr,
    UndeclareQueryable,
    UndeclareSubscriber,
    UndeclareToken,
    UserProof,
    Value,
    WireExpr,
)

DIALECT: Final = "zenoh1"
new: Final = tuple.__new__
_ROLE: Final = {member.value: member for member in Role}
_BODY_FORM: Final = {member.value: member for member in BodyForm}
_TARGET: Final = {member.value: member for member in Target}
_INTEREST_MODE: Final = {member.value: member for member in InterestMode}
_CONSOLIDATION: Final = {member.value: member for member in Consolidation}


def read_timestamp(buf: bytes, at: int) -> tuple[Timestamp, int]:
    ntp64 = buf[at]
    at += 1
    if ntp64 > 127:
        ntp64, at = long_z(buf, at, ntp64, 64, DIALECT)
    id_size = buf[at]
    at += 1
    if id_size > 127:
        id_size, at = long_z(buf, at, id_size, 8, DIALECT)
    if not 1 <= id_size <= 16:
        raise ConstraintViolated(DIALECT, at - 1, f"length of id is {id_size}, not 1 to 16")
    id_end = at + id_size
    if id_end > len(buf):
        raise Truncated(DIALECT, len(buf), id_size, len(buf) - at)
    id_ = buf[at:id_end]
    at = id_end
    return new(Timestamp, (ntp64, id_)), at


def read_encoding(buf: bytes, at: int) -> tuple[Encoding, int]:
    id_stem = buf[at]
    at += 1
    if id_stem > 127:
        id_stem, at = long_z(buf, at, id_stem, 32, DIALECT)
    id_ = id_stem >> 1
    schema: bytes | None = None
    if id_stem & 0x01:
        schema_size = buf[at]
        at += 1
        if schema_size > 127:
            schema_size, at = long_z(buf, at, schema_size, 8, DIALECT)
        schema_end = at + schema_size
        if schema_end > len(buf):
            raise Truncated(DIALECT, len(buf), schema_size, len(buf) - at)
        schema = buf[at:schema_end]
        at = schema_end
    return new(Encoding, (id_, schema)), at


def read_wire_expr(buf: bytes, at: int, header: int) -> tuple[WireExpr, int]:
    sender = header & 0x40 != 0
    scope = buf[at]
    at += 1
    if scope > 127:
        scope, at = long_z(buf, at, scope, 16, DIALECT)
    suffix: str | None = None
    if header & 0x20:
        suffix_size = buf[at]
        at += 1
        if suffix_size > 127:
            suffix_size, at = long_z(buf, at, suffix_size, 16, DIALECT)
        suffix, at = read_text(buf, at, suffix_size, DIALECT)
    return new(WireExpr, (scope, sender, suffix)), at


def read_scout(buf: bytes, at: int, header: int) -> tuple[Scout, int]:
    version = buf[at]
    at += 1
    octet = buf[at]
    at += 1
    what = octet & 7
    zid: bytes | None = None
    if octet & 0x08:
        zid_size = (octet >> 4 & 15) + 1
        zid_end = at + zid_size
        if zid_end > len(buf):
            raise Truncated(DIALECT, len(buf), zid_size, len(buf) - at)
        zid = buf[at:zid_end]
        at = zid_end
    unknown: tuple[Unknown, ...] = ()
    more = header & 0x80 != 0
    while more:
        ext = buf[at]
        at += 1
        more = ext > 127
        ext &= 0x7f
        unknown, at = read_extension(buf, at, ext, unknown, DIALECT)
    return new(Scout, (version, what, zid, unknown)), at


def read_hello(buf: bytes, at: int, header: int) -> tuple[Hello, int]:
    version = buf[at]
    at += 1
    octet = buf[at]
    at += 1
    whatami_code = octet & 3
    whatami = _ROLE.get(whatami_code)
    if whatami is None:
        raise BadEnum(DIALECT, at - 1, f"{whatami_code} is no Role")
    zid_size = (octet >> 4 & 15) + 1
    zid_end = at + zid_size
    if zid_end > len(buf):
        raise Truncated(DIALECT, len(buf), zid_size, len(buf) - at)
    zid = buf[at:zid_end]
    at = zid_end
    locators: tuple[str, ...] | None = None
    if header & 0x20:
        locators_size = buf[at]
        at += 1
        if locators_size > 127:
            locators_size, at = long_z(buf, at, locators_size, 64, DIALECT)
        if locators_size > len(buf) - at:
            raise Truncated(DIALECT, len(buf), locators_size, len(buf) - at)
        locators_list: list[str] = []
        for _ in range(locators_size):
            locators_item_size = buf[at]
            at += 1
            if locators_item_size > 127:
                locators_item_size, at = long_z(buf, at, locators_item_size, 8, DIALECT)
            locators_item, at = read_text(buf, at, locators_item_size, DIALECT)
            locators_list.append(locators_item)
        locators = tuple(locators_list)
    unknown: tuple[Unknown, ...] = ()
    more = header & 0x80 != 0
    while more:
        ext = buf[at]
        at += 1
        more = ext > 127
        ext &= 0x7f
        unknown, at = read_extension(buf, at, ext, unknown, DIALECT)
    return new(Hello, (version, whatami, zid, locators, unknown)), at


def read_sizes(buf: bytes, at: int) -> tuple[Sizes, int]:
    resolution = buf[at]
    at += 1
    batch_size = buf[at] | buf[at + 1] << 8
    at += 2
    return new(Sizes, (resolution, batch_size)), at


def read_auth(buf: bytes, at: int) -> tuple[Auth, int]:
    pubkey_done: bool = False
    pubkey: bytes | None = None
    usrpwd: bool = False
    usrpwd_nonce: int | None = None
    usrpwd_proof: UserProof | None = None
    unknown: tuple[Unknown, ...] = ()
    more = at < len(buf)
    while more:
        ext = buf[at]
        at += 1
        more = ext > 127
        ext &= 0x7f
        if ext == 0x01:
            pubkey_done = True
        elif ext == 0x41:
            pubkey, at = sized_bytes(buf, at, DIALECT)
        elif ext == 0x02:
            usrpwd = True
        elif ext == 0x22:
            usrpwd_nonce = buf[at]
            at += 1
            if usrpwd_nonce > 127:
                usrpwd_nonce, at = long_z(buf, at, usrpwd_nonce, 64, DIALECT)
        elif ext == 0x42:
            usrpwd_proof, at = sized(buf, at, read_user_proof, DIALECT)
        else:
            unknown, at = read_extension(buf, at, ext, unknown, DIALECT)
    return new(Auth, (pubkey_done, pubkey, usrpwd, usrpwd_nonce, usrpwd_proof, unknown)), at


def read_user_proof(buf: bytes, at: int) -> tuple[UserProof, int]:
    user_size = buf[at]
    at += 1
    if user_size > 127:
        user_size, at = long_z(buf, at, user_size, 64, DIALECT)
    user_end = at + user_size
    if user_end > len(buf):
        raise Truncated(DIALECT, len(buf), user_size, len(buf) - at)
    user = buf[at:user_end]
    at = user_end
    hmac_size = buf[at]
    at += 1
    if hmac_size > 127:
        hmac_size, at = long_z(buf, at, hmac_size, 64, DIALECT)
    hmac_end = at + hmac_size
    if hmac_end > len(buf):
        raise Truncated(DIALECT, len(buf), hmac_size, len(buf) - at)
    hmac = buf[at:hmac_end]
    at = hmac_end
    left = buf[at:]
    at = len(buf)
    return new(UserProof, (user, hmac, left)), at


def read_init(buf: bytes, at: int, header: int) -> tuple[Init, int]:
    ack = header & 0x20 != 0
    version = buf[at]
    at += 1
    octet = buf[at]
    at += 1
    whatami_code = octet & 3
    whatami = _ROLE.get(whatami_code)
    if whatami is None:
        raise BadEnum(DIALECT, at - 1, f"{whatami_code} is no Role")
    zid_size = (octet >> 4 & 15) + 1
    zid_end = at + zid_size
    if zid_end > len(buf):
        raise Truncated(DIALECT, len(buf), zid_size, len(buf) - at)
    zid = buf[at:zid_end]
    at = zid_end
    sizes: Sizes | None = None
    if header & 0x40:
        sizes, at = read_sizes(buf, at)
    cookie: bytes | None = None
    if ack:
        cookie_size = buf[at]
        at += 1
        if cookie_size > 127:
            cookie_size, at = long_z(buf, at, cookie_size, 64, DIALECT)
        cookie_end = at + cookie_size
        if cookie_end > len(buf):
            raise Truncated(DIALECT, len(buf), cookie_size, len(buf) - at)
        cookie = buf[at:cookie_end]
        at = cookie_end
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
    more = header & 0x80 != 0
    while more:
        ext = buf[at]
        at += 1
        more = ext > 127
        ext &= 0x7f
        if ext == 0x01:
            qos = True
        elif ext == 0x21:
            qos_link = buf[at]
            at += 1
            if qos_link > 127:
                qos_link, at = long_z(buf, at, qos_link, 64, DIALECT)
        elif ext == 0x42:
            shm, at = sized_bytes(buf, at, DIALECT)
        elif ext == 0x43:
            auth, at = sized(buf, at, read_auth, DIALECT)
        elif ext == 0x44:
            multilink, at = sized_bytes(buf, at, DIALECT)
        elif ext == 0x05:
            lowlatency = True
        elif ext == 0x06:
            compression = True
        elif ext == 0x27:
            patch = buf[at]
            at += 1
            if patch > 127:
                patch, at = long_z(buf, at, patch, 64, DIALECT)
        elif ext == 0x48:
            region_name, at = sized_bytes(buf, at, DIALECT)
        else:
            unknown, at = read_extension(buf, at, ext, unknown, DIALECT)
    return new(Init, (
        version,
        whatami,
        zid,
        ack,
        sizes,
        cookie,
        qos,
        qos_link,
        shm,
        auth,
        multilink,
        lowlatency,
        compression,
        patch,
        region_name,
        unknown,
    )), at


def read_open(buf: bytes, at: int, header: int) -> tuple[Open, int]:
    ack = header & 0x20 != 0
    seconds = header & 0x40 != 0
    lease = buf[at]
    at += 1
    if lease > 127:
        lease, at = long_z(buf, at, lease, 64, DIALECT)
    initial_sn = buf[at]
    at += 1
    if initial_sn > 127:
        initial_sn, at = long_z(buf, at, initial_sn, 32, DIALECT)
    cookie: bytes | None = None
    if not ack:
        cookie_size = buf[at]
        at += 1
        if cookie_size > 127:
            cookie_size, at = long_z(buf, at, cookie_size, 64, DIALECT)
        cookie_end = at + cookie_size
        if cookie_end > len(buf):
            raise Truncated(DIALECT, len(buf), cookie_size, len(buf) - at)
        cookie = buf[at:cookie_end]
        at = cookie_end
    qos: bool = False
    shm: bytes | None = None
    auth: Auth | None = None
    multilink_syn: bytes | None = None
    multilink_ack: bool = False
    lowlatency: bool = False
    compression: bool = False
    remote_bound: int | None = None
    unknown: tuple[Unknown, ...] = ()
    more = header & 0x80 != 0
    while more:
        ext = buf[at]
        at += 1
        more = ext > 127
        ext &= 0x7f
        if ext == 0x01:
            qos = True
        elif ext == 0x42:
            shm, at = sized_bytes(buf, at, DIALECT)
        elif ext == 0x43:
            auth, at = sized(buf, at, read_auth, DIALECT)
        elif ext == 0x44:
            multilink_syn, at = sized_bytes(buf, at, DIALECT)
        elif ext == 0x04:
            multilink_ack = True
        elif ext == 0x05:
            lowlatency = True
        elif ext == 0x06:
            compression = True
        elif ext == 0x27:
            remote_bound = buf[at]
            at += 1
            if remote_bound > 127:
                remote_bound, at = long_z(buf, at, remote_bound, 64, DIALECT)
        else:
            unknown, at = read_extension(buf, at, ext, unknown, DIALECT)
    return new(Open, (
        lease,
        initial_sn,
        ack,
        seconds,
        cookie,
        qos,
        shm,
        auth,
        multilink_syn,
        multilink_ack,
        lowlatency,
        compression,
        remote_bound,
        unknown,
    )), at


def read_close(buf: bytes, at: int, header: int) -> tuple[Close, int]:
    session = header & 0x20 != 0
    reason = buf[at]
    at += 1
    unknown: tuple[Unknown, ...] = ()
    more = header & 0x80 != 0
    while more:
        ext = buf[at]
        at += 1
        more = ext > 127
        ext &= 0x7f
        unknown, at = read_extension(buf, at, ext, unknown, DIALECT)
    return new(Close, (reason, session, unknown)), at


def read_keep_alive(buf: bytes, at: int, header: int) -> tuple[KeepAlive, int]:
    unknown: tuple[Unknown, ...] = ()
    more = header & 0x80 != 0
    while more:
        ext = buf[at]
        at += 1
        more = ext > 127
        ext &= 0x7f
        unknown, at = read_extension(buf, at, ext, unknown, DIALECT)
    return new(KeepAlive, (unknown,)), at


def read_frame(buf: bytes, at: int, header: int) -> tuple[Frame, int]:
    reliable = header & 0x20 != 0
    sn = buf[at]
    at += 1
    if sn > 127:
        sn, at = long_z(buf, at, sn, 32, DIALECT)
    qos: int | None = None
    unknown: tuple[Unknown, ...] = ()
    more = header & 0x80 != 0
    while more:
        ext = buf[at]
        at += 1
        more = ext > 127
        ext &= 0x7f
        if ext == 0x31:
            qos = buf[at]
            at += 1
            if qos > 127:
                qos, at = long_z(buf, at, qos, 8, DIALECT)
        else:
            unknown, at = read_extension(buf, at, ext, unknown, DIALECT)
    messages_list: list[NetworkMessage] = []
    while at < len(buf) and buf[at] & 0x1f in _READ_NETWORK_MESSAGE:
        messages_item, at = read_network_message(buf, at)
        messages_list.append(messages_item)
    messages = tuple(messages_list)
    return new(Frame, (sn, messages, reliable, qos, unknown)), at


def read_fragment(buf: bytes, at: int, header: int) -> tuple[Fragment, int]:
    reliable = header & 0x20 != 0
    more_ = header & 0x40 != 0
    sn = buf[at]
    at += 1
    if sn > 127:
        sn, at = long_z(buf, at, sn, 32, DIALECT)
    qos: int | None = None
    first: bool = False
    drop: bool = False
    unknown: tuple[Unknown, ...] = ()
    more = header & 0x80 != 0
    while more:
        ext = buf[at]
        at += 1
        more = ext > 127
        ext &= 0x7f
        if ext == 0x31:
            qos = buf[at]
            at += 1
            if qos > 127:
                qos, at = long_z(buf, at, qos, 8, DIALECT)
        elif ext == 0x02:
            first = True
        elif ext == 0x03:
            drop = True
        else:
            unknown, at = read_extension(buf, at, ext, unknown, DIALECT)
    chunk = buf[at:]
    at = len(buf)
    return new(Fragment, (sn, chunk, reliable, more_, qos, first, drop, unknown)), at


def read_join(buf: bytes, at: int, header: int) -> tuple[Join, int]:
    seconds = header & 0x20 != 0
    version = buf[at]
    at += 1
    octet = buf[at]
    at += 1
    whatami_code = octet & 3
    whatami = _ROLE.get(whatami_code)
    if whatami is None:
        raise BadEnum(DIALECT, at - 1, f"{whatami_code} is no Role")
    zid_size = (octet >> 4 & 15) + 1
    zid_end = at + zid_size
    if zid_end > len(buf):
        raise Truncated(DIALECT, len(buf), zid_size, len(buf) - at)
    zid = buf[at:zid_end]
    at = zid_end
    sizes: Sizes | None = None
    if header & 0x40:
        sizes, at = read_sizes(buf, at)
    lease = buf[at]
    at += 1
    if lease > 127:
        lease, at = long_z(buf, at, lease, 64, DIALECT)
    next_sn, at = read_next_sn(buf, at)
    qos: PriorityNextSn | None = None
    shm: bytes | None = None
    patch: int | None = None
    unknown: tuple[Unknown, ...] = ()
    more = header & 0x80 != 0
    while more:
        ext = buf[at]
        at += 1
        more = ext > 127
        ext &= 0x7f
        if ext == 0x51:
            qos, at = sized(buf, at, read_priority_next_sn, DIALECT)
        elif ext == 0x52:
            shm, at = sized_bytes(buf, at, DIALECT)
        elif ext == 0x27:
            patch = buf[at]
            at += 1
            if patch > 127:
                patch, at = long_z(buf, at, patch, 64, DIALECT)
        else:
            unknown, at = read_extension(buf, at, ext, unknown, DIALECT)
    return new(Join, (version, whatami, zid, lease, next_sn, seconds, sizes, qos, shm, patch, unknown)), at


def read_next_sn(buf: bytes, at: int) -> tuple[NextSn, int]:
    reliable = buf[at]
    at += 1
    if reliable > 127:
        reliable, at = long_z(buf, at, reliable, 32, DIALECT)
    best_effort = buf[at]
    at += 1
    if best_effort > 127:
        best_effort, at = long_z(buf, at, best_effort, 32, DIALECT)
    return new(NextSn, (reliable, best_effort)), at


def read_priority_next_sn(buf: bytes, at: int) -> tuple[PriorityNextSn, int]:
    if 8 > len(buf) - at:
        raise Truncated(DIALECT, len(buf), 8, len(buf) - at)
    priorities_list: list[NextSn] = []
    for _ in range(8):
        priorities_item, at = read_next_sn(buf, at)
        priorities_list.append(priorities_item)
    priorities = tuple(priorities_list)
    return new(PriorityNextSn, (priorities,)), at


def read_transport_oam(buf: bytes, at: int, header: int) -> tuple[TransportOam, int]:
    enc_code = header >> 5 & 3
    enc = _BODY_FORM.get(enc_code)
    if enc is None:
        raise BadEnum(DIALECT, at - 1, f"{enc_code} is no BodyForm")
    id_ = buf[at]
    at += 1
    if id_ > 127:
        id_, at = long_z(buf, at, id_, 16, DIALECT)
    qos: int | None = None
    unknown: tuple[Unknown, ...] = ()
    more = header & 0x80 != 0
    while more:
        ext = buf[at]
        at += 1
        more = ext > 127
        ext &= 0x7f
        if ext == 0x31:
            qos = buf[at]
            at += 1
            if qos > 127:
                qos, at = long_z(buf, at, qos, 8, DIALECT)
        else:
            unknown, at = read_extension(buf, at, ext, unknown, DIALECT)
    body: int | bytes | None = None
    if enc_code == 1:
        body = buf[at]
        at += 1
        if body > 127:
            body, at = long_z(buf, at, body, 64, DIALECT)
    elif enc_code == 2:
        body_size = buf[at]
        at += 1
        if body_size > 127:
            body_size, at = long_z(buf, at, body_size, 32, DIALECT)
        body_end = at + body_size
        if body_end > len(buf):
            raise Truncated(DIALECT, len(buf), body_size, len(buf) - at)
        body = buf[at:body_end]
        at = body_end
    return new(TransportOam, (enc, id_, qos, unknown, body)), at


def read_push(buf: bytes, at: int, header: int) -> tuple[Push, int]:
    wire_expr, at = read_wire_expr(buf, at, header)
    qos: int | None = None
    timestamp: Timestamp | None = None
    node_id: int | None = None
    ts_stack: TsStack | None = None
    unknown: tuple[Unknown, ...] = ()
    more = header & 0x80 != 0
    while more:
        ext = buf[at]
        at += 1
        more = ext > 127
        ext &= 0x7f
        if ext == 0x21:
            qos = buf[at]
            at += 1
            if qos > 127:
                qos, at = long_z(buf, at, qos, 8, DIALECT)
        elif ext == 0x42:
            timestamp, at = sized(buf, at, read_timestamp, DIALECT)
        elif ext == 0x33:
            node_id = buf[at]
            at += 1
            if node_id > 127:
                node_id, at = long_z(buf, at, node_id, 16, DIALECT)
        elif ext == 0x47:
            ts_stack, at = sized(buf, at, read_ts_stack, DIALECT)
        else:
            unknown, at = read_extension(buf, at, ext, unknown, DIALECT)
    body, at = read_push_body(buf, at)
    return new(Push, (wire_expr, body, qos, timestamp, node_id, ts_stack, unknown)), at


def read_request(buf: bytes, at: int, header: int) -> tuple[Request, int]:
    id_ = buf[at]
    at += 1
    if id_ > 127:
        id_, at = long_z(buf, at, id_, 32, DIALECT)
    wire_expr, at = read_wire_expr(buf, at, header)
    qos: int | None = None
    timestamp: Timestamp | None = None
    target: Target | None = None
    budget: int | None = None
    timeout: int | None = None
    node_id: int | None = None
    ts_stack: TsStack | None = None
    unknown: tuple[Unknown, ...] = ()
    more = header & 0x80 != 0
    while more:
        ext = buf[at]
        at += 1
        more = ext > 127
        ext &= 0x7f
        if ext == 0x21:
            qos = buf[at]
            at += 1
            if qos > 127:
                qos, at = long_z(buf, at, qos, 8, DIALECT)
        elif ext == 0x42:
            timestamp, at = sized(buf, at, read_timestamp, DIALECT)
        elif ext == 0x34:
            target_code = buf[at]
            at += 1
            if target_code > 127:
                target_code, at = long_z(buf, at, target_code, 8, DIALECT)
            target = _TARGET.get(target_code)
            if target is None:
                raise BadEnum(DIALECT, at - 1, f"{target_code} is no Target")
        elif ext == 0x25:
            budget = buf[at]
            at += 1
            if budget > 127:
                budget, at = long_z(buf, at, budget, 32, DIALECT)
        elif ext == 0x26:
            timeout = buf[at]
            at += 1
            if timeout > 127:
                timeout, at = long_z(buf, at, timeout, 64, DIALECT)
        elif ext == 0x33:
            node_id = buf[at]
            at += 1
            if node_id > 127:
                node_id, at = long_z(buf, at, node_id, 16, DIALECT)
        elif ext == 0x47:
            ts_stack, at = sized(buf, at, read_ts_stack, DIALECT)
        else:
            unknown, at = read_extension(buf, at, ext, unknown, DIALECT)
    body, at = read_request_body(buf, at)
    return new(Request, (
        id_,
        wire_expr,
        body,
        qos,
        timestamp,
        target,
        budget,
        timeout,
        node_id,
        ts_stack,
        unknown,
    )), at


def read_response(buf: bytes, at: int, header: int) -> tuple[Response, int]:
    id_ = buf[at]
    at += 1
    if id_ > 127:
        id_, at = long_z(buf, at, id_, 32, DIALECT)
    wire_expr, at = read_wire_expr(buf, at, header)
    qos: int | None = None
    timestamp: Timestamp | None = None
    responder: EntityId | None = None
    ts_stack: TsStack | None = None
    unknown: tuple[Unknown, ...] = ()
    more = header & 0x80 != 0
    while more:
        ext = buf[at]
        at += 1
        more = ext > 127
        ext &= 0x7f
        if ext == 0x21:
            qos = buf[at]
            at += 1
            if qos > 127:
                qos, at = long_z(buf, at, qos, 8, DIALECT)
        elif ext == 0x42:
            timestamp, at = sized(buf, at, read_timestamp, DIALECT)
        elif ext == 0x43:
            responder, at = sized(buf, at, read_entity_id, DIALECT)
        elif ext == 0x47:
            ts_stack, at = sized(buf, at, read_ts_stack, DIALECT)
        else:
            unknown, at = read_extension(buf, at, ext, unknown, DIALECT)
    body, at = read_response_body(buf, at)
    return new(Response, (id_, wire_expr, body, qos, timestamp, responder, ts_stack, unknown)), at


def read_response_final(buf: bytes, at: int, header: int) -> tuple[ResponseFinal, int]:
    id_ = buf[at]
    at += 1
    if id_ > 127:
        id_, at = long_z(buf, at, id_, 32, DIALECT)
    qos: int | None = None
    timestamp: Timestamp | None = None
    unknown: tuple[Unknown, ...] = ()
    more = header & 0x80 != 0
    while more:
        ext = buf[at]
        at += 1
        more = ext > 127
        ext &= 0x7f
        if ext == 0x21:
            qos = buf[at]
            at += 1
            if qos > 127:
                qos, at = long_z(buf, at, qos, 8, DIALECT)
        elif ext == 0x42:
            timestamp, at = sized(buf, at, read_timestamp, DIALECT)
        else:
            unknown, at = read_extension(buf, at, ext, unknown, DIALECT)
    return new(ResponseFinal, (id_, qos, timestamp, unknown)), at


def read_oam(buf: bytes, at: int, header: int) -> tuple[Oam, int]:
    enc_code = header >> 5 & 3
    enc = _BODY_FORM.get(enc_code)
    if enc is None:
        raise BadEnum(DIALECT, at - 1, f"{enc_code} is no BodyForm")
    id_ = buf[at]
    at += 1
    if id_ > 127:
        id_, at = long_z(buf, at, id_, 16, DIALECT)
    qos: int | None = None
    timestamp: Timestamp | None = None
    unknown: tuple[Unknown, ...] = ()
    more = header & 0x80 != 0
    while more:
        ext = buf[at]
        at += 1
        more = ext > 127
        ext &= 0x7f
        if ext == 0x21:
            qos = buf[at]
            at += 1
            if qos > 127:
                qos, at = long_z(buf, at, qos, 8, DIALECT)
        elif ext == 0x42:
            timestamp, at = sized(buf, at, read_timestamp, DIALECT)
        else:
            unknown, at = read_extension(buf, at, ext, unknown, DIALECT)
    body: int | bytes | None = None
    if enc_code == 1:
        body = buf[at]
        at += 1
        if body > 127:
            body, at = long_z(buf, at, body, 64, DIALECT)
    elif enc_code == 2:
        body_size = buf[at]
        at += 1
        if body_size > 127:
            body_size, at = long_z(buf, at, body_size, 32, DIALECT)
        body_end = at + body_size
        if body_end > len(buf):
            raise Truncated(DIALECT, len(buf), body_size, len(buf) - at)
        body = buf[at:body_end]
        at = body_end
    return new(Oam, (enc, id_, qos, timestamp, unknown, body)), at


def read_entity_id(buf: bytes, at: int) -> tuple[EntityId, int]:
    octet = buf[at]
    at += 1
    zid_size = (octet >> 4 & 15) + 1
    zid_end = at + zid_size
    if zid_end > len(buf):
        raise Truncated(DIALECT, len(buf), zid_size, len(buf) - at)
    zid = buf[at:zid_end]
    at = zid_end
    eid = buf[at]
    at += 1
    if eid > 127:
        eid, at = long_z(buf, at, eid, 32, DIALECT)
    return new(EntityId, (zid, eid)), at


def read_ts_stack(buf: bytes, at: int) -> tuple[TsStack, int]:
    conf = buf[at]
    at += 1
    if not 1 <= conf <= 255:
        raise ConstraintViolated(DIALECT, at - 1, f"conf is {conf}, not 1 to 255")
    stack_size = buf[at]
    at += 1
    if stack_size > 127:
        stack_size, at = long_z(buf, at, stack_size, 8, DIALECT)
    if stack_size > len(buf) - at:
        raise Truncated(DIALECT, len(buf), stack_size, len(buf) - at)
    stack_list: list[TsEntry] = []
    for _ in range(stack_size):
        stack_item, at = read_ts_entry(buf, at)
        stack_list.append(stack_item)
    stack = tuple(stack_list)
    return new(TsStack, (conf, stack)), at


def read_ts_entry(buf: bytes, at: int) -> tuple[TsEntry, int]:
    flags = buf[at]
    at += 1
    ts_size = buf[at]
    at += 1
    if ts_size > 127:
        ts_size, at = long_z(buf, at, ts_size, 64, DIALECT)
    ts_end = at + ts_size
    if ts_end > len(buf):
        raise Truncated(DIALECT, len(buf), ts_size, len(buf) - at)
    ts = buf[at:ts_end]
    at = ts_end
    return new(TsEntry, (flags, ts)), at


def read_link_states(buf: bytes, at: int) -> tuple[LinkStates, int]:
    entries_size = buf[at]
    at += 1
    if entries_size > 127:
        entries_size, at = long_z(buf, at, entries_size, 64, DIALECT)
    if entries_size > len(buf) - at:
        raise Truncated(DIALECT, len(buf), entries_size, len(buf) - at)
    entries_list: list[LinkState] = []
    for _ in range(entries_size):
        entries_item, at = read_link_state(buf, at)
        entries_list.append(entries_item)
    entries = tuple(entries_list)
    return new(LinkStates, (entries,)), at


def read_link_state(buf: bytes, at: int) -> tuple[LinkState, int]:
    spare_stem = buf[at]
    at += 1
    if spare_stem > 127:
        spare_stem, at = long_z(buf, at, spare_stem, 64, DIALECT)
    spare = spare_stem >> 5
    gateway = spare_stem & 0x10 != 0
    psid = buf[at]
    at += 1
    if psid > 127:
        psid, at = long_z(buf, at, psid, 64, DIALECT)
    sn = buf[at]
    at += 1
    if sn > 127:
        sn, at = long_z(buf, at, sn, 64, DIALECT)
    zid: bytes | None = None
    if spare_stem & 0x01:
        zid_size = buf[at]
        at += 1
        if zid_size > 127:
            zid_size, at = long_z(buf, at, zid_size, 8, DIALECT)
        if not 1 <= zid_size <= 16:
            raise ConstraintViolated(DIALECT, at - 1, f"length of zid is {zid_size}, not 1 to 16")
        zid_end = at + zid_size
        if zid_end > len(buf):
            raise Truncated(DIALECT, len(buf), zid_size, len(buf) - at)
        zid = buf[at:zid_end]
        at = zid_end
    whatami: int | None = None
    if spare_stem & 0x02:
        whatami = buf[at]
        at += 1
    locators: tuple[str, ...] | None = None
    if spare_stem & 0x04:
        locators_size = buf[at]
        at += 1
        if locators_size > 127:
            locators_size, at = long_z(buf, at, locators_size, 64, DIALECT)
        if locators_size > len(buf) - at:
            raise Truncated(DIALECT, len(buf), locators_size, len(buf) - at)
        locators_list: list[str] = []
        for _ in range(locators_size):
            locators_item_size = buf[at]
            at += 1
            if locators_item_size > 127:
                locators_item_size, at = long_z(buf, at, locators_item_size, 8, DIALECT)
            locators_item, at = read_text(buf, at, locators_item_size, DIALECT)
            locators_list.append(locators_item)
        locators = tuple(locators_list)
    links_size = buf[at]
    at += 1
    if links_size > 127:
        links_size, at = long_z(buf, at, links_size, 64, DIALECT)
    if links_size > len(buf) - at:
        raise Truncated(DIALECT, len(buf), links_size, len(buf) - at)
    links_list: list[int] = []
    for _ in range(links_size):
        links_item = buf[at]
        at += 1
        if links_item > 127:
            links_item, at = long_z(buf, at, links_item, 64, DIALECT)
        links_list.append(links_item)
    links = tuple(links_list)
    weights: tuple[int, ...] | None = None
    if spare_stem & 0x08:
        if len(links) > len(buf) - at:
            raise Truncated(DIALECT, len(buf), len(links), len(buf) - at)
        weights_list: list[int] = []
        for _ in range(len(links)):
            weights_item = buf[at]
            at += 1
            if weights_item > 127:
                weights_item, at = long_z(buf, at, weights_item, 16, DIALECT)
            weights_list.append(weights_item)
        weights = tuple(weights_list)
    return new(LinkState, (spare, psid, sn, links, gateway, zid, whatami, locators, weights)), at


def read_declare(buf: bytes, at: int, header: int) -> tuple[Declare, int]:
    interest_id: int | None = None
    if header & 0x20:
        interest_id = buf[at]
        at += 1
        if interest_id > 127:
            interest_id, at = long_z(buf, at, interest_id, 32, DIALECT)
    qos: int | None = None
    timestamp: Timestamp | None = None
    node_id: int | None = None
    unknown: tuple[Unknown, ...] = ()
    more = header & 0x80 != 0
    while more:
        ext = buf[at]
        at += 1
        more = ext > 127
        ext &= 0x7f
        if ext == 0x21:
            qos = buf[at]
            at += 1
            if qos > 127:
                qos, at = long_z(buf, at, qos, 8, DIALECT)
        elif ext == 0x42:
            timestamp, at = sized(buf, at, read_timestamp, DIALECT)
        elif ext == 0x33:
            node_id = buf[at]
            at += 1
            if node_id > 127:
                node_id, at = long_z(buf, at, node_id, 16, DIALECT)
        else:
            unknown, at = read_extension(buf, at, ext, unknown, DIALECT)
    body, at = read_declaration(buf, at)
    return new(Declare, (body, interest_id, qos, timestamp, node_id, unknown)), at


def read_declare_key_expr(buf: bytes, at: int, header: int) -> tuple[DeclareKeyExpr, int]:
    id_ = buf[at]
    at += 1
    if id_ > 127:
        id_, at = long_z(buf, at, id_, 16, DIALECT)
    scope = buf[at]
    at += 1
    if scope > 127:
        scope, at = long_z(buf, at, scope, 16, DIALECT)
    suffix: str | None = None
    if header & 0x20:
        suffix_size = buf[at]
        at += 1
        if suffix_size > 127:
            suffix_size, at = long_z(buf, at, suffix_size, 16, DIALECT)
        suffix, at = read_text(buf, at, suffix_size, DIALECT)
    unknown: tuple[Unknown, ...] = ()
    more = header & 0x80 != 0
    while more:
        ext = buf[at]
        at += 1
        more = ext > 127
        ext &= 0x7f
        unknown, at = read_extension(buf, at, ext, unknown, DIALECT)
    return new(DeclareKeyExpr, (id_, scope, suffix, unknown)), at


def read_undeclare_key_expr(buf: bytes, at: int, header: int) -> tuple[UndeclareKeyExpr, int]:
    id_ = buf[at]
    at += 1
    if id_ > 127:
        id_, at = long_z(buf, at, id_, 16, DIALECT)
    unknown: tuple[Unknown, ...] = ()
    more = header & 0x80 != 0
    while more:
        ext = buf[at]
        at += 1
        more = ext > 127
        ext &= 0x7f
        unknown, at = read_extension(buf, at, ext, unknown, DIALECT)
    return new(UndeclareKeyExpr, (id_, unknown)), at


def read_declare_subscriber(buf: bytes, at: int, header: int) -> tuple[DeclareSubscriber, int]:
    id_ = buf[at]
    at += 1
    if id_ > 127:
        id_, at = long_z(buf, at, id_, 32, DIALECT)
    wire_expr, at = read_wire_expr(buf, at, header)
    unknown: tuple[Unknown, ...] = ()
    more = header & 0x80 != 0
    while more:
        ext = buf[at]
        at += 1
        more = ext > 127
        ext &= 0x7f
        unknown, at = read_extension(buf, at, ext, unknown, DIALECT)
    return new(DeclareSubscriber, (id_, wire_expr, unknown)), at


def read_declare_token(buf: bytes, at: int, header: int) -> tuple[DeclareToken, int]:
    id_ = buf[at]
    at += 1
    if id_ > 127:
        id_, at = long_z(buf, at, id_, 32, DIALECT)
    wire_expr, at = read_wire_expr(buf, at, header)
    unknown: tuple[Unknown, ...] = ()
    more = header & 0x80 != 0
    while more:
        ext = buf[at]
        at += 1
        more = ext > 127
        ext &= 0x7f
        unknown, at = read_extension(buf, at, ext, unknown, DIALECT)
    return new(DeclareToken, (id_, wire_expr, unknown)), at


def read_declare_queryable(buf: bytes, at: int, header: int) -> tuple[DeclareQueryable, int]:
    id_ = buf[at]
    at += 1
    if id_ > 127:
        id_, at = long_z(buf, at, id_, 32, DIALECT)
    wire_expr, at = read_wire_expr(buf, at, header)
    info: int | None = None
    unknown: tuple[Unknown, ...] = ()
    more = header & 0x80 != 0
    while more:
        ext = buf[at]
        at += 1
        more = ext > 127
        ext &= 0x7f
        if ext == 0x21:
            info = buf[at]
            at += 1
            if info > 127:
                info, at = long_z(buf, at, info, 64, DIALECT)
        else:
            unknown, at = read_extension(buf, at, ext, unknown, DIALECT)
    return new(DeclareQueryable, (id_, wire_expr, info, unknown)), at


def read_undeclare_subscriber(buf: bytes, at: int, header: int) -> tuple[UndeclareSubscriber, int]:
    id_ = buf[at]
    at += 1
    if id_ > 127:
        id_, at = long_z(buf, at, id_, 32, DIALECT)
    wire_expr: LooseWireExpr | None = None
    unknown: tuple[Unknown, ...] = ()
    more = header & 0x80 != 0
    while more:
        ext = buf[at]
        at += 1
        more = ext > 127
        ext &= 0x7f
        if ext == 0x5f:
            wire_expr, at = sized(buf, at, read_loose_wire_expr, DIALECT)
        else:
            unknown, at = read_extension(buf, at, ext, unknown, DIALECT)
    return new(UndeclareSubscriber, (id_, wire_expr, unknown)), at


def read_undeclare_queryable(buf: bytes, at: int, header: int) -> tuple[UndeclareQueryable, int]:
    id_ = buf[at]
    at += 1
    if id_ > 127:
        id_, at = long_z(buf, at, id_, 32, DIALECT)
    wire_expr: LooseWireExpr | None = None
    unknown: tuple[Unknown, ...] = ()
    more = header & 0x80 != 0
    while more:
        ext = buf[at]
        at += 1
        more = ext > 127
        ext &= 0x7f
        if ext == 0x5f:
            wire_expr, at = sized(buf, at, read_loose_wire_expr, DIALECT)
        else:
            unknown, at = read_extension(buf, at, ext, unknown, DIALECT)
    return new(UndeclareQueryable, (id_, wire_expr, unknown)), at


def read_undeclare_token(buf: bytes, at: int, header: int) -> tuple[UndeclareToken, int]:
    id_ = buf[at]
    at += 1
    if id_ > 127:
        id_, at = long_z(buf, at, id_, 32, DIALECT)
    wire_expr: LooseWireExpr | None = None
    unknown: tuple[Unknown, ...] = ()
    more = header & 0x80 != 0
    while more:
        ext = buf[at]
        at += 1
        more = ext > 127
        ext &= 0x7f
        if ext == 0x5f:
            wire_expr, at = sized(buf, at, read_loose_wire_expr, DIALECT)
        else:
            unknown, at = read_extension(buf, at, ext, unknown, DIALECT)
    return new(UndeclareToken, (id_, wire_expr, unknown)), at


def read_loose_wire_expr(buf: bytes, at: int) -> tuple[LooseWireExpr, int]:
    octet = buf[at]
    at += 1
    sender = octet & 0x02 != 0
    scope = buf[at]
    at += 1
    if scope > 127:
        scope, at = long_z(buf, at, scope, 16, DIALECT)
    suffix: str | None = None
    if octet & 0x01:
        suffix, at = read_text(buf, at, len(buf) - at, DIALECT)
    return new(LooseWireExpr, (scope, sender, suffix)), at


def read_declare_final(buf: bytes, at: int, header: int) -> tuple[DeclareFinal, int]:
    unknown: tuple[Unknown, ...] = ()
    more = header & 0x80 != 0
    while more:
        ext = buf[at]
        at += 1
        more = ext > 127
        ext &= 0x7f
        unknown, at = read_extension(buf, at, ext, unknown, DIALECT)
    return new(DeclareFinal, (unknown,)), at


def read_interest(buf: bytes, at: int, header: int) -> tuple[Interest, int]:
    mode_code = header >> 5 & 3
    mode = _INTEREST_MODE.get(mode_code)
    if mode is None:
        raise BadEnum(DIALECT, at - 1, f"{mode_code} is no InterestMode")
    id_ = buf[at]
    at += 1
    if id_ > 127:
        id_, at = long_z(buf, at, id_, 32, DIALECT)
    options: InterestOptions | None = None
    if mode_code == 1 or mode_code == 2 or mode_code == 3:
        options, at = read_interest_options(buf, at)
    qos: int | None = None
    timestamp: Timestamp | None = None
    node_id: int | None = None
    unknown: tuple[Unknown, ...] = ()
    more = header & 0x80 != 0
    while more:
        ext = buf[at]
        at += 1
        more = ext > 127
        ext &= 0x7f
        if ext == 0x21:
            qos = buf[at]
            at += 1
            if qos > 127:
                qos, at = long_z(buf, at, qos, 8, DIALECT)
        elif ext == 0x42:
            timestamp, at = sized(buf, at, read_timestamp, DIALECT)
        elif ext == 0x33:
            node_id = buf[at]
            at += 1
            if node_id > 127:
                node_id, at = long_z(buf, at, node_id, 16, DIALECT)
        else:
            unknown, at = read_extension(buf, at, ext, unknown, DIALECT)
    return new(Interest, (mode, id_, options, qos, timestamp, node_id, unknown)), at


def read_interest_options(buf: bytes, at: int) -> tuple[InterestOptions, int]:
    kinds_octet = buf[at]
    at += 1
    kinds = kinds_octet & 0x0f
    aggregate = kinds_octet & 0x80 != 0
    wire_expr: WireExpr | None = None
    if kinds_octet & 0x10:
        wire_expr, at = read_wire_expr(buf, at, kinds_octet)
    return new(InterestOptions, (kinds, aggregate, wire_expr)), at


def read_put(buf: bytes, at: int, header: int) -> tuple[Put, int]:
    timestamp: Timestamp | None = None
    if header & 0x20:
        timestamp, at = read_timestamp(buf, at)
    encoding: Encoding | None = None
    if header & 0x40:
        encoding, at = read_encoding(buf, at)
    source_info: SourceInfo | None = None
    shm: bool = False
    attachment: bytes | None = None
    unknown: tuple[Unknown, ...] = ()
    more = header & 0x80 != 0
    while more:
        ext = buf[at]
        at += 1
        more = ext > 127
        ext &= 0x7f
        if ext == 0x41:
            source_info, at = sized(buf, at, read_source_info, DIALECT)
        elif ext == 0x12:
            shm = True
        elif ext == 0x43:
            attachment, at = sized_bytes(buf, at, DIALECT)
        else:
            unknown, at = read_extension(buf, at, ext, unknown, DIALECT)
    payload_size = buf[at]
    at += 1
    if payload_size > 127:
        payload_size, at = long_z(buf, at, payload_size, 32, DIALECT)
    payload_end = at + payload_size
    if payload_end > len(buf):
        raise Truncated(DIALECT, len(buf), payload_size, len(buf) - at)
    payload = buf[at:payload_end]
    at = payload_end
    return new(Put, (payload, timestamp, encoding, source_info, shm, attachment, unknown)), at


def read_del(buf: bytes, at: int, header: int) -> tuple[Del, int]:
    timestamp: Timestamp | None = None
    if header & 0x20:
        timestamp, at = read_timestamp(buf, at)
    source_info: SourceInfo | None = None
    attachment: bytes | None = None
    unknown: tuple[Unknown, ...] = ()
    more = header & 0x80 != 0
    while more:
        ext = buf[at]
        at += 1
        more = ext > 127
        ext &= 0x7f
        if ext == 0x41:
            source_info, at = sized(buf, at, read_source_info, DIALECT)
        elif ext == 0x42:
            attachment, at = sized_bytes(buf, at, DIALECT)
        else:
            unknown, at = read_extension(buf, at, ext, unknown, DIALECT)
    return new(Del, (timestamp, source_info, attachment, unknown)), at


def read_query(buf: bytes, at: int, header: int) -> tuple[Query, int]:
    consolidation: Consolidation | None = None
    if header & 0x20:
        consolidation_code = buf[at]
        at += 1
        if consolidation_code > 127:
            consolidation_code, at = long_z(buf, at, consolidation_code, 8, DIALECT)
        consolidation = _CONSOLIDATION.get(consolidation_code)
        if consolidation is None:
            raise BadEnum(DIALECT, at - 1, f"{consolidation_code} is no Consolidation")
    parameters: str | None = None
    if header & 0x40:
        parameters_size = buf[at]
        at += 1
        if parameters_size > 127:
            parameters_size, at = long_z(buf, at, parameters_size, 16, DIALECT)
        parameters, at = read_text(buf, at, parameters_size, DIALECT)
    source_info: SourceInfo | None = None
    value: Value | None = None
    attachment: bytes | None = None
    unknown: tuple[Unknown, ...] = ()
    more = header & 0x80 != 0
    while more:
        ext = buf[at]
        at += 1
        more = ext > 127
        ext &= 0x7f
        if ext == 0x41:
            source_info, at = sized(buf, at, read_source_info, DIALECT)
        elif ext == 0x43:
            value, at = sized(buf, at, read_value, DIALECT)
        elif ext == 0x45:
            attachment, at = sized_bytes(buf, at, DIALECT)
        else:
            unknown, at = read_extension(buf, at, ext, unknown, DIALECT)
    return new(Query, (consolidation, parameters, source_info, value, attachment, unknown)), at


def read_reply(buf: bytes, at: int, header: int) -> tuple[Reply, int]:
    consolidation: Consolidation | None = None
    if header & 0x20:
        consolidation_code = buf[at]
        at += 1
        if consolidation_code > 127:
            consolidation_code, at = long_z(buf, at, consolidation_code, 8, DIALECT)
        consolidation = _CONSOLIDATION.get(consolidation_code)
        if consolidation is None:
            raise BadEnum(DIALECT, at - 1, f"{consolidation_code} is no Consolidation")
    unknown: tuple[Unknown, ...] = ()
    more = header & 0x80 != 0
    while more:
        ext = buf[at]
        at += 1
        more = ext > 127
        ext &= 0x7f
        unknown, at = read_extension(buf, at, ext, unknown, DIALECT)
    body, at = read_push_body(buf, at)
    return new(Reply, (body, consolidation, unknown)), at


def read_err(buf: bytes, at: int, header: int) -> tuple[Err, int]:
    encoding: Encoding | None = None
    if header & 0x40:
        encoding, at = read_encoding(buf, at)
    source_info: SourceInfo | None = None
    shm: bool = False
    unknown: tuple[Unknown, ...] = ()
    more = header & 0x80 != 0
    while more:
        ext = buf[at]
        at += 1
        more = ext > 127
        ext &= 0x7f
        if ext == 0x41:
            source_info, at = sized(buf, at, read_source_info, DIALECT)
        elif ext == 0x12:
            shm = True
        else:
            unknown, at = read_extension(buf, at, ext, unknown, DIALECT)
    payload_size = buf[at]
    at += 1
    if payload_size > 127:
        payload_size, at = long_z(buf, at, payload_size, 32, DIALECT)
    payload_end = at + payload_size
    if payload_end > len(buf):
        raise Truncated(DIALECT, len(buf), payload_size, len(buf) - at)
    payload = buf[at:payload_end]
    at = payload_end
    return new(Err, (payload, encoding, source_info, shm, unknown)), at


def read_source_info(buf: bytes, at: int) -> tuple[SourceInfo, int]:
    octet = buf[at]
    at += 1
    zid_size = (octet >> 4 & 15) + 1
    zid_end = at + zid_size
    if zid_end > len(buf):
        raise Truncated(DIALECT, len(buf), zid_size, len(buf) - at)
    zid = buf[at:zid_end]
    at = zid_end
    eid = buf[at]
    at += 1
    if eid > 127:
        eid, at = long_z(buf, at, eid, 32, DIALECT)
    sn = buf[at]
    at += 1
    if sn > 127:
        sn, at = long_z(buf, at, sn, 32, DIALECT)
    return new(SourceInfo, (zid, eid, sn)), at


def read_value(buf: bytes, at: int) -> tuple[Value, int]:
    encoding, at = read_encoding(buf, at)
    payload = buf[at:]
    at = len(buf)
    return new(Value, (encoding, payload)), at


_READ_SCOUTING_MESSAGE: Final[dict[int, Callable[[bytes, int, int], tuple[ScoutingMessage, int]]]] = {
    1: read_scout,
    2: read_hello,
}


def read_scouting_message(buf: bytes, at: int) -> tuple[ScoutingMessage, int]:
    header = buf[at]
    read = _READ_SCOUTING_MESSAGE.get(header & 0x1f)
    if read is None:
        raise UnknownMessage(DIALECT, at, f"no scouting message has id {header & 31}")
    return read(buf, at + 1, header)


_READ_TRANSPORT_MESSAGE: Final[dict[int, Callable[[bytes, int, int], tuple[TransportMessage, int]]]] = {
    0: read_transport_oam,
    1: read_init,
    2: read_open,
    3: read_close,
    4: read_keep_alive,
    5: read_frame,
    6: read_fragment,
    7: read_join,
}


def read_transport_message(buf: bytes, at: int) -> tuple[TransportMessage, int]:
    header = buf[at]
    read = _READ_TRANSPORT_MESSAGE.get(header & 0x1f)
    if read is None:
        raise UnknownMessage(DIALECT, at, f"no transport message has id {header & 31}")
    return read(buf, at + 1, header)


_READ_NETWORK_MESSAGE: Final[dict[int, Callable[[bytes, int, int], tuple[NetworkMessage, int]]]] = {
    25: read_interest,
    26: read_response_final,
    27: read_response,
    28: read_request,
    29: read_push,
    30: read_declare,
    31: read_oam,
}


def read_network_message(buf: bytes, at: int) -> tuple[NetworkMessage, int]:
    header = buf[at]
    read = _READ_NETWORK_MESSAGE.get(header & 0x1f)
    if read is None:
        raise UnknownMessage(DIALECT, at, f"no network message has id {header & 31}")
    return read(buf, at + 1, header)


_READ_DECLARATION: Final[dict[int, Callable[[bytes, int, int], tuple[Declaration, int]]]] = {
    0: read_declare_key_expr,
    1: read_undeclare_key_expr,
    2: read_declare_subscriber,
    3: read_undeclare_subscriber,
    4: read_declare_queryable,
    5: read_undeclare_queryable,
    6: read_declare_token,
    7: read_undeclare_token,
    26: read_declare_final,
}


def read_declaration(buf: bytes, at: int) -> tuple[Declaration, int]:
    header = buf[at]
    read = _READ_DECLARATION.get(header & 0x1f)
    if read is None:
        raise UnknownDeclaration(DIALECT, at, f"no declaration has id {header & 31}")
    return read(buf, at + 1, header)


_READ_PUSH_BODY: Final[dict[int, Callable[[bytes, int, int], tuple[PushBody, int]]]] = {
    1: read_put,
    2: read_del,
}


def read_push_body(buf: bytes, at: int) -> tuple[PushBody, int]:
    header = buf[at]
    read = _READ_PUSH_BODY.get(header & 0x1f)
    if read is None:
        kind = header & 0x1f
        if kind in (3, 4, 5):
            raise ReservedMessage(DIALECT, at, f"message {kind} has no body yet")
        raise UnknownMessage(DIALECT, at, f"no push body has id {header & 31}")
    return read(buf, at + 1, header)


_READ_REQUEST_BODY: Final[dict[int, Callable[[bytes, int, int], tuple[RequestBody, int]]]] = {
    3: read_query,
}


def read_request_body(buf: bytes, at: int) -> tuple[RequestBody, int]:
    header = buf[at]
    read = _READ_REQUEST_BODY.get(header & 0x1f)
    if read is None:
        kind = header & 0x1f
        if kind in (1, 2, 4, 5):
            raise ReservedMessage(DIALECT, at, f"message {kind} has no body yet")
        raise UnknownMessage(DIALECT, at, f"no request body has id {header & 31}")
    return read(buf, at + 1, header)


_READ_RESPONSE_BODY: Final[dict[int, Callable[[bytes, int, int], tuple[ResponseBody, int]]]] = {
    4: read_reply,
    5: read_err,
}


def read_response_body(buf: bytes, at: int) -> tuple[ResponseBody, int]:
    header = buf[at]
    read = _READ_RESPONSE_BODY.get(header & 0x1f)
    if read is None:
        kind = header & 0x1f
        if kind in (1, 2, 3):
            raise ReservedMessage(DIALECT, at, f"message {kind} has no body yet")
        raise UnknownMessage(DIALECT, at, f"no response body has id {header & 31}")
    return read(buf, at + 1, header)


def write_timestamp(out: bytearray, m: Timestamp) -> None:
    if 0 <= m.ntp64 < 128:
        out.append(m.ntp64)
    else:
        write_z(out, m.ntp64, 64, "ntp64")
    if not 1 <= len(m.id) <= 16:
        raise EncodeError("id", f"{len(m.id)} is not 1 to 16")
    size = len(m.id)
    if 0 <= size < 128:
        out.append(size)
    else:
        write_z(out, size, 8, "id")
    out += m.id


def write_encoding(out: bytearray, m: Encoding) -> None:
    header = m.id << 1
    if m.schema is not None:
        header |= 0x01
    write_z(out, header, 32, "id")
    if m.schema is not None:
        size = len(m.schema)
        if 0 <= size < 128:
            out.append(size)
        else:
            write_z(out, size, 8, "schema")
        out += m.schema


def write_wire_expr(out: bytearray, m: WireExpr) -> None:
    if 0 <= m.scope < 128:
        out.append(m.scope)
    else:
        write_z(out, m.scope, 16, "scope")
    if m.suffix is not None:
        suffix_utf8 = m.suffix.encode("utf-8")
        size = len(suffix_utf8)
        if 0 <= size < 128:
            out.append(size)
        else:
            write_z(out, size, 16, "suffix")
        out += suffix_utf8


def write_scout(out: bytearray, m: Scout) -> None:
    header = 0x01
    if m.unknown:
        header |= 0x80
    out.append(header)
    out.append(bits(m.version, 8, "version"))
    header = 0
    header |= bits(m.what, 3, "what")
    if m.zid is not None:
        header |= 0x08
    header |= bits(len(m.zid) - 1 if m.zid is not None else 0, 4, "zid") << 4
    out.append(header)
    if m.zid is not None:
        out += m.zid
    last = -1
    if m.unknown:
        last = write_extensions(out, m.unknown, last)
    if last >= 0:
        out[last] &= 0x7f


def write_hello(out: bytearray, m: Hello) -> None:
    header = 0x02
    if m.locators is not None:
        header |= 0x20
    if m.unknown:
        header |= 0x80
    out.append(header)
    out.append(bits(m.version, 8, "version"))
    header = 0
    header |= bits(m.whatami, 2, "whatami")
    header |= bits(len(m.zid) - 1, 4, "zid") << 4
    out.append(header)
    out += m.zid
    if m.locators is not None:
        size = len(m.locators)
        if 0 <= size < 128:
            out.append(size)
        else:
            write_z(out, size, 64, "locators")
        for locators_item in m.locators:
            locators_utf8 = locators_item.encode("utf-8")
            size = len(locators_utf8)
            if 0 <= size < 128:
                out.append(size)
            else:
                write_z(out, size, 8, "locators")
            out += locators_utf8
    last = -1
    if m.unknown:
        last = write_extensions(out, m.unknown, last)
    if last >= 0:
        out[last] &= 0x7f


def write_sizes(out: bytearray, m: Sizes) -> None:
    out.append(bits(m.resolution, 8, "resolution"))
    out += bits(m.batch_size, 16, "batch_size").to_bytes(2, "little")


def write_auth(out: bytearray, m: Auth) -> None:
    last = -1
    if m.pubkey_done:
        last = len(out)
        out.append(0x81)
    if m.pubkey is not None:
        last = len(out)
        out.append(0xc1)
        write_sized(out, m.pubkey, "pubkey")
    if m.usrpwd:
        last = len(out)
        out.append(0x82)
    if m.usrpwd_nonce is not None:
        last = len(out)
        out.append(0xa2)
        if 0 <= m.usrpwd_nonce < 128:
            out.append(m.usrpwd_nonce)
        else:
            write_z(out, m.usrpwd_nonce, 64, "usrpwd_nonce")
    if m.usrpwd_proof is not None:
        last = len(out)
        out.append(0xc2)
        body = bytearray()
        write_user_proof(body, m.usrpwd_proof)
        write_sized(out, body, "usrpwd_proof")
    if m.unknown:
        last = write_extensions(out, m.unknown, last)
    if last >= 0:
        out[last] &= 0x7f


def write_user_proof(out: bytearray, m: UserProof) -> None:
    size = len(m.user)
    if 0 <= size < 128:
        out.append(size)
    else:
        write_z(out, size, 64, "user")
    out += m.user
    size = len(m.hmac)
    if 0 <= size < 128:
        out.append(size)
    else:
        write_z(out, size, 64, "hmac")
    out += m.hmac
    out += m.left


def write_init(out: bytearray, m: Init) -> None:
    header = 0x01
    if m.ack:
        header |= 0x20
    if m.sizes is not None:
        header |= 0x40
    if m.qos or m.qos_link is not None or m.shm is not None or m.auth is not None or m.multilink is not None or m.lowlatency or m.compression or m.patch is not None or m.region_name is not None or m.unknown:
        header |= 0x80
    out.append(header)
    out.append(bits(m.version, 8, "version"))
    header = 0
    header |= bits(m.whatami, 2, "whatami")
    header |= bits(len(m.zid) - 1, 4, "zid") << 4
    out.append(header)
    out += m.zid
    if m.sizes is not None:
        write_sizes(out, m.sizes)
    if m.ack:
        if m.cookie is None:
            raise EncodeError("cookie", "missing, ack asks for it")
        size = len(m.cookie)
        if 0 <= size < 128:
            out.append(size)
        else:
            write_z(out, size, 64, "cookie")
        out += m.cookie
    elif m.cookie is not None:
        raise EncodeError("cookie", "not allowed with this ack")
    last = -1
    if m.qos:
        last = len(out)
        out.append(0x81)
    if m.qos_link is not None:
        last = len(out)
        out.append(0xa1)
        if 0 <= m.qos_link < 128:
            out.append(m.qos_link)
        else:
            write_z(out, m.qos_link, 64, "qos_link")
    if m.shm is not None:
        last = len(out)
        out.append(0xc2)
        write_sized(out, m.shm, "shm")
    if m.auth is not None:
        last = len(out)
        out.append(0xc3)
        body = bytearray()
        write_auth(body, m.auth)
        write_sized(out, body, "auth")
    if m.multilink is not None:
        last = len(out)
        out.append(0xc4)
        write_sized(out, m.multilink, "multilink")
    if m.lowlatency:
        last = len(out)
        out.append(0x85)
    if m.compression:
        last = len(out)
        out.append(0x86)
    if m.patch is not None:
        last = len(out)
        out.append(0xa7)
        if 0 <= m.patch < 128:
            out.append(m.patch)
        else:
            write_z(out, m.patch, 64, "patch")
    if m.region_name is not None:
        last = len(out)
        out.append(0xc8)
        write_sized(out, m.region_name, "region_name")
    if m.unknown:
        last = write_extensions(out, m.unknown, last)
    if last >= 0:
        out[last] &= 0x7f


def write_open(out: bytearray, m: Open) -> None:
    header = 0x02
    if m.ack:
        header |= 0x20
    if m.seconds:
        header |= 0x40
    if m.qos or m.shm is not None or m.auth is not None or m.multilink_syn is not None or m.multilink_ack or m.lowlatency or m.compression or m.remote_bound is not None or m.unknown:
        header |= 0x80
    out.append(header)
    if 0 <= m.lease < 128:
        out.append(m.lease)
    else:
        write_z(out, m.lease, 64, "lease")
    if 0 <= m.initial_sn < 128:
        out.append(m.initial_sn)
    else:
        write_z(out, m.initial_sn, 32, "initial_sn")
    if not m.ack:
        if m.cookie is None:
            raise EncodeError("cookie", "missing, ack asks for it")
        size = len(m.cookie)
        if 0 <= size < 128:
            out.append(size)
        else:
            write_z(out, size, 64, "cookie")
        out += m.cookie
    elif m.cookie is not None:
        raise EncodeError("cookie", "not allowed with this ack")
    last = -1
    if m.qos:
        last = len(out)
        out.append(0x81)
    if m.shm is not None:
        last = len(out)
        out.append(0xc2)
        write_sized(out, m.shm, "shm")
    if m.auth is not None:
        last = len(out)
        out.append(0xc3)
        body = bytearray()
        write_auth(body, m.auth)
        write_sized(out, body, "auth")
    if m.multilink_syn is not None:
        last = len(out)
        out.append(0xc4)
        write_sized(out, m.multilink_syn, "multilink_syn")
    if m.multilink_ack:
        last = len(out)
        out.append(0x84)
    if m.lowlatency:
        last = len(out)
        out.append(0x85)
    if m.compression:
        last = len(out)
        out.append(0x86)
    if m.remote_bound is not None:
        last = len(out)
        out.append(0xa7)
        if 0 <= m.remote_bound < 128:
            out.append(m.remote_bound)
        else:
            write_z(out, m.remote_bound, 64, "remote_bound")
    if m.unknown:
        last = write_extensions(out, m.unknown, last)
    if last >= 0:
        out[last] &= 0x7f


def write_close(out: bytearray, m: Close) -> None:
    header = 0x03
    if m.session:
        header |= 0x20
    if m.unknown:
        header |= 0x80
    out.append(header)
    out.append(bits(m.reason, 8, "reason"))
    last = -1
    if m.unknown:
        last = write_extensions(out, m.unknown, last)
    if last >= 0:
        out[last] &= 0x7f


def write_keep_alive(out: bytearray, m: KeepAlive) -> None:
    header = 0x04
    if m.unknown:
        header |= 0x80
    out.append(header)
    last = -1
    if m.unknown:
        last = write_extensions(out, m.unknown, last)
    if last >= 0:
        out[last] &= 0x7f


def write_frame(out: bytearray, m: Frame) -> None:
    header = 0x05
    if m.reliable:
        header |= 0x20
    if m.qos is not None or m.unknown:
        header |= 0x80
    out.append(header)
    if 0 <= m.sn < 128:
        out.append(m.sn)
    else:
        write_z(out, m.sn, 32, "sn")
    last = -1
    if m.qos is not None:
        last = len(out)
        out.append(0xb1)
        if 0 <= m.qos < 128:
            out.append(m.qos)
        else:
            write_z(out, m.qos, 8, "qos")
    if m.unknown:
        last = write_extensions(out, m.unknown, last)
    if last >= 0:
        out[last] &= 0x7f
    for item in m.messages:
        write_network_message(out, item)


def write_fragment(out: bytearray, m: Fragment) -> None:
    header = 0x06
    if m.reliable:
        header |= 0x20
    if m.more:
        header |= 0x40
    if m.qos is not None or m.first or m.drop or m.unknown:
        header |= 0x80
    out.append(header)
    if 0 <= m.sn < 128:
        out.append(m.sn)
    else:
        write_z(out, m.sn, 32, "sn")
    last = -1
    if m.qos is not None:
        last = len(out)
        out.append(0xb1)
        if 0 <= m.qos < 128:
            out.append(m.qos)
        else:
            write_z(out, m.qos, 8, "qos")
    if m.first:
        last = len(out)
        out.append(0x82)
    if m.drop:
        last = len(out)
        out.append(0x83)
    if m.unknown:
        last = write_extensions(out, m.unknown, last)
    if last >= 0:
        out[last] &= 0x7f
    out += m.chunk


def write_join(out: bytearray, m: Join) -> None:
    header = 0x07
    if m.seconds:
        header |= 0x20
    if m.sizes is not None:
        header |= 0x40
    if m.qos is not None or m.shm is not None or m.patch is not None or m.unknown:
        header |= 0x80
    out.append(header)
    out.append(bits(m.version, 8, "version"))
    header = 0
    header |= bits(m.whatami, 2, "whatami")
    header |= bits(len(m.zid) - 1, 4, "zid") << 4
    out.append(header)
    out += m.zid
    if m.sizes is not None:
        write_sizes(out, m.sizes)
    if 0 <= m.lease < 128:
        out.append(m.lease)
    else:
        write_z(out, m.lease, 64, "lease")
    write_next_sn(out, m.next_sn)
    last = -1
    if m.qos is not None:
        last = len(out)
        out.append(0xd1)
        body = bytearray()
        write_priority_next_sn(body, m.qos)
        write_sized(out, body, "qos")
    if m.shm is not None:
        last = len(out)
        out.append(0xd2)
        write_sized(out, m.shm, "shm")
    if m.patch is not None:
        last = len(out)
        out.append(0xa7)
        if 0 <= m.patch < 128:
            out.append(m.patch)
        else:
            write_z(out, m.patch, 64, "patch")
    if m.unknown:
        last = write_extensions(out, m.unknown, last)
    if last >= 0:
        out[last] &= 0x7f


def write_next_sn(out: bytearray, m: NextSn) -> None:
    if 0 <= m.reliable < 128:
        out.append(m.reliable)
    else:
        write_z(out, m.reliable, 32, "reliable")
    if 0 <= m.best_effort < 128:
        out.append(m.best_effort)
    else:
        write_z(out, m.best_effort, 32, "best_effort")


def write_priority_next_sn(out: bytearray, m: PriorityNextSn) -> None:
    if not 8 <= len(m.priorities) <= 8:
        raise EncodeError("priorities", f"{len(m.priorities)} is not 8 to 8")
    for priorities_item in m.priorities:
        write_next_sn(out, priorities_item)


def write_transport_oam(out: bytearray, m: TransportOam) -> None:
    header = 0x00
    header |= bits(m.enc, 2, "enc") << 5
    if m.qos is not None or m.unknown:
        header |= 0x80
    out.append(header)
    if 0 <= m.id < 128:
        out.append(m.id)
    else:
        write_z(out, m.id, 16, "id")
    last = -1
    if m.qos is not None:
        last = len(out)
        out.append(0xb1)
        if 0 <= m.qos < 128:
            out.append(m.qos)
        else:
            write_z(out, m.qos, 8, "qos")
    if m.unknown:
        last = write_extensions(out, m.unknown, last)
    if last >= 0:
        out[last] &= 0x7f
    if m.enc == BodyForm.Z64Form:
        if m.body is None:
            raise EncodeError("body", "missing, enc asks for it")
        body_0 = cast("int", m.body)
        if 0 <= body_0 < 128:
            out.append(body_0)
        else:
            write_z(out, body_0, 64, "body")
    elif m.enc == BodyForm.ZBufForm:
        if m.body is None:
            raise EncodeError("body", "missing, enc asks for it")
        body_1 = cast("bytes", m.body)
        size = len(body_1)
        if 0 <= size < 128:
            out.append(size)
        else:
            write_z(out, size, 32, "body")
        out += body_1
    elif m.body is not None:
        raise EncodeError("body", "not allowed with this enc")


def write_push(out: bytearray, m: Push) -> None:
    header = 0x1d
    if m.qos is not None or m.timestamp is not None or m.node_id is not None or m.ts_stack is not None or m.unknown:
        header |= 0x80
    if m.wire_expr.sender:
        header |= 0x40
    if m.wire_expr.suffix is not None:
        header |= 0x20
    out.append(header)
    write_wire_expr(out, m.wire_expr)
    last = -1
    if m.qos is not None:
        last = len(out)
        out.append(0xa1)
        if 0 <= m.qos < 128:
            out.append(m.qos)
        else:
            write_z(out, m.qos, 8, "qos")
    if m.timestamp is not None:
        last = len(out)
        out.append(0xc2)
        body = bytearray()
        write_timestamp(body, m.timestamp)
        write_sized(out, body, "timestamp")
    if m.node_id is not None:
        last = len(out)
        out.append(0xb3)
        if 0 <= m.node_id < 128:
            out.append(m.node_id)
        else:
            write_z(out, m.node_id, 16, "node_id")
    if m.ts_stack is not None:
        last = len(out)
        out.append(0xc7)
        body = bytearray()
        write_ts_stack(body, m.ts_stack)
        write_sized(out, body, "ts_stack")
    if m.unknown:
        last = write_extensions(out, m.unknown, last)
    if last >= 0:
        out[last] &= 0x7f
    write_push_body(out, m.body)


def write_request(out: bytearray, m: Request) -> None:
    header = 0x1c
    if m.qos is not None or m.timestamp is not None or m.target is not None or m.budget is not None or m.timeout is not None or m.node_id is not None or m.ts_stack is not None or m.unknown:
        header |= 0x80
    if m.wire_expr.sender:
        header |= 0x40
    if m.wire_expr.suffix is not None:
        header |= 0x20
    out.append(header)
    if 0 <= m.id < 128:
        out.append(m.id)
    else:
        write_z(out, m.id, 32, "id")
    write_wire_expr(out, m.wire_expr)
    last = -1
    if m.qos is not None:
        last = len(out)
        out.append(0xa1)
        if 0 <= m.qos < 128:
            out.append(m.qos)
        else:
            write_z(out, m.qos, 8, "qos")
    if m.timestamp is not None:
        last = len(out)
        out.append(0xc2)
        body = bytearray()
        write_timestamp(body, m.timestamp)
        write_sized(out, body, "timestamp")
    if m.target is not None:
        last = len(out)
        out.append(0xb4)
        if 0 <= m.target < 128:
            out.append(m.target)
        else:
            write_z(out, m.target, 8, "target")
    if m.budget is not None:
        last = len(out)
        out.append(0xa5)
        if 0 <= m.budget < 128:
            out.append(m.budget)
        else:
            write_z(out, m.budget, 32, "budget")
    if m.timeout is not None:
        last = len(out)
        out.append(0xa6)
        if 0 <= m.timeout < 128:
            out.append(m.timeout)
        else:
            write_z(out, m.timeout, 64, "timeout")
    if m.node_id is not None:
        last = len(out)
        out.append(0xb3)
        if 0 <= m.node_id < 128:
            out.append(m.node_id)
        else:
            write_z(out, m.node_id, 16, "node_id")
    if m.ts_stack is not None:
        last = len(out)
        out.append(0xc7)
        body = bytearray()
        write_ts_stack(body, m.ts_stack)
        write_sized(out, body, "ts_stack")
    if m.unknown:
        last = write_extensions(out, m.unknown, last)
    if last >= 0:
        out[last] &= 0x7f
    write_request_body(out, m.body)


def write_response(out: bytearray, m: Response) -> None:
    header = 0x1b
    if m.qos is not None or m.timestamp is not None or m.responder is not None or m.ts_stack is not None or m.unknown:
        header |= 0x80
    if m.wire_expr.sender:
        header |= 0x40
    if m.wire_expr.suffix is not None:
        header |= 0x20
    out.append(header)
    if 0 <= m.id < 128:
        out.append(m.id)
    else:
        write_z(out, m.id, 32, "id")
    write_wire_expr(out, m.wire_expr)
    last = -1
    if m.qos is not None:
        last = len(out)
        out.append(0xa1)
        if 0 <= m.qos < 128:
            out.append(m.qos)
        else:
            write_z(out, m.qos, 8, "qos")
    if m.timestamp is not None:
        last = len(out)
        out.append(0xc2)
        body = bytearray()
        write_timestamp(body, m.timestamp)
        write_sized(out, body, "timestamp")
    if m.responder is not None:
        last = len(out)
        out.append(0xc3)
        body = bytearray()
        write_entity_id(body, m.responder)
        write_sized(out, body, "responder")
    if m.ts_stack is not None:
        last = len(out)
        out.append(0xc7)
        body = bytearray()
        write_ts_stack(body, m.ts_stack)
        write_sized(out, body, "ts_stack")
    if m.unknown:
        last = write_extensions(out, m.unknown, last)
    if last >= 0:
        out[last] &= 0x7f
    write_response_body(out, m.body)


def write_response_final(out: bytearray, m: ResponseFinal) -> None:
    header = 0x1a
    if m.qos is not None or m.timestamp is not None or m.unknown:
        header |= 0x80
    out.append(header)
    if 0 <= m.id < 128:
        out.append(m.id)
    else:
        write_z(out, m.id, 32, "id")
    last = -1
    if m.qos is not None:
        last = len(out)
        out.append(0xa1)
        if 0 <= m.qos < 128:
            out.append(m.qos)
        else:
            write_z(out, m.qos, 8, "qos")
    if m.timestamp is not None:
        last = len(out)
        out.append(0xc2)
        body = bytearray()
        write_timestamp(body, m.timestamp)
        write_sized(out, body, "timestamp")
    if m.unknown:
        last = write_extensions(out, m.unknown, last)
    if last >= 0:
        out[last] &= 0x7f


def write_oam(out: bytearray, m: Oam) -> None:
    header = 0x1f
    header |= bits(m.enc, 2, "enc") << 5
    if m.qos is not None or m.timestamp is not None or m.unknown:
        header |= 0x80
    out.append(header)
    if 0 <= m.id < 128:
        out.append(m.id)
    else:
        write_z(out, m.id, 16, "id")
    last = -1
    if m.qos is not None:
        last = len(out)
        out.append(0xa1)
        if 0 <= m.qos < 128:
            out.append(m.qos)
        else:
            write_z(out, m.qos, 8, "qos")
    if m.timestamp is not None:
        last = len(out)
        out.append(0xc2)
        body = bytearray()
        write_timestamp(body, m.timestamp)
        write_sized(out, body, "timestamp")
    if m.unknown:
        last = write_extensions(out, m.unknown, last)
    if last >= 0:
        out[last] &= 0x7f
    if m.enc == BodyForm.Z64Form:
        if m.body is None:
            raise EncodeError("body", "missing, enc asks for it")
        body_0 = cast("int", m.body)
        if 0 <= body_0 < 128:
            out.append(body_0)
        else:
            write_z(out, body_0, 64, "body")
    elif m.enc == BodyForm.ZBufForm:
        if m.body is None:
            raise EncodeError("body", "missing, enc asks for it")
        body_1 = cast("bytes", m.body)
        size = len(body_1)
        if 0 <= size < 128:
            out.append(size)
        else:
            write_z(out, size, 32, "body")
        out += body_1
    elif m.body is not None:
        raise EncodeError("body", "not allowed with this enc")


def write_entity_id(out: bytearray, m: EntityId) -> None:
    header = 0
    header |= bits(len(m.zid) - 1, 4, "zid") << 4
    out.append(header)
    out += m.zid
    if 0 <= m.eid < 128:
        out.append(m.eid)
    else:
        write_z(out, m.eid, 32, "eid")


def write_ts_stack(out: bytearray, m: TsStack) -> None:
    if not 1 <= m.conf <= 255:
        raise EncodeError("conf", f"{m.conf} is not 1 to 255")
    out.append(bits(m.conf, 8, "conf"))
    size = len(m.stack)
    if 0 <= size < 128:
        out.append(size)
    else:
        write_z(out, size, 8, "stack")
    for stack_item in m.stack:
        write_ts_entry(out, stack_item)


def write_ts_entry(out: bytearray, m: TsEntry) -> None:
    out.append(bits(m.flags, 8, "flags"))
    size = len(m.ts)
    if 0 <= size < 128:
        out.append(size)
    else:
        write_z(out, size, 64, "ts")
    out += m.ts


def write_link_states(out: bytearray, m: LinkStates) -> None:
    size = len(m.entries)
    if 0 <= size < 128:
        out.append(size)
    else:
        write_z(out, size, 64, "entries")
    for entries_item in m.entries:
        write_link_state(out, entries_item)


def write_link_state(out: bytearray, m: LinkState) -> None:
    header = m.spare << 5
    if m.gateway:
        header |= 0x10
    if m.zid is not None:
        header |= 0x01
    if m.whatami is not None:
        header |= 0x02
    if m.locators is not None:
        header |= 0x04
    if m.weights is not None:
        header |= 0x08
    write_z(out, header, 64, "spare")
    if 0 <= m.psid < 128:
        out.append(m.psid)
    else:
        write_z(out, m.psid, 64, "psid")
    if 0 <= m.sn < 128:
        out.append(m.sn)
    else:
        write_z(out, m.sn, 64, "sn")
    if m.zid is not None:
        if not 1 <= len(m.zid) <= 16:
            raise EncodeError("zid", f"{len(m.zid)} is not 1 to 16")
        size = len(m.zid)
        if 0 <= size < 128:
            out.append(size)
        else:
            write_z(out, size, 8, "zid")
        out += m.zid
    if m.whatami is not None:
        out.append(bits(m.whatami, 8, "whatami"))
    if m.locators is not None:
        size = len(m.locators)
        if 0 <= size < 128:
            out.append(size)
        else:
            write_z(out, size, 64, "locators")
        for locators_item in m.locators:
            locators_utf8 = locators_item.encode("utf-8")
            size = len(locators_utf8)
            if 0 <= size < 128:
                out.append(size)
            else:
                write_z(out, size, 8, "locators")
            out += locators_utf8
    size = len(m.links)
    if 0 <= size < 128:
        out.append(size)
    else:
        write_z(out, size, 64, "links")
    for links_item in m.links:
        if 0 <= links_item < 128:
            out.append(links_item)
        else:
            write_z(out, links_item, 64, "links")
    if m.weights is not None:
        if len(m.weights) != len(m.links):
            raise EncodeError("weights", "as many as links are needed")
        for weights_item in m.weights:
            if 0 <= weights_item < 128:
                out.append(weights_item)
            else:
                write_z(out, weights_item, 16, "weights")


def write_declare(out: bytearray, m: Declare) -> None:
    header = 0x1e
    if m.interest_id is not None:
        header |= 0x20
    if m.qos is not None or m.timestamp is not None or m.node_id is not None or m.unknown:
        header |= 0x80
    out.append(header)
    if m.interest_id is not None:
        if 0 <= m.interest_id < 128:
            out.append(m.interest_id)
        else:
            write_z(out, m.interest_id, 32, "interest_id")
    last = -1
    if m.qos is not None:
        last = len(out)
        out.append(0xa1)
        if 0 <= m.qos < 128:
            out.append(m.qos)
        else:
            write_z(out, m.qos, 8, "qos")
    if m.timestamp is not None:
        last = len(out)
        out.append(0xc2)
        body = bytearray()
        write_timestamp(body, m.timestamp)
        write_sized(out, body, "timestamp")
    if m.node_id is not None:
        last = len(out)
        out.append(0xb3)
        if 0 <= m.node_id < 128:
            out.append(m.node_id)
        else:
            write_z(out, m.node_id, 16, "node_id")
    if m.unknown:
        last = write_extensions(out, m.unknown, last)
    if last >= 0:
        out[last] &= 0x7f
    write_declaration(out, m.body)


def write_declare_key_expr(out: bytearray, m: DeclareKeyExpr) -> None:
    header = 0x00
    if m.unknown:
        header |= 0x80
    if m.suffix is not None:
        header |= 0x20
    out.append(header)
    if 0 <= m.id < 128:
        out.append(m.id)
    else:
        write_z(out, m.id, 16, "id")
    if 0 <= m.scope < 128:
        out.append(m.scope)
    else:
        write_z(out, m.scope, 16, "scope")
    if m.suffix is not None:
        suffix_utf8 = m.suffix.encode("utf-8")
        size = len(suffix_utf8)
        if 0 <= size < 128:
            out.append(size)
        else:
            write_z(out, size, 16, "suffix")
        out += suffix_utf8
    last = -1
    if m.unknown:
        last = write_extensions(out, m.unknown, last)
    if last >= 0:
        out[last] &= 0x7f


def write_undeclare_key_expr(out: bytearray, m: UndeclareKeyExpr) -> None:
    header = 0x01
    if m.unknown:
        header |= 0x80
    out.append(header)
    if 0 <= m.id < 128:
        out.append(m.id)
    else:
        write_z(out, m.id, 16, "id")
    last = -1
    if m.unknown:
        last = write_extensions(out, m.unknown, last)
    if last >= 0:
        out[last] &= 0x7f


def write_declare_subscriber(out: bytearray, m: DeclareSubscriber) -> None:
    header = 0x02
    if m.unknown:
        header |= 0x80
    if m.wire_expr.sender:
        header |= 0x40
    if m.wire_expr.suffix is not None:
        header |= 0x20
    out.append(header)
    if 0 <= m.id < 128:
        out.append(m.id)
    else:
        write_z(out, m.id, 32, "id")
    write_wire_expr(out, m.wire_expr)
    last = -1
    if m.unknown:
        last = write_extensions(out, m.unknown, last)
    if last >= 0:
        out[last] &= 0x7f


def write_declare_token(out: bytearray, m: DeclareToken) -> None:
    header = 0x06
    if m.unknown:
        header |= 0x80
    if m.wire_expr.sender:
        header |= 0x40
    if m.wire_expr.suffix is not None:
        header |= 0x20
    out.append(header)
    if 0 <= m.id < 128:
        out.append(m.id)
    else:
        write_z(out, m.id, 32, "id")
    write_wire_expr(out, m.wire_expr)
    last = -1
    if m.unknown:
        last = write_extensions(out, m.unknown, last)
    if last >= 0:
        out[last] &= 0x7f


def write_declare_queryable(out: bytearray, m: DeclareQueryable) -> None:
    header = 0x04
    if m.info is not None or m.unknown:
        header |= 0x80
    if m.wire_expr.sender:
        header |= 0x40
    if m.wire_expr.suffix is not None:
        header |= 0x20
    out.append(header)
    if 0 <= m.id < 128:
        out.append(m.id)
    else:
        write_z(out, m.id, 32, "id")
    write_wire_expr(out, m.wire_expr)
    last = -1
    if m.info is not None:
        last = len(out)
        out.append(0xa1)
        if 0 <= m.info < 128:
            out.append(m.info)
        else:
            write_z(out, m.info, 64, "info")
    if m.unknown:
        last = write_extensions(out, m.unknown, last)
    if last >= 0:
        out[last] &= 0x7f


def write_undeclare_subscriber(out: bytearray, m: UndeclareSubscriber) -> None:
    header = 0x03
    if m.wire_expr is not None or m.unknown:
        header |= 0x80
    out.append(header)
    if 0 <= m.id < 128:
        out.append(m.id)
    else:
        write_z(out, m.id, 32, "id")
    last = -1
    if m.wire_expr is not None:
        last = len(out)
        out.append(0xdf)
        body = bytearray()
        write_loose_wire_expr(body, m.wire_expr)
        write_sized(out, body, "wire_expr")
    if m.unknown:
        last = write_extensions(out, m.unknown, last)
    if last >= 0:
        out[last] &= 0x7f


def write_undeclare_queryable(out: bytearray, m: UndeclareQueryable) -> None:
    header = 0x05
    if m.wire_expr is not None or m.unknown:
        header |= 0x80
    out.append(header)
    if 0 <= m.id < 128:
        out.append(m.id)
    else:
        write_z(out, m.id, 32, "id")
    last = -1
    if m.wire_expr is not None:
        last = len(out)
        out.append(0xdf)
        body = bytearray()
        write_loose_wire_expr(body, m.wire_expr)
        write_sized(out, body, "wire_expr")
    if m.unknown:
        last = write_extensions(out, m.unknown, last)
    if last >= 0:
        out[last] &= 0x7f


def write_undeclare_token(out: bytearray, m: UndeclareToken) -> None:
    header = 0x07
    if m.wire_expr is not None or m.unknown:
        header |= 0x80
    out.append(header)
    if 0 <= m.id < 128:
        out.append(m.id)
    else:
        write_z(out, m.id, 32, "id")
    last = -1
    if m.wire_expr is not None:
        last = len(out)
        out.append(0xdf)
        body = bytearray()
        write_loose_wire_expr(body, m.wire_expr)
        write_sized(out, body, "wire_expr")
    if m.unknown:
        last = write_extensions(out, m.unknown, last)
    if last >= 0:
        out[last] &= 0x7f


def write_loose_wire_expr(out: bytearray, m: LooseWireExpr) -> None:
    header = 0
    if m.sender:
        header |= 0x02
    if m.suffix is not None:
        header |= 0x01
    out.append(header)
    if 0 <= m.scope < 128:
        out.append(m.scope)
    else:
        write_z(out, m.scope, 16, "scope")
    if m.suffix is not None:
        suffix_utf8 = m.suffix.encode("utf-8")
        out += suffix_utf8


def write_declare_final(out: bytearray, m: DeclareFinal) -> None:
    header = 0x1a
    if m.unknown:
        header |= 0x80
    out.append(header)
    last = -1
    if m.unknown:
        last = write_extensions(out, m.unknown, last)
    if last >= 0:
        out[last] &= 0x7f


def write_interest(out: bytearray, m: Interest) -> None:
    header = 0x19
    header |= bits(m.mode, 2, "mode") << 5
    if m.qos is not None or m.timestamp is not None or m.node_id is not None or m.unknown:
        header |= 0x80
    out.append(header)
    if 0 <= m.id < 128:
        out.append(m.id)
    else:
        write_z(out, m.id, 32, "id")
    if m.mode == InterestMode.current or m.mode == InterestMode.future or m.mode == InterestMode.current_future:
        if m.options is None:
            raise EncodeError("options", "missing, mode asks for it")
        write_interest_options(out, m.options)
    elif m.options is not None:
        raise EncodeError("options", "not allowed with this mode")
    last = -1
    if m.qos is not None:
        last = len(out)
        out.append(0xa1)
        if 0 <= m.qos < 128:
            out.append(m.qos)
        else:
            write_z(out, m.qos, 8, "qos")
    if m.timestamp is not None:
        last = len(out)
        out.append(0xc2)
        body = bytearray()
        write_timestamp(body, m.timestamp)
        write_sized(out, body, "timestamp")
    if m.node_id is not None:
        last = len(out)
        out.append(0xb3)
        if 0 <= m.node_id < 128:
            out.append(m.node_id)
        else:
            write_z(out, m.node_id, 16, "node_id")
    if m.unknown:
        last = write_extensions(out, m.unknown, last)
    if last >= 0:
        out[last] &= 0x7f


def write_interest_options(out: bytearray, m: InterestOptions) -> None:
    header = bits(m.kinds, 4, "kinds")
    if m.aggregate:
        header |= 0x80
    if m.wire_expr is not None:
        header |= 0x10
    if m.wire_expr is not None and m.wire_expr.sender:
        header |= 0x40
    if m.wire_expr is not None and m.wire_expr.suffix is not None:
        header |= 0x20
    out.append(header)
    if m.wire_expr is not None:
        write_wire_expr(out, m.wire_expr)


def write_put(out: bytearray, m: Put) -> None:
    header = 0x01
    if m.source_info is not None or m.shm or m.attachment is not None or m.unknown:
        header |= 0x80
    if m.timestamp is not None:
        header |= 0x20
    if m.encoding is not None:
        header |= 0x40
    out.append(header)
    if m.timestamp is not None:
        write_timestamp(out, m.timestamp)
    if m.encoding is not None:
        write_encoding(out, m.encoding)
    last = -1
    if m.source_info is not None:
        last = len(out)
        out.append(0xc1)
        body = bytearray()
        write_source_info(body, m.source_info)
        write_sized(out, body, "source_info")
    if m.shm:
        last = len(out)
        out.append(0x92)
    if m.attachment is not None:
        last = len(out)
        out.append(0xc3)
        write_sized(out, m.attachment, "attachment")
    if m.unknown:
        last = write_extensions(out, m.unknown, last)
    if last >= 0:
        out[last] &= 0x7f
    size = len(m.payload)
    if 0 <= size < 128:
        out.append(size)
    else:
        write_z(out, size, 32, "payload")
    out += m.payload


def write_del(out: bytearray, m: Del) -> None:
    header = 0x02
    if m.source_info is not None or m.attachment is not None or m.unknown:
        header |= 0x80
    if m.timestamp is not None:
        header |= 0x20
    out.append(header)
    if m.timestamp is not None:
        write_timestamp(out, m.timestamp)
    last = -1
    if m.source_info is not None:
        last = len(out)
        out.append(0xc1)
        body = bytearray()
        write_source_info(body, m.source_info)
        write_sized(out, body, "source_info")
    if m.attachment is not None:
        last = len(out)
        out.append(0xc2)
        write_sized(out, m.attachment, "attachment")
    if m.unknown:
        last = write_extensions(out, m.unknown, last)
    if last >= 0:
        out[last] &= 0x7f


def write_query(out: bytearray, m: Query) -> None:
    header = 0x03
    if m.source_info is not None or m.value is not None or m.attachment is not None or m.unknown:
        header |= 0x80
    if m.consolidation is not None:
        header |= 0x20
    if m.parameters is not None:
        header |= 0x40
    out.append(header)
    if m.consolidation is not None:
        if 0 <= m.consolidation < 128:
            out.append(m.consolidation)
        else:
            write_z(out, m.consolidation, 8, "consolidation")
    if m.parameters is not None:
        parameters_utf8 = m.parameters.encode("utf-8")
        size = len(parameters_utf8)
        if 0 <= size < 128:
            out.append(size)
        else:
            write_z(out, size, 16, "parameters")
        out += parameters_utf8
    last = -1
    if m.source_info is not None:
        last = len(out)
        out.append(0xc1)
        body = bytearray()
        write_source_info(body, m.source_info)
        write_sized(out, body, "source_info")
    if m.value is not None:
        last = len(out)
        out.append(0xc3)
        body = bytearray()
        write_value(body, m.value)
        write_sized(out, body, "value")
    if m.attachment is not None:
        last = len(out)
        out.append(0xc5)
        write_sized(out, m.attachment, "attachment")
    if m.unknown:
        last = write_extensions(out, m.unknown, last)
    if last >= 0:
        out[last] &= 0x7f


def write_reply(out: bytearray, m: Reply) -> None:
    header = 0x04
    if m.unknown:
        header |= 0x80
    if m.consolidation is not None:
        header |= 0x20
    out.append(header)
    if m.consolidation is not None:
        if 0 <= m.consolidation < 128:
            out.append(m.consolidation)
        else:
            write_z(out, m.consolidation, 8, "consolidation")
    last = -1
    if m.unknown:
        last = write_extensions(out, m.unknown, last)
    if last >= 0:
        out[last] &= 0x7f
    write_push_body(out, m.body)


def write_err(out: bytearray, m: Err) -> None:
    header = 0x05
    if m.source_info is not None or m.shm or m.unknown:
        header |= 0x80
    if m.encoding is not None:
        header |= 0x40
    out.append(header)
    if m.encoding is not None:
        write_encoding(out, m.encoding)
    last = -1
    if m.source_info is not None:
        last = len(out)
        out.append(0xc1)
        body = bytearray()
        write_source_info(body, m.source_info)
        write_sized(out, body, "source_info")
    if m.shm:
        last = len(out)
        out.append(0x92)
    if m.unknown:
        last = write_extensions(out, m.unknown, last)
    if last >= 0:
        out[last] &= 0x7f
    size = len(m.payload)
    if 0 <= size < 128:
        out.append(size)
    else:
        write_z(out, size, 32, "payload")
    out += m.payload


def write_source_info(out: bytearray, m: SourceInfo) -> None:
    header = 0
    header |= bits(len(m.zid) - 1, 4, "zid") << 4
    out.append(header)
    out += m.zid
    if 0 <= m.eid < 128:
        out.append(m.eid)
    else:
        write_z(out, m.eid, 32, "eid")
    if 0 <= m.sn < 128:
        out.append(m.sn)
    else:
        write_z(out, m.sn, 32, "sn")


def write_value(out: bytearray, m: Value) -> None:
    write_encoding(out, m.encoding)
    out += m.payload


_WRITE_SCOUTING_MESSAGE: Final[dict[type, Callable[[bytearray, Any], None]]] = {
    Scout: write_scout,
    Hello: write_hello,
}


def write_scouting_message(out: bytearray, m: ScoutingMessage) -> None:
    write = _WRITE_SCOUTING_MESSAGE.get(type(m))
    if write is None:
        raise EncodeError("scouting_message", f"{type(m).__name__} is none")
    write(out, m)


_WRITE_TRANSPORT_MESSAGE: Final[dict[type, Callable[[bytearray, Any], None]]] = {
    TransportOam: write_transport_oam,
    Init: write_init,
    Open: write_open,
    Close: write_close,
    KeepAlive: write_keep_alive,
    Frame: write_frame,
    Fragment: write_fragment,
    Join: write_join,
}


def write_transport_message(out: bytearray, m: TransportMessage) -> None:
    write = _WRITE_TRANSPORT_MESSAGE.get(type(m))
    if write is None:
        raise EncodeError("transport_message", f"{type(m).__name__} is none")
    write(out, m)


_WRITE_NETWORK_MESSAGE: Final[dict[type, Callable[[bytearray, Any], None]]] = {
    Interest: write_interest,
    ResponseFinal: write_response_final,
    Response: write_response,
    Request: write_request,
    Push: write_push,
    Declare: write_declare,
    Oam: write_oam,
}


def write_network_message(out: bytearray, m: NetworkMessage) -> None:
    write = _WRITE_NETWORK_MESSAGE.get(type(m))
    if write is None:
        raise EncodeError("network_message", f"{type(m).__name__} is none")
    write(out, m)


_WRITE_DECLARATION: Final[dict[type, Callable[[bytearray, Any], None]]] = {
    DeclareKeyExpr: write_declare_key_expr,
    UndeclareKeyExpr: write_undeclare_key_expr,
    DeclareSubscriber: write_declare_subscriber,
    UndeclareSubscriber: write_undeclare_subscriber,
    DeclareQueryable: write_declare_queryable,
    UndeclareQueryable: write_undeclare_queryable,
    DeclareToken: write_declare_token,
    UndeclareToken: write_undeclare_token,
    DeclareFinal: write_declare_final,
}


def write_declaration(out: bytearray, m: Declaration) -> None:
    write = _WRITE_DECLARATION.get(type(m))
    if write is None:
        raise EncodeError("declaration", f"{type(m).__name__} is none")
    write(out, m)


_WRITE_PUSH_BODY: Final[dict[type, Callable[[bytearray, Any], None]]] = {
    Put: write_put,
    Del: write_del,
}


def write_push_body(out: bytearray, m: PushBody) -> None:
    write = _WRITE_PUSH_BODY.get(type(m))
    if write is None:
        raise EncodeError("push_body", f"{type(m).__name__} is none")
    write(out, m)


_WRITE_REQUEST_BODY: Final[dict[type, Callable[[bytearray, Any], None]]] = {
    Query: write_query,
}


def write_request_body(out: bytearray, m: RequestBody) -> None:
    write = _WRITE_REQUEST_BODY.get(type(m))
    if write is None:
        raise EncodeError("request_body", f"{type(m).__name__} is none")
    write(out, m)


_WRITE_RESPONSE_BODY: Final[dict[type, Callable[[bytearray, Any], None]]] = {
    Reply: write_reply,
    Err: write_err,
}


def write_response_body(out: bytearray, m: ResponseBody) -> None:
    write = _WRITE_RESPONSE_BODY.get(type(m))
    if write is None:
        raise EncodeError("response_body", f"{type(m).__name__} is none")
    write(out, m)
