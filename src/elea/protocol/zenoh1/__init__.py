"""Session rules of Zenoh 1.x that need neither bytes nor time."""

from elea.protocol.zenoh1.password import password_proof, proof_matches
from elea.protocol.zenoh1.sn import SN_MASKS, initial_sn

__all__ = ["SN_MASKS", "initial_sn", "password_proof", "proof_matches"]
