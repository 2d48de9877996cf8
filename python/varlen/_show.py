"""Values in messages."""

import reprlib


def show(value):
    """What was got, in a line that is not long."""
    return " ".join(reprlib.repr(value).split())
