"""What messages in the making take of a budget that others share."""

from __future__ import annotations

from elea.protocol.zenoh1.reassembly import LEAST, MOST, Budget, Reassembly


class Node:
    """Grants up to a total, as `elea.io.memorybudget` does."""

    def __init__(self, total: int) -> None:
        self.left = total
        self.asked = 0

    def more(self, octets: int) -> bool:
        self.asked += 1
        if octets > self.left:
            return False
        self.left -= octets
        return True

    def back(self, octets: int) -> None:
        self.left += octets


def made(node: Node, limit: int = 1 << 30) -> tuple[Budget, Reassembly]:
    budget = Budget(limit, node.more, node.back)
    return budget, Reassembly(mask=0xFFFF, marked=True, limit=limit, budget=budget)


def add(reassembly: Reassembly, sn: int, chunk: bytes, *, more: bool = True, first: bool = False) -> object:
    return reassembly.add(sn, chunk, more=more, first=first, drop=False)


def test_few_fragments_ask_and_all_is_given_back() -> None:
    node = Node(64 << 20)
    _, reassembly = made(node)
    for sn in range(160):
        assert add(reassembly, sn, bytes(60_000), first=sn == 0) is None
    assert node.asked < 20
    assert node.left <= (64 << 20) - 160 * 60_000

    assert add(reassembly, 160, b"end", more=False) is not None

    assert node.left == 64 << 20


def test_message_without_room_is_given_up_and_the_next_one_is_taken() -> None:
    node = Node(LEAST)
    budget, reassembly = made(node)
    assert add(reassembly, 0, bytes(60_000), first=True) is None
    assert add(reassembly, 1, bytes(60_000)) is None
    assert add(reassembly, 2, b"x", more=False) is None

    assert (budget.exceeded, reassembly.lost, node.left) == (1, 3, LEAST)
    assert add(reassembly, 3, b"whole", more=False, first=True) == [b"whole"]


def test_message_that_is_taken_away_never_comes_out_short() -> None:
    node = Node(MOST)
    budget, reassembly = made(node)
    assert add(reassembly, 0, bytes(10_000), first=True) is None

    reassembly.revoke()
    budget.granted = 0

    assert add(reassembly, 1, b"rest", more=False) is None
    assert budget.exceeded == 1
    assert budget.used == 0
    assert add(reassembly, 2, b"next", more=False, first=True) == [b"next"]
