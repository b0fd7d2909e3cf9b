"""The early dialects beside 1.x, both Elea: reliable samples over tcp and udp, and what is left of them with losses."""
