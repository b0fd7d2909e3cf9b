"""How fast is the pipeline on Spark? `python -m bench.spark --help`, docs/benchmarks.md."""
