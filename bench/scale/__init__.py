"""What very many clients cost a router, beside eclipse-zenoh: `python -m bench.scale --help`; docs/benchmarks.md."""
