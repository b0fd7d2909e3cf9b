"""How fast is a node, beside eclipse-zenoh, pyzmq and Redis? `python -m bench.node --help`; docs/benchmarks.md."""
