"""The rows of a run, kept as they come: an interrupted run leaves what it has."""

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

    def broken(self):
        """What has left the GPU unusable, by name."""
        return {row["what"] for row in self.earlier if row["kind"] == "broken"}
