"""Bytes of frames to Arrow record batches and back, without an object per sample.

It knows samples on the wire and columns of a batch; links, sessions and handlers are those of others. Nothing here is
imported by a client that wants no batches: numpy, pyarrow and numba are (the extra `arrow`).
"""
