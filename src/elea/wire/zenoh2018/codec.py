"""Bytes of zenoh2018 to values and back. Generated from zenoh2018.zn, see messages.py."""

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
from elea.wire.markers import read_marker, write_marker
from elea.wire.primitives import bits, long_nat, write_nat
from elea.wire.zenoh2018.messages import (
    Accept,
    AckNack,
    BatchedData,
    BatchedDataPayload,
    BindingDecl,
    Close,
    CommitDecl,
    Conduit,
    Declaration,
    Declare,
    ForgetPublisherDecl,
    ForgetResourceDecl,
    ForgetSelectionDecl,
    ForgetSubscriberDecl,
    Frag,
    Hello,
    KeepAlive,
    Message,
    Migrate,
    Open,
    PingPong,
    Property,
    PublisherDecl,
    Pull,
    RSpace,
    ResourceDecl,
    ResultDecl,
    Scout,
    SelectionDecl,
    StreamData,
    SubscriberDecl,
    SubscriberDeclParams,
    SubscriptionModeId,
    Synch,
    WriteData,
)

DIALECT: Final = "zenoh2018"
new: Final = tuple.__new__
_SUBSCRIPTION_MODE_ID: Final = {member.value: member for member in SubscriptionModeId}


def read_property(buf: bytes, at: int) -> tuple[Property, int]:
    id_ = buf[at]
    at += 1
    if id_ > 127:
        id_, at = long_nat(buf, at, id_, DIALECT)
    value_size = buf[at]
    at += 1
    if value_size > 127:
        value_size, at = long_nat(buf, at, value_size, DIALECT)
    value_end = at + value_size
    if value_end > len(buf):
        raise Truncated(DIALECT, len(buf), value_size, len(buf) - at)
    value = buf[at:value_end]
    at = value_end
    return new(Property, (id_, value)), at


def read_scout(buf: bytes, at: int, header: int) -> tuple[Scout, int]:
    mask = buf[at]
    at += 1
    if mask > 127:
        mask, at = long_nat(buf, at, mask, DIALECT)
    properties: tuple[Property, ...] | None = None
    if header & 0x20:
        properties_size = buf[at]
        at += 1
        if properties_size > 127:
            properties_size, at = long_nat(buf, at, properties_size, DIALECT)
        if properties_size > len(buf) - at:
            raise Truncated(DIALECT, len(buf), properties_size, len(buf) - at)
        properties_list: list[Property] = []
        for _ in range(properties_size):
            properties_item, at = read_property(buf, at)
            properties_list.append(properties_item)
        properties = tuple(properties_list)
    return new(Scout, (mask, properties)), at


def read_hello(buf: bytes, at: int, header: int) -> tuple[Hello, int]:
    mask = buf[at]
    at += 1
    if mask > 127:
        mask, at = long_nat(buf, at, mask, DIALECT)
    locators_size = buf[at]
    at += 1
    if locators_size > 127:
        locators_size, at = long_nat(buf, at, locators_size, DIALECT)
    if locators_size > len(buf) - at:
        raise Truncated(DIALECT, len(buf), locators_size, len(buf) - at)
    locators_list: list[bytes] = []
    for _ in range(locators_size):
        locators_item_size = buf[at]
        at += 1
        if locators_item_size > 127:
            locators_item_size, at = long_nat(buf, at, locators_item_size, DIALECT)
        locators_item_end = at + locators_item_size
        if locators_item_end > len(buf):
            raise Truncated(DIALECT, len(buf), locators_item_size, len(buf) - at)
        locators_item = buf[at:locators_item_end]
        at = locators_item_end
        locators_list.append(locators_item)
    locators = tuple(locators_list)
    properties: tuple[Property, ...] | None = None
    if header & 0x20:
        properties_size = buf[at]
        at += 1
        if properties_size > 127:
            properties_size, at = long_nat(buf, at, properties_size, DIALECT)
        if properties_size > len(buf) - at:
            raise Truncated(DIALECT, len(buf), properties_size, len(buf) - at)
        properties_list: list[Property] = []
        for _ in range(properties_size):
            properties_item, at = read_property(buf, at)
            properties_list.append(properties_item)
        properties = tuple(properties_list)
    return new(Hello, (mask, locators, properties)), at


def read_open(buf: bytes, at: int, header: int) -> tuple[Open, int]:
    version = buf[at]
    at += 1
    pid_size = buf[at]
    at += 1
    if pid_size > 127:
        pid_size, at = long_nat(buf, at, pid_size, DIALECT)
    if pid_size < 1:
        raise ConstraintViolated(DIALECT, at - 1, f"length of pid is {pid_size}, not at least 1")
    pid_end = at + pid_size
    if pid_end > len(buf):
        raise Truncated(DIALECT, len(buf), pid_size, len(buf) - at)
    pid = buf[at:pid_end]
    at = pid_end
    lease = buf[at]
    at += 1
    if lease > 127:
        lease, at = long_nat(buf, at, lease, DIALECT)
    locators_size = buf[at]
    at += 1
    if locators_size > 127:
        locators_size, at = long_nat(buf, at, locators_size, DIALECT)
    if locators_size > len(buf) - at:
        raise Truncated(DIALECT, len(buf), locators_size, len(buf) - at)
    locators_list: list[bytes] = []
    for _ in range(locators_size):
        locators_item_size = buf[at]
        at += 1
        if locators_item_size > 127:
            locators_item_size, at = long_nat(buf, at, locators_item_size, DIALECT)
        locators_item_end = at + locators_item_size
        if locators_item_end > len(buf):
            raise Truncated(DIALECT, len(buf), locators_item_size, len(buf) - at)
        locators_item = buf[at:locators_item_end]
        at = locators_item_end
        locators_list.append(locators_item)
    locators = tuple(locators_list)
    properties: tuple[Property, ...] | None = None
    if header & 0x20:
        properties_size = buf[at]
        at += 1
        if properties_size > 127:
            properties_size, at = long_nat(buf, at, properties_size, DIALECT)
        if properties_size > len(buf) - at:
            raise Truncated(DIALECT, len(buf), properties_size, len(buf) - at)
        properties_list: list[Property] = []
        for _ in range(properties_size):
            properties_item, at = read_property(buf, at)
            properties_list.append(properties_item)
        properties = tuple(properties_list)
    return new(Open, (version, pid, lease, locators, properties)), at


def read_accept(buf: bytes, at: int, header: int) -> tuple[Accept, int]:
    open_pid_size = buf[at]
    at += 1
    if open_pid_size > 127:
        open_pid_size, at = long_nat(buf, at, open_pid_size, DIALECT)
    if open_pid_size < 1:
        raise ConstraintViolated(DIALECT, at - 1, f"length of openPid is {open_pid_size}, not at least 1")
    open_pid_end = at + open_pid_size
    if open_pid_end > len(buf):
        raise Truncated(DIALECT, len(buf), open_pid_size, len(buf) - at)
    open_pid = buf[at:open_pid_end]
    at = open_pid_end
    accept_pid_size = buf[at]
    at += 1
    if accept_pid_size > 127:
        accept_pid_size, at = long_nat(buf, at, accept_pid_size, DIALECT)
    if accept_pid_size < 1:
        raise ConstraintViolated(DIALECT, at - 1, f"length of acceptPid is {accept_pid_size}, not at least 1")
    accept_pid_end = at + accept_pid_size
    if accept_pid_end > len(buf):
        raise Truncated(DIALECT, len(buf), accept_pid_size, len(buf) - at)
    accept_pid = buf[at:accept_pid_end]
    at = accept_pid_end
    lease = buf[at]
    at += 1
    if lease > 127:
        lease, at = long_nat(buf, at, lease, DIALECT)
    properties: tuple[Property, ...] | None = None
    if header & 0x20:
        properties_size = buf[at]
        at += 1
        if properties_size > 127:
            properties_size, at = long_nat(buf, at, properties_size, DIALECT)
        if properties_size > len(buf) - at:
            raise Truncated(DIALECT, len(buf), properties_size, len(buf) - at)
        properties_list: list[Property] = []
        for _ in range(properties_size):
            properties_item, at = read_property(buf, at)
            properties_list.append(properties_item)
        properties = tuple(properties_list)
    return new(Accept, (open_pid, accept_pid, lease, properties)), at


def read_close(buf: bytes, at: int, header: int) -> tuple[Close, int]:
    pid_size = buf[at]
    at += 1
    if pid_size > 127:
        pid_size, at = long_nat(buf, at, pid_size, DIALECT)
    if pid_size < 1:
        raise ConstraintViolated(DIALECT, at - 1, f"length of pid is {pid_size}, not at least 1")
    pid_end = at + pid_size
    if pid_end > len(buf):
        raise Truncated(DIALECT, len(buf), pid_size, len(buf) - at)
    pid = buf[at:pid_end]
    at = pid_end
    reason = buf[at]
    at += 1
    return new(Close, (pid, reason)), at


def read_keep_alive(buf: bytes, at: int, header: int) -> tuple[KeepAlive, int]:
    pid_size = buf[at]
    at += 1
    if pid_size > 127:
        pid_size, at = long_nat(buf, at, pid_size, DIALECT)
    if pid_size < 1:
        raise ConstraintViolated(DIALECT, at - 1, f"length of pid is {pid_size}, not at least 1")
    pid_end = at + pid_size
    if pid_end > len(buf):
        raise Truncated(DIALECT, len(buf), pid_size, len(buf) - at)
    pid = buf[at:pid_end]
    at = pid_end
    return new(KeepAlive, (pid,)), at


def read_declare(buf: bytes, at: int, header: int) -> tuple[Declare, int]:
    sync = header & 0x20 != 0
    committed = header & 0x40 != 0
    sn = buf[at]
    at += 1
    if sn > 127:
        sn, at = long_nat(buf, at, sn, DIALECT)
    declarations_size = buf[at]
    at += 1
    if declarations_size > 127:
        declarations_size, at = long_nat(buf, at, declarations_size, DIALECT)
    if declarations_size > len(buf) - at:
        raise Truncated(DIALECT, len(buf), declarations_size, len(buf) - at)
    declarations_list: list[Declaration] = []
    for _ in range(declarations_size):
        declarations_item, at = read_declaration(buf, at)
        declarations_list.append(declarations_item)
    declarations = tuple(declarations_list)
    return new(Declare, (sn, declarations, sync, committed)), at


def read_resource_decl(buf: bytes, at: int, header: int) -> tuple[ResourceDecl, int]:
    rid = buf[at]
    at += 1
    if rid > 127:
        rid, at = long_nat(buf, at, rid, DIALECT)
    resource_size = buf[at]
    at += 1
    if resource_size > 127:
        resource_size, at = long_nat(buf, at, resource_size, DIALECT)
    resource_end = at + resource_size
    if resource_end > len(buf):
        raise Truncated(DIALECT, len(buf), resource_size, len(buf) - at)
    resource = buf[at:resource_end]
    at = resource_end
    properties: tuple[Property, ...] | None = None
    if header & 0x20:
        properties_size = buf[at]
        at += 1
        if properties_size > 127:
            properties_size, at = long_nat(buf, at, properties_size, DIALECT)
        if properties_size > len(buf) - at:
            raise Truncated(DIALECT, len(buf), properties_size, len(buf) - at)
        properties_list: list[Property] = []
        for _ in range(properties_size):
            properties_item, at = read_property(buf, at)
            properties_list.append(properties_item)
        properties = tuple(properties_list)
    return new(ResourceDecl, (rid, resource, properties)), at


def read_publisher_decl(buf: bytes, at: int, header: int) -> tuple[PublisherDecl, int]:
    id_ = buf[at]
    at += 1
    if id_ > 127:
        id_, at = long_nat(buf, at, id_, DIALECT)
    properties: tuple[Property, ...] | None = None
    if header & 0x20:
        properties_size = buf[at]
        at += 1
        if properties_size > 127:
            properties_size, at = long_nat(buf, at, properties_size, DIALECT)
        if properties_size > len(buf) - at:
            raise Truncated(DIALECT, len(buf), properties_size, len(buf) - at)
        properties_list: list[Property] = []
        for _ in range(properties_size):
            properties_item, at = read_property(buf, at)
            properties_list.append(properties_item)
        properties = tuple(properties_list)
    return new(PublisherDecl, (id_, properties)), at


def read_subscriber_decl_params(buf: bytes, at: int) -> tuple[SubscriberDeclParams, int]:
    temporal_origin = buf[at]
    at += 1
    if temporal_origin > 127:
        temporal_origin, at = long_nat(buf, at, temporal_origin, DIALECT)
    period = buf[at]
    at += 1
    if period > 127:
        period, at = long_nat(buf, at, period, DIALECT)
    duration = buf[at]
    at += 1
    if duration > 127:
        duration, at = long_nat(buf, at, duration, DIALECT)
    return new(SubscriberDeclParams, (temporal_origin, period, duration)), at


def read_subscriber_decl(buf: bytes, at: int, header: int) -> tuple[SubscriberDecl, int]:
    id_ = buf[at]
    at += 1
    if id_ > 127:
        id_, at = long_nat(buf, at, id_, DIALECT)
    mode_code = buf[at]
    at += 1
    if mode_code > 127:
        mode_code, at = long_nat(buf, at, mode_code, DIALECT)
    mode = _SUBSCRIPTION_MODE_ID.get(mode_code)
    if mode is None:
        raise BadEnum(DIALECT, at - 1, f"{mode_code} is no SubscriptionModeId")
    params: SubscriberDeclParams | None = None
    if mode_code == 3 or mode_code == 4:
        params, at = read_subscriber_decl_params(buf, at)
    properties: tuple[Property, ...] | None = None
    if header & 0x20:
        properties_size = buf[at]
        at += 1
        if properties_size > 127:
            properties_size, at = long_nat(buf, at, properties_size, DIALECT)
        if properties_size > len(buf) - at:
            raise Truncated(DIALECT, len(buf), properties_size, len(buf) - at)
        properties_list: list[Property] = []
        for _ in range(properties_size):
            properties_item, at = read_property(buf, at)
            properties_list.append(properties_item)
        properties = tuple(properties_list)
    return new(SubscriberDecl, (id_, mode, params, properties)), at


def read_selection_decl(buf: bytes, at: int, header: int) -> tuple[SelectionDecl, int]:
    global_ = header & 0x80 != 0
    sid = buf[at]
    at += 1
    if sid > 127:
        sid, at = long_nat(buf, at, sid, DIALECT)
    query_size = buf[at]
    at += 1
    if query_size > 127:
        query_size, at = long_nat(buf, at, query_size, DIALECT)
    query_end = at + query_size
    if query_end > len(buf):
        raise Truncated(DIALECT, len(buf), query_size, len(buf) - at)
    query = buf[at:query_end]
    at = query_end
    properties: tuple[Property, ...] | None = None
    if header & 0x20:
        properties_size = buf[at]
        at += 1
        if properties_size > 127:
            properties_size, at = long_nat(buf, at, properties_size, DIALECT)
        if properties_size > len(buf) - at:
            raise Truncated(DIALECT, len(buf), properties_size, len(buf) - at)
        properties_list: list[Property] = []
        for _ in range(properties_size):
            properties_item, at = read_property(buf, at)
            properties_list.append(properties_item)
        properties = tuple(properties_list)
    return new(SelectionDecl, (sid, query, global_, properties)), at


def read_binding_decl(buf: bytes, at: int, header: int) -> tuple[BindingDecl, int]:
    global_ = header & 0x80 != 0
    old_id = buf[at]
    at += 1
    if old_id > 127:
        old_id, at = long_nat(buf, at, old_id, DIALECT)
    new_id = buf[at]
    at += 1
    if new_id > 127:
        new_id, at = long_nat(buf, at, new_id, DIALECT)
    return new(BindingDecl, (old_id, new_id, global_)), at


def read_commit_decl(buf: bytes, at: int, header: int) -> tuple[CommitDecl, int]:
    commit_id = buf[at]
    at += 1
    return new(CommitDecl, (commit_id,)), at


def read_result_decl(buf: bytes, at: int, header: int) -> tuple[ResultDecl, int]:
    commit_id = buf[at]
    at += 1
    status = buf[at]
    at += 1
    if not 0 <= status <= 254:
        raise ConstraintViolated(DIALECT, at - 1, f"status is {status}, not 0 to 254")
    id_: int | None = None
    if 1 <= status <= 254:
        id_ = buf[at]
        at += 1
        if id_ > 127:
            id_, at = long_nat(buf, at, id_, DIALECT)
    return new(ResultDecl, (commit_id, status, id_)), at


def read_forget_resource_decl(buf: bytes, at: int, header: int) -> tuple[ForgetResourceDecl, int]:
    rid = buf[at]
    at += 1
    if rid > 127:
        rid, at = long_nat(buf, at, rid, DIALECT)
    return new(ForgetResourceDecl, (rid,)), at


def read_forget_publisher_decl(buf: bytes, at: int, header: int) -> tuple[ForgetPublisherDecl, int]:
    id_ = buf[at]
    at += 1
    if id_ > 127:
        id_, at = long_nat(buf, at, id_, DIALECT)
    return new(ForgetPublisherDecl, (id_,)), at


def read_forget_subscriber_decl(buf: bytes, at: int, header: int) -> tuple[ForgetSubscriberDecl, int]:
    id_ = buf[at]
    at += 1
    if id_ > 127:
        id_, at = long_nat(buf, at, id_, DIALECT)
    return new(ForgetSubscriberDecl, (id_,)), at


def read_forget_selection_decl(buf: bytes, at: int, header: int) -> tuple[ForgetSelectionDecl, int]:
    sid = buf[at]
    at += 1
    if sid > 127:
        sid, at = long_nat(buf, at, sid, DIALECT)
    return new(ForgetSelectionDecl, (sid,)), at


def read_conduit(buf: bytes, at: int, header: int) -> tuple[Conduit, int]:
    return read_marker(Conduit, buf, at, header, DIALECT)


def read_r_space(buf: bytes, at: int, header: int) -> tuple[RSpace, int]:
    return read_marker(RSpace, buf, at, header, DIALECT)


def read_frag(buf: bytes, at: int, header: int) -> tuple[Frag, int]:
    sn_base = buf[at]
    at += 1
    if sn_base > 127:
        sn_base, at = long_nat(buf, at, sn_base, DIALECT)
    n: int | None = None
    if header & 0x40:
        n = buf[at]
        at += 1
        if n > 127:
            n, at = long_nat(buf, at, n, DIALECT)
    return new(Frag, (sn_base, n)), at


def read_migrate(buf: bytes, at: int, header: int) -> tuple[Migrate, int]:
    ocid = buf[at]
    at += 1
    if ocid > 127:
        ocid, at = long_nat(buf, at, ocid, DIALECT)
    id_: int | None = None
    if header & 0x20:
        id_ = buf[at]
        at += 1
        if id_ > 127:
            id_, at = long_nat(buf, at, id_, DIALECT)
    rch_last_sn = buf[at]
    at += 1
    if rch_last_sn > 127:
        rch_last_sn, at = long_nat(buf, at, rch_last_sn, DIALECT)
    bech_last_sn = buf[at]
    at += 1
    if bech_last_sn > 127:
        bech_last_sn, at = long_nat(buf, at, bech_last_sn, DIALECT)
    return new(Migrate, (ocid, rch_last_sn, bech_last_sn, id_)), at


def read_synch(buf: bytes, at: int, header: int) -> tuple[Synch, int]:
    reliable = header & 0x40 != 0
    sync = header & 0x20 != 0
    sn = buf[at]
    at += 1
    if sn > 127:
        sn, at = long_nat(buf, at, sn, DIALECT)
    count: int | None = None
    if header & 0x80:
        count = buf[at]
        at += 1
        if count > 127:
            count, at = long_nat(buf, at, count, DIALECT)
    return new(Synch, (sn, reliable, sync, count)), at


def read_ack_nack(buf: bytes, at: int, header: int) -> tuple[AckNack, int]:
    sn = buf[at]
    at += 1
    if sn > 127:
        sn, at = long_nat(buf, at, sn, DIALECT)
    mask: int | None = None
    if header & 0x20:
        mask = buf[at]
        at += 1
        if mask > 127:
            mask, at = long_nat(buf, at, mask, DIALECT)
    return new(AckNack, (sn, mask)), at


def read_write_data(buf: bytes, at: int, header: int) -> tuple[WriteData, int]:
    reliable = header & 0x40 != 0
    sync = header & 0x20 != 0
    sn = buf[at]
    at += 1
    if sn > 127:
        sn, at = long_nat(buf, at, sn, DIALECT)
    resource_size = buf[at]
    at += 1
    if resource_size > 127:
        resource_size, at = long_nat(buf, at, resource_size, DIALECT)
    resource_end = at + resource_size
    if resource_end > len(buf):
        raise Truncated(DIALECT, len(buf), resource_size, len(buf) - at)
    resource = buf[at:resource_end]
    at = resource_end
    payload_size = buf[at]
    at += 1
    if payload_size > 127:
        payload_size, at = long_nat(buf, at, payload_size, DIALECT)
    payload_end = at + payload_size
    if payload_end > len(buf):
        raise Truncated(DIALECT, len(buf), payload_size, len(buf) - at)
    payload = buf[at:payload_end]
    at = payload_end
    return new(WriteData, (sn, resource, payload, reliable, sync)), at


def read_stream_data(buf: bytes, at: int, header: int) -> tuple[StreamData, int]:
    reliable = header & 0x40 != 0
    sync = header & 0x20 != 0
    sn = buf[at]
    at += 1
    if sn > 127:
        sn, at = long_nat(buf, at, sn, DIALECT)
    id_ = buf[at]
    at += 1
    if id_ > 127:
        id_, at = long_nat(buf, at, id_, DIALECT)
    prid: int | None = None
    if header & 0x80:
        prid = buf[at]
        at += 1
        if prid > 127:
            prid, at = long_nat(buf, at, prid, DIALECT)
    payload_size = buf[at]
    at += 1
    if payload_size > 127:
        payload_size, at = long_nat(buf, at, payload_size, DIALECT)
    payload_end = at + payload_size
    if payload_end > len(buf):
        raise Truncated(DIALECT, len(buf), payload_size, len(buf) - at)
    payload = buf[at:payload_end]
    at = payload_end
    return new(StreamData, (sn, id_, payload, reliable, sync, prid)), at


def read_batched_data_payload(buf: bytes, at: int) -> tuple[BatchedDataPayload, int]:
    prid = buf[at]
    at += 1
    if prid > 127:
        prid, at = long_nat(buf, at, prid, DIALECT)
    payload_size = buf[at]
    at += 1
    if payload_size > 127:
        payload_size, at = long_nat(buf, at, payload_size, DIALECT)
    payload_end = at + payload_size
    if payload_end > len(buf):
        raise Truncated(DIALECT, len(buf), payload_size, len(buf) - at)
    payload = buf[at:payload_end]
    at = payload_end
    return new(BatchedDataPayload, (prid, payload)), at


def read_batched_data(buf: bytes, at: int, header: int) -> tuple[BatchedData, int]:
    reliable = header & 0x40 != 0
    sync = header & 0x20 != 0
    sn = buf[at]
    at += 1
    if sn > 127:
        sn, at = long_nat(buf, at, sn, DIALECT)
    id_ = buf[at]
    at += 1
    if id_ > 127:
        id_, at = long_nat(buf, at, id_, DIALECT)
    has_prid = header & 0x80 != 0
    payload: tuple[bytes, ...] | tuple[BatchedDataPayload, ...]
    if not has_prid:
        payload_size = buf[at]
        at += 1
        if payload_size > 127:
            payload_size, at = long_nat(buf, at, payload_size, DIALECT)
        if payload_size > len(buf) - at:
            raise Truncated(DIALECT, len(buf), payload_size, len(buf) - at)
        payload_list: list[bytes] = []
        for _ in range(payload_size):
            payload_item_size = buf[at]
            at += 1
            if payload_item_size > 127:
                payload_item_size, at = long_nat(buf, at, payload_item_size, DIALECT)
            payload_item_end = at + payload_item_size
            if payload_item_end > len(buf):
                raise Truncated(DIALECT, len(buf), payload_item_size, len(buf) - at)
            payload_item = buf[at:payload_item_end]
            at = payload_item_end
            payload_list.append(payload_item)
        payload = tuple(payload_list)
    else:
        payload_other_size = buf[at]
        at += 1
        if payload_other_size > 127:
            payload_other_size, at = long_nat(buf, at, payload_other_size, DIALECT)
        if payload_other_size > len(buf) - at:
            raise Truncated(DIALECT, len(buf), payload_other_size, len(buf) - at)
        payload_other_list: list[BatchedDataPayload] = []
        for _ in range(payload_other_size):
            payload_other_item, at = read_batched_data_payload(buf, at)
            payload_other_list.append(payload_other_item)
        payload_other = tuple(payload_other_list)
        payload = payload_other
    return new(BatchedData, (sn, id_, payload, reliable, sync, has_prid)), at


def read_pull(buf: bytes, at: int, header: int) -> tuple[Pull, int]:
    final = header & 0x80 != 0
    sync = header & 0x20 != 0
    sn = buf[at]
    at += 1
    if sn > 127:
        sn, at = long_nat(buf, at, sn, DIALECT)
    id_ = buf[at]
    at += 1
    if id_ > 127:
        id_, at = long_nat(buf, at, id_, DIALECT)
    max_samples: int | None = None
    if header & 0x40:
        max_samples = buf[at]
        at += 1
        if max_samples > 127:
            max_samples, at = long_nat(buf, at, max_samples, DIALECT)
    return new(Pull, (sn, id_, final, sync, max_samples)), at


def read_ping_pong(buf: bytes, at: int, header: int) -> tuple[PingPong, int]:
    ispong = header & 0x20 != 0
    hash_ = buf[at]
    at += 1
    if hash_ > 127:
        hash_, at = long_nat(buf, at, hash_, DIALECT)
    return new(PingPong, (hash_, ispong)), at


_READ_MESSAGE: Final[dict[int, Callable[[bytes, int, int], tuple[Message, int]]]] = {
    1: read_scout,
    2: read_hello,
    3: read_open,
    4: read_accept,
    5: read_close,
    6: read_declare,
    7: read_stream_data,
    8: read_batched_data,
    9: read_write_data,
    11: read_pull,
    12: read_ping_pong,
    14: read_synch,
    15: read_ack_nack,
    16: read_keep_alive,
    18: read_frag,
    19: read_conduit,
    20: read_migrate,
    24: read_r_space,
}


def read_message(buf: bytes, at: int) -> tuple[Message, int]:
    header = buf[at]
    read = _READ_MESSAGE.get(header & 0x1f)
    if read is None:
        kind = header & 0x1f
        if kind in (10, 17, 21, 22, 23):
            raise ReservedMessage(DIALECT, at, f"message {kind} has no body yet")
        raise UnknownMessage(DIALECT, at, f"no message has id {header & 31}")
    return read(buf, at + 1, header)


_READ_DECLARATION: Final[dict[int, Callable[[bytes, int, int], tuple[Declaration, int]]]] = {
    1: read_resource_decl,
    2: read_publisher_decl,
    3: read_subscriber_decl,
    4: read_selection_decl,
    5: read_binding_decl,
    6: read_commit_decl,
    7: read_result_decl,
    8: read_forget_resource_decl,
    9: read_forget_publisher_decl,
    10: read_forget_subscriber_decl,
    11: read_forget_selection_decl,
}


def read_declaration(buf: bytes, at: int) -> tuple[Declaration, int]:
    header = buf[at]
    read = _READ_DECLARATION.get(header & 0x1f)
    if read is None:
        raise UnknownDeclaration(DIALECT, at, f"no declaration has id {header & 31}")
    return read(buf, at + 1, header)


def write_property(out: bytearray, m: Property) -> None:
    if 0 <= m.id < 128:
        out.append(m.id)
    else:
        write_nat(out, m.id, "id")
    size = len(m.value)
    if 0 <= size < 128:
        out.append(size)
    else:
        write_nat(out, size, "value")
    out += m.value


def write_scout(out: bytearray, m: Scout) -> None:
    header = 0x01
    if m.properties is not None:
        header |= 0x20
    out.append(header)
    if 0 <= m.mask < 128:
        out.append(m.mask)
    else:
        write_nat(out, m.mask, "mask")
    if m.properties is not None:
        size = len(m.properties)
        if 0 <= size < 128:
            out.append(size)
        else:
            write_nat(out, size, "properties")
        for properties_item in m.properties:
            write_property(out, properties_item)


def write_hello(out: bytearray, m: Hello) -> None:
    header = 0x02
    if m.properties is not None:
        header |= 0x20
    out.append(header)
    if 0 <= m.mask < 128:
        out.append(m.mask)
    else:
        write_nat(out, m.mask, "mask")
    size = len(m.locators)
    if 0 <= size < 128:
        out.append(size)
    else:
        write_nat(out, size, "locators")
    for locators_item in m.locators:
        size = len(locators_item)
        if 0 <= size < 128:
            out.append(size)
        else:
            write_nat(out, size, "locators")
        out += locators_item
    if m.properties is not None:
        size = len(m.properties)
        if 0 <= size < 128:
            out.append(size)
        else:
            write_nat(out, size, "properties")
        for properties_item in m.properties:
            write_property(out, properties_item)


def write_open(out: bytearray, m: Open) -> None:
    header = 0x03
    if m.properties is not None:
        header |= 0x20
    out.append(header)
    out.append(bits(m.version, 8, "version"))
    if len(m.pid) < 1:
        raise EncodeError("pid", f"{len(m.pid)} is not at least 1")
    size = len(m.pid)
    if 0 <= size < 128:
        out.append(size)
    else:
        write_nat(out, size, "pid")
    out += m.pid
    if 0 <= m.lease < 128:
        out.append(m.lease)
    else:
        write_nat(out, m.lease, "lease")
    size = len(m.locators)
    if 0 <= size < 128:
        out.append(size)
    else:
        write_nat(out, size, "locators")
    for locators_item in m.locators:
        size = len(locators_item)
        if 0 <= size < 128:
            out.append(size)
        else:
            write_nat(out, size, "locators")
        out += locators_item
    if m.properties is not None:
        size = len(m.properties)
        if 0 <= size < 128:
            out.append(size)
        else:
            write_nat(out, size, "properties")
        for properties_item in m.properties:
            write_property(out, properties_item)


def write_accept(out: bytearray, m: Accept) -> None:
    header = 0x04
    if m.properties is not None:
        header |= 0x20
    out.append(header)
    if len(m.openPid) < 1:
        raise EncodeError("openPid", f"{len(m.openPid)} is not at least 1")
    size = len(m.openPid)
    if 0 <= size < 128:
        out.append(size)
    else:
        write_nat(out, size, "openPid")
    out += m.openPid
    if len(m.acceptPid) < 1:
        raise EncodeError("acceptPid", f"{len(m.acceptPid)} is not at least 1")
    size = len(m.acceptPid)
    if 0 <= size < 128:
        out.append(size)
    else:
        write_nat(out, size, "acceptPid")
    out += m.acceptPid
    if 0 <= m.lease < 128:
        out.append(m.lease)
    else:
        write_nat(out, m.lease, "lease")
    if m.properties is not None:
        size = len(m.properties)
        if 0 <= size < 128:
            out.append(size)
        else:
            write_nat(out, size, "properties")
        for properties_item in m.properties:
            write_property(out, properties_item)


def write_close(out: bytearray, m: Close) -> None:
    out.append(0x05)
    if len(m.pid) < 1:
        raise EncodeError("pid", f"{len(m.pid)} is not at least 1")
    size = len(m.pid)
    if 0 <= size < 128:
        out.append(size)
    else:
        write_nat(out, size, "pid")
    out += m.pid
    out.append(bits(m.reason, 8, "reason"))


def write_keep_alive(out: bytearray, m: KeepAlive) -> None:
    out.append(0x10)
    if len(m.pid) < 1:
        raise EncodeError("pid", f"{len(m.pid)} is not at least 1")
    size = len(m.pid)
    if 0 <= size < 128:
        out.append(size)
    else:
        write_nat(out, size, "pid")
    out += m.pid


def write_declare(out: bytearray, m: Declare) -> None:
    header = 0x06
    if m.sync:
        header |= 0x20
    if m.committed:
        header |= 0x40
    out.append(header)
    if 0 <= m.sn < 128:
        out.append(m.sn)
    else:
        write_nat(out, m.sn, "sn")
    size = len(m.declarations)
    if 0 <= size < 128:
        out.append(size)
    else:
        write_nat(out, size, "declarations")
    for declarations_item in m.declarations:
        write_declaration(out, declarations_item)


def write_resource_decl(out: bytearray, m: ResourceDecl) -> None:
    header = 0x01
    if m.properties is not None:
        header |= 0x20
    out.append(header)
    if 0 <= m.rid < 128:
        out.append(m.rid)
    else:
        write_nat(out, m.rid, "rid")
    size = len(m.resource)
    if 0 <= size < 128:
        out.append(size)
    else:
        write_nat(out, size, "resource")
    out += m.resource
    if m.properties is not None:
        size = len(m.properties)
        if 0 <= size < 128:
            out.append(size)
        else:
            write_nat(out, size, "properties")
        for properties_item in m.properties:
            write_property(out, properties_item)


def write_publisher_decl(out: bytearray, m: PublisherDecl) -> None:
    header = 0x02
    if m.properties is not None:
        header |= 0x20
    out.append(header)
    if 0 <= m.id < 128:
        out.append(m.id)
    else:
        write_nat(out, m.id, "id")
    if m.properties is not None:
        size = len(m.properties)
        if 0 <= size < 128:
            out.append(size)
        else:
            write_nat(out, size, "properties")
        for properties_item in m.properties:
            write_property(out, properties_item)


def write_subscriber_decl_params(out: bytearray, m: SubscriberDeclParams) -> None:
    if 0 <= m.temporalOrigin < 128:
        out.append(m.temporalOrigin)
    else:
        write_nat(out, m.temporalOrigin, "temporalOrigin")
    if 0 <= m.period < 128:
        out.append(m.period)
    else:
        write_nat(out, m.period, "period")
    if 0 <= m.duration < 128:
        out.append(m.duration)
    else:
        write_nat(out, m.duration, "duration")


def write_subscriber_decl(out: bytearray, m: SubscriberDecl) -> None:
    header = 0x03
    if m.properties is not None:
        header |= 0x20
    out.append(header)
    if 0 <= m.id < 128:
        out.append(m.id)
    else:
        write_nat(out, m.id, "id")
    if 0 <= m.mode < 128:
        out.append(m.mode)
    else:
        write_nat(out, m.mode, "mode")
    if m.mode == SubscriptionModeId.PeriodicPushModeId or m.mode == SubscriptionModeId.PeriodicPullModeId:
        if m.params is None:
            raise EncodeError("params", "missing, mode asks for it")
        write_subscriber_decl_params(out, m.params)
    elif m.params is not None:
        raise EncodeError("params", "not allowed with this mode")
    if m.properties is not None:
        size = len(m.properties)
        if 0 <= size < 128:
            out.append(size)
        else:
            write_nat(out, size, "properties")
        for properties_item in m.properties:
            write_property(out, properties_item)


def write_selection_decl(out: bytearray, m: SelectionDecl) -> None:
    header = 0x04
    if m.global_:
        header |= 0x80
    if m.properties is not None:
        header |= 0x20
    out.append(header)
    if 0 <= m.sid < 128:
        out.append(m.sid)
    else:
        write_nat(out, m.sid, "sid")
    size = len(m.query)
    if 0 <= size < 128:
        out.append(size)
    else:
        write_nat(out, size, "query")
    out += m.query
    if m.properties is not None:
        size = len(m.properties)
        if 0 <= size < 128:
            out.append(size)
        else:
            write_nat(out, size, "properties")
        for properties_item in m.properties:
            write_property(out, properties_item)


def write_binding_decl(out: bytearray, m: BindingDecl) -> None:
    header = 0x05
    if m.global_:
        header |= 0x80
    out.append(header)
    if 0 <= m.oldId < 128:
        out.append(m.oldId)
    else:
        write_nat(out, m.oldId, "oldId")
    if 0 <= m.newId < 128:
        out.append(m.newId)
    else:
        write_nat(out, m.newId, "newId")


def write_commit_decl(out: bytearray, m: CommitDecl) -> None:
    out.append(0x06)
    out.append(bits(m.commitId, 8, "commitId"))


def write_result_decl(out: bytearray, m: ResultDecl) -> None:
    out.append(0x07)
    out.append(bits(m.commitId, 8, "commitId"))
    if not 0 <= m.status <= 254:
        raise EncodeError("status", f"{m.status} is not 0 to 254")
    out.append(bits(m.status, 8, "status"))
    if 1 <= m.status <= 254:
        if m.id is None:
            raise EncodeError("id", "missing, status asks for it")
        if 0 <= m.id < 128:
            out.append(m.id)
        else:
            write_nat(out, m.id, "id")
    elif m.id is not None:
        raise EncodeError("id", "not allowed with this status")


def write_forget_resource_decl(out: bytearray, m: ForgetResourceDecl) -> None:
    out.append(0x08)
    if 0 <= m.rid < 128:
        out.append(m.rid)
    else:
        write_nat(out, m.rid, "rid")


def write_forget_publisher_decl(out: bytearray, m: ForgetPublisherDecl) -> None:
    out.append(0x09)
    if 0 <= m.id < 128:
        out.append(m.id)
    else:
        write_nat(out, m.id, "id")


def write_forget_subscriber_decl(out: bytearray, m: ForgetSubscriberDecl) -> None:
    out.append(0x0a)
    if 0 <= m.id < 128:
        out.append(m.id)
    else:
        write_nat(out, m.id, "id")


def write_forget_selection_decl(out: bytearray, m: ForgetSelectionDecl) -> None:
    out.append(0x0b)
    if 0 <= m.sid < 128:
        out.append(m.sid)
    else:
        write_nat(out, m.sid, "sid")


def write_conduit(out: bytearray, m: Conduit) -> None:
    write_marker(out, m, 0x13)


def write_r_space(out: bytearray, m: RSpace) -> None:
    write_marker(out, m, 0x18)


def write_frag(out: bytearray, m: Frag) -> None:
    header = 0x12
    if m.n is not None:
        header |= 0x40
    out.append(header)
    if 0 <= m.snBase < 128:
        out.append(m.snBase)
    else:
        write_nat(out, m.snBase, "snBase")
    if m.n is not None:
        if 0 <= m.n < 128:
            out.append(m.n)
        else:
            write_nat(out, m.n, "n")


def write_migrate(out: bytearray, m: Migrate) -> None:
    header = 0x14
    if m.id is not None:
        header |= 0x20
    out.append(header)
    if 0 <= m.ocid < 128:
        out.append(m.ocid)
    else:
        write_nat(out, m.ocid, "ocid")
    if m.id is not None:
        if 0 <= m.id < 128:
            out.append(m.id)
        else:
            write_nat(out, m.id, "id")
    if 0 <= m.rchLastSN < 128:
        out.append(m.rchLastSN)
    else:
        write_nat(out, m.rchLastSN, "rchLastSN")
    if 0 <= m.bechLastSN < 128:
        out.append(m.bechLastSN)
    else:
        write_nat(out, m.bechLastSN, "bechLastSN")


def write_synch(out: bytearray, m: Synch) -> None:
    header = 0x0e
    if m.reliable:
        header |= 0x40
    if m.sync:
        header |= 0x20
    if m.count is not None:
        header |= 0x80
    out.append(header)
    if 0 <= m.sn < 128:
        out.append(m.sn)
    else:
        write_nat(out, m.sn, "sn")
    if m.count is not None:
        if 0 <= m.count < 128:
            out.append(m.count)
        else:
            write_nat(out, m.count, "count")


def write_ack_nack(out: bytearray, m: AckNack) -> None:
    header = 0x0f
    if m.mask is not None:
        header |= 0x20
    out.append(header)
    if 0 <= m.sn < 128:
        out.append(m.sn)
    else:
        write_nat(out, m.sn, "sn")
    if m.mask is not None:
        if 0 <= m.mask < 128:
            out.append(m.mask)
        else:
            write_nat(out, m.mask, "mask")


def write_write_data(out: bytearray, m: WriteData) -> None:
    header = 0x09
    if m.reliable:
        header |= 0x40
    if m.sync:
        header |= 0x20
    out.append(header)
    if 0 <= m.sn < 128:
        out.append(m.sn)
    else:
        write_nat(out, m.sn, "sn")
    size = len(m.resource)
    if 0 <= size < 128:
        out.append(size)
    else:
        write_nat(out, size, "resource")
    out += m.resource
    size = len(m.payload)
    if 0 <= size < 128:
        out.append(size)
    else:
        write_nat(out, size, "payload")
    out += m.payload


def write_stream_data(out: bytearray, m: StreamData) -> None:
    header = 0x07
    if m.reliable:
        header |= 0x40
    if m.sync:
        header |= 0x20
    if m.prid is not None:
        header |= 0x80
    out.append(header)
    if 0 <= m.sn < 128:
        out.append(m.sn)
    else:
        write_nat(out, m.sn, "sn")
    if 0 <= m.id < 128:
        out.append(m.id)
    else:
        write_nat(out, m.id, "id")
    if m.prid is not None:
        if 0 <= m.prid < 128:
            out.append(m.prid)
        else:
            write_nat(out, m.prid, "prid")
    size = len(m.payload)
    if 0 <= size < 128:
        out.append(size)
    else:
        write_nat(out, size, "payload")
    out += m.payload


def write_batched_data_payload(out: bytearray, m: BatchedDataPayload) -> None:
    if 0 <= m.prid < 128:
        out.append(m.prid)
    else:
        write_nat(out, m.prid, "prid")
    size = len(m.payload)
    if 0 <= size < 128:
        out.append(size)
    else:
        write_nat(out, size, "payload")
    out += m.payload


def write_batched_data(out: bytearray, m: BatchedData) -> None:
    header = 0x08
    if m.reliable:
        header |= 0x40
    if m.sync:
        header |= 0x20
    if m.hasPrid:
        header |= 0x80
    out.append(header)
    if 0 <= m.sn < 128:
        out.append(m.sn)
    else:
        write_nat(out, m.sn, "sn")
    if 0 <= m.id < 128:
        out.append(m.id)
    else:
        write_nat(out, m.id, "id")
    if not m.hasPrid:
        payload_0 = cast("tuple[bytes, ...]", m.payload)
        size = len(payload_0)
        if 0 <= size < 128:
            out.append(size)
        else:
            write_nat(out, size, "payload")
        for payload_0_item in payload_0:
            size = len(payload_0_item)
            if 0 <= size < 128:
                out.append(size)
            else:
                write_nat(out, size, "payload")
            out += payload_0_item
    else:
        payload_1 = cast("tuple[BatchedDataPayload, ...]", m.payload)
        size = len(payload_1)
        if 0 <= size < 128:
            out.append(size)
        else:
            write_nat(out, size, "payload")
        for payload_1_item in payload_1:
            write_batched_data_payload(out, payload_1_item)


def write_pull(out: bytearray, m: Pull) -> None:
    header = 0x0b
    if m.final:
        header |= 0x80
    if m.sync:
        header |= 0x20
    if m.maxSamples is not None:
        header |= 0x40
    out.append(header)
    if 0 <= m.sn < 128:
        out.append(m.sn)
    else:
        write_nat(out, m.sn, "sn")
    if 0 <= m.id < 128:
        out.append(m.id)
    else:
        write_nat(out, m.id, "id")
    if m.maxSamples is not None:
        if 0 <= m.maxSamples < 128:
            out.append(m.maxSamples)
        else:
            write_nat(out, m.maxSamples, "maxSamples")


def write_ping_pong(out: bytearray, m: PingPong) -> None:
    header = 0x0c
    if m.ispong:
        header |= 0x20
    out.append(header)
    if 0 <= m.hash < 128:
        out.append(m.hash)
    else:
        write_nat(out, m.hash, "hash")


_WRITE_MESSAGE: Final[dict[type, Callable[[bytearray, Any], None]]] = {
    Scout: write_scout,
    Hello: write_hello,
    Open: write_open,
    Accept: write_accept,
    Close: write_close,
    Declare: write_declare,
    StreamData: write_stream_data,
    BatchedData: write_batched_data,
    WriteData: write_write_data,
    Pull: write_pull,
    PingPong: write_ping_pong,
    Synch: write_synch,
    AckNack: write_ack_nack,
    KeepAlive: write_keep_alive,
    Frag: write_frag,
    Conduit: write_conduit,
    Migrate: write_migrate,
    RSpace: write_r_space,
}


def write_message(out: bytearray, m: Message) -> None:
    write = _WRITE_MESSAGE.get(type(m))
    if write is None:
        raise EncodeError("message", f"{type(m).__name__} is none")
    write(out, m)


_WRITE_DECLARATION: Final[dict[type, Callable[[bytearray, Any], None]]] = {
    ResourceDecl: write_resource_decl,
    PublisherDecl: write_publisher_decl,
    SubscriberDecl: write_subscriber_decl,
    SelectionDecl: write_selection_decl,
    BindingDecl: write_binding_decl,
    CommitDecl: write_commit_decl,
    ResultDecl: write_result_decl,
    ForgetResourceDecl: write_forget_resource_decl,
    ForgetPublisherDecl: write_forget_publisher_decl,
    ForgetSubscriberDecl: write_forget_subscriber_decl,
    ForgetSelectionDecl: write_forget_selection_decl,
}


def write_declaration(out: bytearray, m: Declaration) -> None:
    write = _WRITE_DECLARATION.get(type(m))
    if write is None:
        raise EncodeError("declaration", f"{type(m).__name__} is none")
    write(out, m)
