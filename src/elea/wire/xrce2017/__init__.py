"""The dialect `xrce2017`: definitions, message values, codec."""
