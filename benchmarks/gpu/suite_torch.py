"""The tests of varlen.torch."""

import suites


def main(log, arguments):
    return suites.run("PyTorch", log, arguments, rehearsed=["loading"])
