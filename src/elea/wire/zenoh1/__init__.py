"""The dialect `zenoh1` (Zenoh 1.x, wire version 9): definitions, message values, codec, batches."""
