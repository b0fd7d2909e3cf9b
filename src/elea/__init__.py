"""Elea: the Zenoh data space in Python."""

__version__ = "0.1.0"
__all__ = ["__version__"]
