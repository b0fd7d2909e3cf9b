"""All that knows sessions of Zenoh 1.x."""
