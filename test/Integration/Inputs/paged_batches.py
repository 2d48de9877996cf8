"""What the tests of keys in pages, quantised ones among them, have in common."""

import numpy as np

# No query, no key, more queries than keys, one query, panels of queries; lengths around the
# ends of pages and blocks.
QUERIES, KEYS = [0, 3, 9, 1, 1, 150, 2], [5, 0, 4, 256, 321, 255, 129]
HEADS, KV_HEADS = 6, 2


def offsets(lengths):
    return np.concatenate([[0], np.cumsum(lengths)]).astype("i4")


def expect(message, call, *arguments, error=ValueError, **options):
    try:
        call(*arguments, **options)
    except error as caught:
        assert message in str(caught), (message, str(caught))
    else:
        raise AssertionError(f"expected: {message}")
