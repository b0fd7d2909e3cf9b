"""A session that outlives its memory: what a device keeps while it sleeps, a few dozen bytes beside what is under way.

>>> from elea.tiny import Client
>>> device = Client(b"lamp")
>>> len(save(device))
22
"""

from elea.tiny.channels import Held
from elea.tiny.client import Client
from elea.tiny.octets import read_sized, read_vle, sized, vle

__all__ = ["restore", "save"]


def save(client: Client) -> bytes:
    """The state of a session: for memory that lasts, until the lease ends.

    Take everything that `poll` and `receive` have to say before. Half-received fragments of best effort are left out.
    """
    numbers = [
        client.state,
        client._peer_lease,
        client._bits,
        int(client._trip * 1000),
        client._end,
        client._unheard,
        client._commit,
        client._is_waiting + 2 * client._placed[0] + 4 * client._placed[1],
    ]
    parts = [client._next, client._expected, numbers, client.wanted]
    out = b"".join(vle(len(part)) + b"".join(vle(int(one)) for one in part) for part in parts)
    out += vle(len(client._held))
    for held in client._held:
        out += vle(held.sn) + vle(held.header) + sized(held.message)
    out += vle(len(client._ahead))
    for sn, (message, header) in client._ahead.items():
        out += vle(sn) + vle(header) + sized(message)
    for listed in (client._declaring, client._results, [client._stream]):
        out += vle(len(listed)) + b"".join(sized(one) for one in listed)
    return out


def restore(client: Client, saved: bytes, now: float) -> None:
    """Go on with a session; `client` was made with the same arguments. What is under way is told by a Synch at once.

    Raises:
        ValueError: it was made with another length of numbers.
    """
    parts: list[list[int]] = []
    at = 0
    for _ in range(4):
        count, at = read_vle(saved, at)
        part: list[int] = []
        for _ in range(count):
            one, at = read_vle(saved, at)
            part.append(one)
        parts.append(part)
    client._next, client._expected, numbers, client.wanted = parts
    client.state, client._peer_lease, bits, trip, client._end, client._unheard, client._commit, flags = numbers
    if bits != client._bits:
        raise ValueError(f"saved with numbers of {bits} bits, not {client._bits}")
    client._trip = trip / 1000
    client._is_waiting, client._placed = bool(flags & 1), [bool(flags & 2), bool(flags & 4)]
    count, at = read_vle(saved, at)
    client._held = []
    for _ in range(count):
        sn, at = read_vle(saved, at)
        header, at = read_vle(saved, at)
        message, at = read_sized(saved, at)
        client._held.append(Held(sn, header, message, now))
    count, at = read_vle(saved, at)
    for _ in range(count):
        sn, at = read_vle(saved, at)
        header, at = read_vle(saved, at)
        message, at = read_sized(saved, at)
        client._ahead[sn] = (message, header)
    lists: list[list[bytes]] = []
    for _ in range(3):
        count, at = read_vle(saved, at)
        listed: list[bytes] = []
        for _ in range(count):
            data, at = read_sized(saved, at)
            listed.append(data)
        lists.append(listed)
    client._declaring, client._results, stream = lists
    client._stream = stream[0]
    client._heard = client._said = now
    client._synched = now - 1.0
