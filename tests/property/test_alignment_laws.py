"""Logs that are aligned with each other, in whatever order: the same samples everywhere, and nothing comes back."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pyarrow")

from elea.model.timestamp import ntp64_from_ns
from elea.store import DEL, PUT, Log, Record, Retention
from elea.store import digest as digests
from elea.store.alignment import Aligned, Near, align
from elea.store.digest import LEVELS, Digest
from elea.store.fingerprints import Bucket, fingerprint
from elea.store.memoryshelf import MemoryShelf
from elea.store.scope import LEAF, Scope, scope_of

START_NS = 1_700_000_000 * 10**9
SECOND_NS = 10**9

Identity = tuple[str, int, bytes, int]


class Store:
    """A log, the rounds it makes, and a segment for every append, so that retention has something to take."""

    def __init__(self, number: int) -> None:
        self.node = bytes([number + 1])
        self.log = Log(MemoryShelf(f"epoch {number}", part_bytes=1))
        self.digest = Digest(self.log)

    def put(self, key: str, kind: int, now_ns: int, stamp_ns: int, payload: bytes = b"") -> Record:
        record = Record(key, payload, ntp64_from_ns(stamp_ns), self.node, now_ns, kind)
        self.log.append([record])
        return record

    def scope(self, now_ns: int) -> Scope:
        return scope_of(self.log, now_ns)

    def align(self, other: Store, now_ns: int) -> Aligned:
        def bring(records: list[Record]) -> None:
            self.log.append([one._replace(arrival_ns=now_ns) for one in records], sift=False)

        far = Near(other.log, other.digest, other.scope(now_ns).floor)
        return align(self.log, self.digest, far, self.scope(now_ns), bring)

    def identities(self) -> set[Identity]:
        return {(one.key, one.ntp64, one.stamp_id, one.kind) for one in (held.record for held in self.log.read())}

    def newest(self) -> dict[str, tuple[int, bytes, int, bytes]]:
        found = (one.record for one in self.log.latest_matching(deleted=True))
        return {one.key: (one.ntp64, one.stamp_id, one.kind, one.payload) for one in found}


def newest_of(records: list[Record]) -> dict[str, tuple[int, bytes, int, bytes]]:
    ordered = sorted(records, key=lambda one: (one.ntp64, one.stamp_id))
    return {one.key: (one.ntp64, one.stamp_id, one.kind, one.payload) for one in ordered}


KEYS = st.sampled_from(["a", "a/b", "a/c", "d"])
KINDS = st.sampled_from([PUT, PUT, DEL])
PUTS = st.tuples(
    st.just("put"), st.integers(0, 2), KEYS, KINDS, st.integers(0, 600), st.sampled_from([0, 0, 0, 30, 3_000])
)
ROUNDS = st.tuples(st.just("align"), st.integers(0, 2), st.integers(0, 2))
TRIMS = st.tuples(st.just("trim"), st.integers(0, 2), st.integers(1, 6))


def played(steps: list[Any]) -> tuple[list[Store], list[Record], int]:
    """The stores after some steps, everything that was put, and the time."""
    stores = [Store(number) for number in range(3)]
    records: list[Record] = []
    now_ns = START_NS
    for number, step in enumerate(steps):
        match step:
            case ("put", at, key, kind, pause, late):
                # No two stamps of a node are the same, and clocks go on.
                now_ns += pause * SECOND_NS + 1_000
                stamp_ns = now_ns - late * SECOND_NS
                records.append(stores[at].put(key, kind, now_ns, stamp_ns, b"%d" % number))
            case ("align", to, source) if to != source:
                stores[to].align(stores[source], now_ns)
            case ("trim", at, samples):
                stores[at].log.retain(Retention(samples=samples), now_ns)
    return stores, records, now_ns


def settle(stores: list[Store], now_ns: int) -> None:
    """Rounds of everybody with everybody, until nobody finds anything."""
    for _ in range(4):
        if not sum(one.align(other, now_ns).brought for one in stores for other in stores if one is not other):
            return
    raise AssertionError("there is always something to bring")


@settings(max_examples=50)
@given(st.lists(PUTS | ROUNDS, max_size=40))
def test_all_stores_come_to_have_every_sample_and_nothing_comes_back(steps: list[Any]) -> None:
    stores, records, now_ns = played(steps)

    settle(stores, now_ns)

    everything = {(one.key, one.ntp64, one.stamp_id, one.kind) for one in records}
    for store in stores:
        assert store.identities() == everything
        assert store.log.end == len(everything), "a sample is there twice"
        assert store.newest() == newest_of(records)


@settings(max_examples=50)
@given(st.lists(PUTS | ROUNDS | TRIMS, max_size=40))
def test_stores_with_retention_agree_on_the_newest_and_do_not_bring_back_what_they_let_go(steps: list[Any]) -> None:
    stores, records, now_ns = played(steps)

    settle(stores, now_ns)

    for store in stores:
        assert store.newest() == newest_of(records)
    before = [store.log.end for store in stores]
    for store in stores:
        store.log.retain(Retention(samples=1), now_ns)
    settle(stores, now_ns)
    assert [store.log.end for store in stores] == before


@given(st.lists(PUTS, max_size=25), st.lists(PUTS, max_size=3), st.randoms())
def test_digests_are_the_same_exactly_if_the_samples_are(steps: list[Any], more: list[Any], chance: Any) -> None:
    _, records, _ = played(steps)
    _, others, _ = played([*steps, *more])
    one, two = Store(0), Store(1)
    for store, chosen in ((one, records), (two, others)):
        mixed = list(chosen) + chance.sample(chosen, min(len(chosen), 3))  # some of them twice
        chance.shuffle(mixed)
        cut = chance.randrange(len(mixed) + 1)
        store.log.append(mixed[:cut])
        store.digest.buckets(LEVELS[0], Scope())  # made now, and again from what comes
        store.log.append(mixed[cut:])

    same = one.identities() == two.identities()

    assert same is (not more)
    for level in LEVELS[:3]:
        assert (one.digest.buckets(level, Scope()) == two.digest.buckets(level, Scope())) is same


@settings(max_examples=50)
@given(st.lists(PUTS | TRIMS, max_size=30), st.integers(1, 4), st.integers(0, 6))
def test_every_level_tells_the_same_samples(steps: list[Any], rows: int, leaves: int) -> None:
    stores, _, now_ns = played(steps)
    store = stores[0]
    with patch.object(digests, "STORE_DIGEST_ROWS", rows):  # so many at once as fit in memory: hardly any
        for floor in (0, (ntp64_from_ns(START_NS) >> LEAF) + leaves):
            scope = Scope(max(floor << LEAF, store.scope(now_ns).floor))
            _check_levels(store, scope)


def _check_levels(store: Store, scope: Scope) -> None:
    expected = {one for one in store.identities() if one[1] >= scope.floor}
    newest = {(key, *one[:3]) for key, one in store.newest().items()}
    expected |= {one for one in newest if one[1] < scope.floor}
    within: list[int] | None = None
    for level in LEVELS:
        buckets: dict[int, Bucket] = {}
        for identity in expected:
            made, samples = buckets.get(identity[1] >> level, (0, 0))
            buckets[identity[1] >> level] = Bucket(made ^ fingerprint(*identity), samples + 1)

        found = store.digest.buckets(level, scope, within)

        assert found == buckets
        within = list(found)
        for bucket in found:
            table = store.digest.listing(level, bucket, scope).to_pylist()
            listed = {(row["key"], row["ntp64"], row["stamp_id"], row["kind"]) for row in table}
            assert listed == {one for one in expected if one[1] >> level == bucket}
            assert len(table) == len(listed)
