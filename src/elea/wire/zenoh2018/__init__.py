"""The dialect `zenoh2018`: definitions, message values, codec."""
