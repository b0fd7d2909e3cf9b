"""The recorder: samples of the data space into capture files, and out of them again. See docs/recorder.md.

A capture of samples is an MCAP file, a Parquet file or an Arrow IPC stream; captures of frames (pcap) are another
thing, see docs/captures.md. Needs the extra `recorder`.
"""

from __future__ import annotations

from elea.recorder.capturefiles import open_capture, open_captures
from elea.recorder.recorder import Figures, Recorder
from elea.recorder.replayer import Replayer
from elea.recorder.rotation import Rotation

__all__ = ["Figures", "Recorder", "Replayer", "Rotation", "open_capture", "open_captures"]
