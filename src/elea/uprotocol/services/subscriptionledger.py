"""Who is subscribed to what, in memory and, if wanted, in a file that outlives the service."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final, NamedTuple

from elea.model.limits import UPROTOCOL_SUBSCRIPTIONS
from elea.uprotocol.status import InvalidUri, UCode, UStatusError
from elea.uprotocol.uuri import UUri

__all__ = ["Entry", "SubscriptionLedger"]

FORMAT: Final = 1


class Entry(NamedTuple):
    """How somebody is subscribed: until when (milliseconds since 1970, None for ever), and how often they want it."""

    expires_ms: int | None = None
    sample_period_ms: int | None = None


class SubscriptionLedger:
    """Subscriptions, and who wants to know when those of a topic change."""

    def __init__(self, path: Path | None = None) -> None:
        """Take up what is in the file.

        Raises:
            UStatusError: DATA_LOSS: it cannot be read.
        """
        self._path = path
        self._entries: dict[tuple[UUri, UUri], Entry] = {}
        self._observers: set[tuple[UUri, UUri]] = set()
        if path is not None and path.exists():
            self._load(path)

    def __len__(self) -> int:
        return len(self._entries)

    def subscribe(self, topic: UUri, subscriber: UUri, entry: Entry) -> bool:
        """Keep a subscription; whether it is new.

        Raises:
            UStatusError: RESOURCE_EXHAUSTED: there is no room.
        """
        key = topic, subscriber
        is_new = key not in self._entries
        self._check_room(is_new)
        if self._entries.get(key) != entry:
            self._entries[key] = entry
            self._save()
        return is_new

    def unsubscribe(self, topic: UUri, subscriber: UUri) -> bool:
        """Forget a subscription; whether there was one."""
        found = self._entries.pop((topic, subscriber), None)
        if found is not None:
            self._save()
        return found is not None

    def observe(self, topic: UUri, observer: UUri) -> None:
        """Somebody wants to know.

        Raises:
            UStatusError: RESOURCE_EXHAUSTED: there is no room.
        """
        key = topic, observer
        if key not in self._observers:
            self._check_room(True)
            self._observers.add(key)
            self._save()

    def forget_observer(self, topic: UUri, observer: UUri) -> bool:
        """Somebody does not any more; whether they did."""
        if (topic, observer) not in self._observers:
            return False
        self._observers.discard((topic, observer))
        self._save()
        return True

    def observers(self, topic: UUri) -> list[UUri]:
        """Who wants to know."""
        return sorted(observer for observed, observer in self._observers if observed == topic)

    def found(self, *, topic: UUri | None = None, subscriber: UUri | None = None) -> list[tuple[UUri, UUri, Entry]]:
        """Subscriptions to a topic, or of somebody."""
        return [
            (of, who, entry)
            for (of, who), entry in self._entries.items()
            if topic in (None, of) and subscriber in (None, who)
        ]

    def expired(self, now_ms: int) -> list[tuple[UUri, UUri]]:
        """Forget subscriptions whose time is over; which they were."""
        over = [
            key for key, entry in self._entries.items() if entry.expires_ms is not None and now_ms > entry.expires_ms
        ]
        for key in over:
            del self._entries[key]
        if over:
            self._save()
        return over

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
        self._observers.clear()
        self._save()

    def _check_room(self, needed: bool) -> None:
        if needed and len(self._entries) + len(self._observers) >= UPROTOCOL_SUBSCRIPTIONS:
            raise UStatusError(UCode.RESOURCE_EXHAUSTED, f"{UPROTOCOL_SUBSCRIPTIONS} subscriptions are kept already")

    def _save(self) -> None:
        if self._path is None:
            return
        form = {
            "format": FORMAT,
            "subscriptions": [[str(topic), str(who), *entry] for (topic, who), entry in self._entries.items()],
            "observers": [[str(topic), str(who)] for topic, who in sorted(self._observers)],
        }
        fresh = self._path.with_name(f"{self._path.name}.new")
        with fresh.open("w", encoding="utf-8") as file:
            json.dump(form, file)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._path)  # whoever reads it finds the old one or the new one

    def _load(self, path: Path) -> None:
        try:
            form = json.loads(path.read_text(encoding="utf-8"))
            if form["format"] != FORMAT:
                raise ValueError(f"format {form['format']} is not {FORMAT}")
            for topic, who, expires, period in form["subscriptions"][:UPROTOCOL_SUBSCRIPTIONS]:
                self._entries[UUri.parse(topic), UUri.parse(who)] = Entry(expires, period)
            self._observers = {(UUri.parse(topic), UUri.parse(who)) for topic, who in form["observers"]}
        except (OSError, ValueError, TypeError, KeyError, InvalidUri) as error:
            problem = f"subscriptions cannot be read from {path}: {error}; move the file away to begin without any"
            raise UStatusError(UCode.DATA_LOSS, problem) from error
