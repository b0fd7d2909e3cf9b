"""Sockets, threads and clocks: the only layer that has them. It moves batches and knows nothing of what is in them."""
