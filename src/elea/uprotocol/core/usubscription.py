"""core.usubscription v3: where it is, and its messages."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from elea.uprotocol.core.protomessage import Descriptor, ProtoMessage, each, flag, message, optional, text
from elea.uprotocol.uuri import UUri

__all__ = [
    "FETCH_SUBSCRIBERS",
    "FETCH_SUBSCRIPTIONS",
    "REGISTER_FOR_NOTIFICATIONS",
    "RESET",
    "SUBSCRIBE",
    "SUBSCRIPTION_CHANGE",
    "UNREGISTER_FOR_NOTIFICATIONS",
    "UNSUBSCRIBE",
    "FetchSubscribersRequest",
    "FetchSubscribersResponse",
    "FetchSubscriptionsRequest",
    "FetchSubscriptionsResponse",
    "NotificationsRequest",
    "NotificationsResponse",
    "ResetRequest",
    "ResetResponse",
    "State",
    "SubscribeAttributes",
    "SubscriberInfo",
    "Subscription",
    "SubscriptionRequest",
    "SubscriptionResponse",
    "SubscriptionStatus",
    "Timestamp",
    "UnsubscribeRequest",
    "UnsubscribeResponse",
    "Update",
    "service_uri",
]

SUBSCRIBE: Final = 1
UNSUBSCRIBE: Final = 2
FETCH_SUBSCRIPTIONS: Final = 3
REGISTER_FOR_NOTIFICATIONS: Final = 6
UNREGISTER_FOR_NOTIFICATIONS: Final = 7
FETCH_SUBSCRIBERS: Final = 8
RESET: Final = 9
SUBSCRIPTION_CHANGE: Final = 0x8000


def service_uri(authority: str, resource: int = 0) -> UUri:
    """The service of an authority, or one of its methods."""
    return UUri(authority, 0, 3, resource)


def _named(name: str) -> Descriptor:
    return Descriptor(f"uprotocol.core.usubscription.v3.{name}")


class State(IntEnum):
    """What a subscriber and a topic are to each other."""

    UNSUBSCRIBED = 0
    SUBSCRIBE_PENDING = 1
    SUBSCRIBED = 2
    UNSUBSCRIBE_PENDING = 3


class Timestamp(ProtoMessage):
    """A point in time (`google.protobuf.Timestamp`)."""

    DESCRIPTOR = Descriptor("google.protobuf.Timestamp")
    MEMBERS = (flag(1, "seconds"), flag(2, "nanos"))
    seconds: int
    nanos: int


class SubscribeAttributes(ProtoMessage):
    """How somebody wants to be subscribed."""

    DESCRIPTOR = _named("SubscribeAttributes")
    MEMBERS = (message(1, "expire", Timestamp), optional(3, "sample_period_ms"))
    expire: Timestamp | None
    sample_period_ms: int | None


class SubscriberInfo(ProtoMessage):
    """Who is subscribed."""

    DESCRIPTOR = _named("SubscriberInfo")
    MEMBERS = (message(1, "uri", UUri),)
    uri: UUri | None


class SubscriptionStatus(ProtoMessage):
    """The state of a subscription, and a word about it."""

    DESCRIPTOR = _named("SubscriptionStatus")
    MEMBERS = (flag(1, "state"), text(3, "message"))
    state: int
    message: str


class SubscriptionRequest(ProtoMessage):
    """Subscribe me."""

    DESCRIPTOR = _named("SubscriptionRequest")
    MEMBERS = (message(1, "topic", UUri), message(3, "attributes", SubscribeAttributes))
    topic: UUri | None
    attributes: SubscribeAttributes | None


class SubscriptionResponse(ProtoMessage):
    """What came of it."""

    DESCRIPTOR = _named("SubscriptionResponse")
    MEMBERS = (message(1, "status", SubscriptionStatus), message(3, "topic", UUri))
    status: SubscriptionStatus | None
    topic: UUri | None


class UnsubscribeRequest(ProtoMessage):
    """Subscribe me no more."""

    DESCRIPTOR = _named("UnsubscribeRequest")
    MEMBERS = (message(1, "topic", UUri),)
    topic: UUri | None


class UnsubscribeResponse(ProtoMessage):
    """Done."""

    DESCRIPTOR = _named("UnsubscribeResponse")


class FetchSubscribersRequest(ProtoMessage):
    """Who is subscribed to a topic?"""

    DESCRIPTOR = _named("FetchSubscribersRequest")
    MEMBERS = (message(1, "topic", UUri),)
    topic: UUri | None


class FetchSubscribersResponse(ProtoMessage):
    """These are."""

    DESCRIPTOR = _named("FetchSubscribersResponse")
    MEMBERS = (each(1, "subscribers", SubscriberInfo),)
    subscribers: tuple[SubscriberInfo, ...]


class Subscription(ProtoMessage):
    """Who is subscribed to what, and how."""

    DESCRIPTOR = _named("Subscription")
    MEMBERS = (
        message(1, "topic", UUri),
        message(2, "subscriber", SubscriberInfo),
        message(3, "status", SubscriptionStatus),
        message(4, "attributes", SubscribeAttributes),
    )
    topic: UUri | None
    subscriber: SubscriberInfo | None
    status: SubscriptionStatus | None
    attributes: SubscribeAttributes | None


class FetchSubscriptionsRequest(ProtoMessage):
    """Who is subscribed to a topic, or to what is somebody subscribed? One of the two."""

    DESCRIPTOR = _named("FetchSubscriptionsRequest")
    MEMBERS = (message(1, "topic", UUri), message(2, "subscriber", SubscriberInfo))
    topic: UUri | None
    subscriber: SubscriberInfo | None


class FetchSubscriptionsResponse(ProtoMessage):
    """These subscriptions."""

    DESCRIPTOR = _named("FetchSubscriptionsResponse")
    MEMBERS = (each(1, "subscriptions", Subscription),)
    subscriptions: tuple[Subscription, ...]


class NotificationsRequest(ProtoMessage):
    """Tell me of changes to the subscriptions of a topic; or no more."""

    DESCRIPTOR = _named("NotificationsRequest")
    MEMBERS = (message(1, "topic", UUri),)
    topic: UUri | None


class NotificationsResponse(ProtoMessage):
    """Done."""

    DESCRIPTOR = _named("NotificationsResponse")


class Update(ProtoMessage):
    """A subscription has changed."""

    DESCRIPTOR = _named("Update")
    MEMBERS = Subscription.MEMBERS
    topic: UUri | None
    subscriber: SubscriberInfo | None
    status: SubscriptionStatus | None
    attributes: SubscribeAttributes | None


class ResetRequest(ProtoMessage):
    """Forget all subscriptions."""

    DESCRIPTOR = _named("ResetRequest")


class ResetResponse(ProtoMessage):
    """Done."""

    DESCRIPTOR = _named("ResetResponse")
