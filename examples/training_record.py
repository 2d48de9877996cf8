"""What the training examples note: of each way to compute attention the losses and the
seconds of all steps."""

import statistics


def note(entries, name, loss, seconds):
    """Adds what a step with a way has given."""
    entry = entries.setdefault(name, {"losses": [], "seconds": []})
    entry["losses"].append(loss)
    entry["seconds"].append(seconds)


def summarize(entries):
    """Adds the typical time of each way, and attention's part of it: what it takes longer
    than the model without attention, "rest", batch by batch."""
    for entry in entries.values():
        pairs = list(zip(entry["seconds"], entries["rest"]["seconds"]))
        # The first steps also compile and allocate.
        pairs = pairs[2:] or pairs
        entry["typical_seconds"] = statistics.median(seconds for seconds, _ in pairs)
        entry["attention_seconds"] = statistics.median(seconds - rest for seconds, rest in pairs)


def describe(kind, name, entry):
    """A line of what there is to know of a way."""
    losses, part = entry["losses"], ""
    if "attention_seconds" in entry:
        part = f" attention {entry['attention_seconds'] * 1e3:.0f} ms,"
    return (
        f"{name}: {kind} {entry['typical_seconds'] * 1e3:.0f} ms,{part}"
        f" loss {losses[0]:.4f} to {losses[-1]:.4f}"
    )
