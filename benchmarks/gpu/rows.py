"""The rows of a run, kept as they come: an interrupted run leaves what it has."""

import contextlib
import json
import time


def read(path):
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


class Log:
    def __init__(self, path, seconds):
        self.path = path
        self.end = time.monotonic() + seconds
        self.earlier = read(path)

    def left(self):
        return self.end - time.monotonic()

    def add(self, **row):
        with self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")

    def done(self, kind, label):
        """Whether an earlier try of this part has the row."""
        return any(r["kind"] == kind and r["label"] == label for r in self.earlier)

    @contextlib.contextmanager
    def attempt(self, label, what):
        """What may end the process or leave the GPU unusable. If it does not come to its
        end, `unfinished` of the next process has it."""
        self.add(kind="begin", label=label, what=what)
        yield
        self.add(kind="end", label=label, what=what)

    def unfinished(self):
        """(label, what) of attempts that have not come to their end."""
        rows = [(r["kind"], (r["label"], r.get("what"))) for r in self.earlier]
        begun, ended = ({key for k, key in rows if k == kind} for kind in ("begin", "end"))
        return begun - ended
