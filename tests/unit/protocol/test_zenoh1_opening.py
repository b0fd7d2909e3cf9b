"""Initial sequence numbers and password proofs against recorded handshakes of eclipse-zenoh 1.10.2."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from elea.model.node_id import NodeId
from elea.protocol.zenoh1 import SN_MASKS, initial_sn, password_proof, proof_matches

VECTORS = Path(__file__).parents[2] / "vectors" / "zenoh1"


def load(name: str) -> Any:
    return json.loads((VECTORS / name).read_text())


def handshakes() -> list[tuple[str, str, str, int, int]]:
    """Of each recorded opening: name, zid that opens, zid it talks to, width of numbers, initial sn."""
    zids: dict[str, dict[str, str]] = {}
    found = []
    for record in load("handshake.json"):
        group = record["name"].rpartition("/")[0]
        messages = record["decoded"]
        for message in messages if isinstance(messages, list) else [messages]:
            seen = zids.setdefault(group, {})
            kind = message["_"]
            if kind in ("INIT_SYN", "INIT_ACK"):
                seen[kind] = message["zid"]
                seen["bits"] = str(8 << message["resolution"]["fsn"])
            elif kind in ("OPEN_SYN", "OPEN_ACK"):
                own, other = ("INIT_SYN", "INIT_ACK") if kind == "OPEN_SYN" else ("INIT_ACK", "INIT_SYN")
                found.append((record["name"], seen[own], seen[other], int(seen["bits"]), message["initial_sn"]))
    return found


@pytest.mark.parametrize("record", load("primitives.json")["initial_sn"])
def test_initial_sn_seen_on_the_wire(record: dict[str, Any]) -> None:
    mask = (1 << record["bits"]) - 1

    assert initial_sn(NodeId.parse(record["zid_from"]), NodeId.parse(record["zid_to"]), mask) == record["sn"]


@pytest.mark.parametrize(("name", "own", "other", "bits", "sn"), handshakes())
def test_initial_sn_of_every_recorded_handshake(name: str, own: str, other: str, bits: int, sn: int) -> None:
    assert initial_sn(NodeId.parse(own), NodeId.parse(other), SN_MASKS[bits]) == sn


def test_masks_fit_their_octets() -> None:
    assert {bits: mask.bit_length() for bits, mask in SN_MASKS.items()} == {8: 7, 16: 14, 32: 28, 64: 63}


def recorded_proof(group: str) -> tuple[int, bytes]:
    by_name = {record["name"]: record["decoded"] for record in load("handshake.json")}
    nonce = by_name[f"{group}/open/s2c1"]["ext"]["auth"]["usrpwd"]
    proof = by_name[f"{group}/open/c2s2"]["ext"]["auth"]["usrpwd"]["hmac_sha3_256"]
    return nonce, bytes.fromhex(proof)


def recorded_password(group: str) -> bytes:
    what = next(record["what"] for record in load("handshake.json") if record["name"].startswith(f"{group}/"))
    match = re.search(r"password '(.*?)'", what)
    assert match
    return match[1].encode()


def test_initiator_proves_the_recorded_password() -> None:
    nonce, proof = recorded_proof("usrpwd")
    password = recorded_password("usrpwd")

    assert password_proof(nonce, password) == proof
    assert proof_matches(nonce, password, proof)


def test_acceptor_refuses_a_proof_of_another_password() -> None:
    nonce, proof = recorded_proof("usrpwd_bad")

    assert not proof_matches(nonce, recorded_password("usrpwd"), proof)
