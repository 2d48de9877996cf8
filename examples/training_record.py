"""What the training examples note: of each way to compute attention the losses, the seconds
and the memory of all steps, or why it could not go on. It is written to a file as it grows."""

import json
import statistics
import textwrap
import time


class Record:
    """Entries by kind ("step", "forward") and way, and record.json of a folder. `settings` is
    what the run was made with; the model of ways in `apart` is another's than that of "rest"."""

    def __init__(self, settings, folder=None, minutes=None, apart=()):
        self.settings, self.apart, self.kinds = settings, apart, {}
        self.path = folder and folder / "record.json"
        self.minutes, self.begin = minutes, None

    def is_over(self):
        """Whether the minutes of the run have passed, since this was asked first."""
        now = time.monotonic()
        self.begin = now if self.begin is None else self.begin
        return self.minutes is not None and now - self.begin > 60 * self.minutes

    def measure(self, kind, name, run):
        """Notes what `run` returns: the loss, the seconds, and where it is known the bytes that
        it needed. The entry of a way
        that fails has the error."""
        entry = self.kinds.setdefault(kind, {}).setdefault(name, {"losses": [], "seconds": []})
        if "error" in entry:
            return  # it is not tried again
        try:
            loss, seconds, *memory = run()
        except Exception as error:  # out of memory, not offered on a device, ...
            words = textwrap.shorten(str(error), 200, placeholder=" ...")
            entry["error"] = f"{type(error).__name__}: {words}"
            return
        entry["losses"].append(loss)
        entry["seconds"].append(seconds)
        if memory:
            entry.setdefault("bytes", []).append(memory[0])

    def has_failed(self, kind, name):
        return "error" in self.kinds.get(kind, {}).get(name, {})

    def write(self):
        """Adds the typical time of each way, and attention's part of it: what it takes longer
        than the model without attention, "rest", batch by batch. Writes the file, if there is one."""
        for entries in self.kinds.values():
            for name, entry in entries.items():
                summarize(entry, None if name in self.apart else entries.get("rest"))
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # Whole, or as it was.
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps({"settings": self.settings, **self.kinds}))
        new.replace(self.path)

    def report(self, kind, reference):
        """Prints a line for each way, and how far losses are from those of the reference."""
        entries = {name: x for name, x in self.kinds.get(kind, {}).items() if name != "rest"}
        for name, entry in entries.items():
            print(describe(kind, name, entry))
        wanted = entries.get(reference, {"losses": []})["losses"]
        for name, entry in entries.items():
            differences = [abs(a - b) / b for a, b in zip(entry["losses"], wanted)]
            if differences and name != reference:
                print(
                    f"{kind}: largest relative difference of a loss of {name} to that of {reference}:"
                    f" {max(differences):.1e}"
                )


def summarize(entry, rest):
    """The typical seconds of a way, and what they are more than those of the rest."""
    # The first steps also compile and allocate.
    seconds = entry["seconds"][2:] or entry["seconds"]
    if not seconds:
        return
    entry["typical_seconds"] = statistics.median(seconds)
    if "bytes" in entry:
        entry["peak_bytes"] = max(entry["bytes"][2:] or entry["bytes"])
    if rest is not None and rest["seconds"]:
        pairs = list(zip(entry["seconds"], rest["seconds"]))
        entry["attention_seconds"] = statistics.median(a - b for a, b in pairs[2:] or pairs)


def describe(kind, name, entry):
    """A line of what there is to know of a way."""
    losses, parts = entry["losses"], []
    if losses:
        parts.append(f"{entry['typical_seconds'] * 1e3:.0f} ms")
        if "attention_seconds" in entry:
            part = entry["attention_seconds"]
            share = part / entry["typical_seconds"]
            parts.append(f"attention {part * 1e3:.0f} ms ({share:.0%})")
        if "peak_bytes" in entry:
            parts.append(f"memory {entry['peak_bytes'] / 2**20:.0f} MiB")
        parts.append(f"loss {losses[0]:.4f} to {losses[-1]:.4f}")
    if "error" in entry:
        parts.append(f"failed after {len(losses)}: {entry['error']}")
    return f"{name}: {kind} {', '.join(parts)}"
