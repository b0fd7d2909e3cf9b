"""Attacks from outside on a broker as it is installed, and what must be true during and after them."""
