"""The session API: what a program holds in its hands. Everything public is re-exported by `elea`."""
