"""The golden vectors and what runs them: `python -m tests.vectors DIR…`, or pytest through `test_vectors`.

The kind of a file is known by the shape of its records, not by its name, so that files of the same kinds
made elsewhere run too.
"""
