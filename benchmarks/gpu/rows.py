"""The rows of a run, kept as they come: one JSON object a line, in a file that all parts
append to. What has ended early leaves what it has, and the next run goes on from there."""

import contextlib
import json
import os
import time


def read(path):
    """The rows of a file; a line that was cut off is none."""
    if not path.exists():
        return []
    rows = []
    for line in path.read_text().splitlines():
        with contextlib.suppress(ValueError):
            rows.append(json.loads(line))
    return rows


class Log:
    """What a part writes, with what it has written before. `seconds` are those it has."""

    def __init__(self, path, part, seconds):
        self.path, self.part = path, part
        self.end = time.monotonic() + seconds
        self.earlier = [row for row in read(path) if row["part"] == part]

    def left(self):
        return self.end - time.monotonic()

    def add(self, kind, label, **row):
        row = {"part": self.part, "kind": kind, "label": label, "time": time.time(), **row}
        line = json.dumps(row) + "\n"
        # One write: workers of several processes append to the file.
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)
        return row

    def done(self, kind, label):
        """Whether an earlier try of this part has the row."""
        return any(r["kind"] == kind and r["label"] == label for r in self.earlier)

    @contextlib.contextmanager
    def attempt(self, label, what):
        """What may end the process or leave the GPU unusable. If it does not come to its
        end, `unfinished` of the next process has it."""
        self.add("begin", label, what=what)
        yield
        self.add("end", label, what=what)

    def unfinished(self):
        """(label, what) of attempts that have ended a process of this part; not those whose
        time was over."""
        begun = set()
        for row in self.earlier:
            key = row["label"], row.get("what")
            if row["kind"] == "begin":
                begun.add(key)
            elif row["kind"] == "end":
                begun.discard(key)
            elif row["kind"] == "part" and row["outcome"] == "time limit":
                begun.clear()
        return begun
