"""The tests of varlen.jax."""

import importlib.util

import suites

# Several processes share the GPU: none takes all of its memory.
ENVIRONMENT = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}


def main(log, arguments):
    if importlib.util.find_spec("jax") is None:
        raise SystemExit("expected jax, got none")
    return suites.run("JAX", log, arguments, rehearsed=["errors"], environment=ENVIRONMENT)
