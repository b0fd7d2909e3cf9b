"""Side by side with the real eclipse-zenoh over loopback: every feature, every combination, the same observations."""
