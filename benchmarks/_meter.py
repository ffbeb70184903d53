"""Time and memory of a part of a program."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Self


class Meter:
    """Wall-clock and processor time of a block, and the most memory the process held in it."""

    def __enter__(self) -> Self:
        self.peak_bytes = 0
        self._ended = threading.Event()
        self._sampler = threading.Thread(target=self._sample, daemon=True)
        self._sampler.start()
        self._start = time.perf_counter(), time.process_time()
        return self

    def _sample(self) -> None:
        while True:
            self.peak_bytes = max(self.peak_bytes, anonymous_bytes())
            if self._ended.wait(0.02):
                return

    def __exit__(self, *exception: object) -> None:
        now = time.perf_counter(), time.process_time()
        self.seconds, self.processor = (b - a for a, b in zip(self._start, now, strict=True))
        self._ended.set()
        self._sampler.join()


def anonymous_bytes() -> int:
    """Memory of this process without the page cache; 0 where the system does not say."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon:"))
