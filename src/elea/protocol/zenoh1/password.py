"""The user and password proof of Zenoh 1.x: the password itself never travels. Spec: zenoh-1 §5.6."""

from __future__ import annotations

__all__ = ["password_proof", "proof_matches"]


def password_proof(nonce: int, password: bytes) -> bytes:
    """What an initiator answers to the 64-bit nonce of the acceptor: 32 bytes."""
    import hmac  # loads OpenSSL, which only sessions with a password need

    return hmac.digest(nonce.to_bytes(8, "little"), password, "sha3_256")


def proof_matches(nonce: int, password: bytes, proof: bytes) -> bool:
    """Whether `proof` was made with this password, in a time that tells nothing of how nearly it was."""
    import hmac

    return hmac.compare_digest(password_proof(nonce, password), proof)
