"""Work on many labels in several processes, each with a context of its own on the GPU: one
that crashes or hangs takes one label with it."""

import json
import queue
import subprocess
import sys
import threading

# Of what a worker prints, lines of results begin so; others are for the log.
MARK = "result: "


def answer(**row):
    """A worker's result for the label that it was given."""
    print(MARK + json.dumps(row), flush=True)


class _Worker:
    def __init__(self, command, environment):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def ask(self, label, limit):
        """The row of a label, or why there is none."""
        overdue = []

        def kill():
            overdue.append(True)
            self.process.kill()

        timer = threading.Timer(limit, kill)
        timer.start()
        try:
            self.process.stdin.write(label + "\n")
            self.process.stdin.flush()
            for line in self.process.stdout:
                if line.startswith(MARK):
                    return json.loads(line.removeprefix(MARK))
                sys.stdout.write(line)
        except BrokenPipeError:
            pass
        finally:
            timer.cancel()
        status = self.process.wait()
        if overdue:
            return {"outcome": "no end", "problems": [f"no end within {limit:.0f} s"]}
        how = f"by signal {-status}" if status < 0 else f"with status {status}"
        return {"outcome": "crashed", "problems": [f"the process has ended {how}"]}

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()


def run(command, labels, workers, limit, left, take, environment=None):
    """Has `workers` processes answer labels, in order; `take(label, row)` gets each answer.
    `limit` is what one may take in seconds, `left()` what all still may: labels that come
    too late are not given out. Returns those."""
    pending, lock = queue.SimpleQueue(), threading.Lock()
    for label in labels:
        pending.put(label)

    def work():
        worker = None
        while left() > 5:
            try:
                label = pending.get_nowait()
            except queue.Empty:
                break
            if worker is None or worker.process.poll() is not None:
                worker = _Worker(command, environment)
            row = worker.ask(label, max(1, min(limit, left())))
            with lock:
                take(label, row)
        if worker and worker.process.poll() is None:
            worker.close()

    threads = [threading.Thread(target=work) for _ in range(min(workers, len(labels)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    late = []
    while not pending.empty():
        late.append(pending.get())
    return late
