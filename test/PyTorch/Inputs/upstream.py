"""Runs PyTorch's own tests of variable-length attention on Varlen.

    python test/PyTorch/Inputs/upstream.py PATH [PATTERN...] [--device=cpu] \\
        [--without=cuDNN] [--seconds=N]

PATH is PyTorch's test/test_varlen_attention.py, of the version of torch that is installed;
PATTERN are parts of names of tests to run. Classes that are instantiated for device types
are instantiated for the device, "cpu", "cuda" or the tests' "fake-cuda", those for CUDA alone
too, while the provider "VARLEN" is active there and counts as flash attention; but for classes
with a word of --without in their names. After N seconds no further test starts.

Prints each test that failed or was refused with NotImplementedError, reasons that tests were
skipped for, and "P passed, R refused, S skipped, F failed". Exits with 1 where one failed.
"""

import argparse
import collections
import importlib.util
import sys
import time
import types
import unittest

DEVICES = ("cpu", "cuda", "fake-cuda")
if "--device=fake-cuda" in sys.argv:
    import fake_device

    fake_device.enable(computes=True)  # before torch is imported

import torch
from torch.nn.attention import activate_flash_attention_impl

try:
    import expecttest  # noqa: F401
except ImportError:
    # What PyTorch's test cases derive from; nothing else of it is used here.
    sys.modules["expecttest"] = types.ModuleType("expecttest")
    sys.modules["expecttest"].TestCase = unittest.TestCase

from torch.testing._internal import common_cuda, common_device_type

import varlen.torch


def load(path, without, device):
    """The file as a module, its classes made for the device."""
    instantiate = common_device_type.instantiate_device_type_tests

    def instantiate_for_device(cls, scope, **options):
        if any(word.lower() in cls.__name__.lower() for word in without):
            del scope[cls.__name__]
        else:
            instantiate(cls, scope, only_for=device)

    # The file takes both from these modules when it is loaded. The provider has the kernels
    # of flash attention, which are looked for on GPUs.
    common_device_type.instantiate_device_type_tests = instantiate_for_device
    common_cuda.PLATFORM_SUPPORTS_FLASH_ATTENTION = True
    spec = importlib.util.spec_from_file_location("upstream_tests", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class Result(unittest.TestResult):
    """Counts, and says at once what did not pass."""

    def __init__(self, seconds):
        super().__init__()
        self._end = time.monotonic() + seconds
        self.passed, self.reasons = 0, collections.Counter()
        self.refused = []

    def stopTest(self, test):
        super().stopTest(test)
        if time.monotonic() > self._end:
            self.stop()

    def addSuccess(self, test):
        self.passed += 1

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.reasons[reason] += 1

    def addError(self, test, error):
        kind, value, _ = error
        if issubclass(kind, NotImplementedError):
            self.refused.append(test)
            self._say("refused", test, value)
        else:
            super().addError(test, error)
            self._say("failed", test, f"{kind.__name__}: {value}")

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self._say("failed", test, f"{error[0].__name__}: {error[1]}")

    def addSubTest(self, test, subtest, error):
        if error is not None:
            self.addError(subtest, error)

    def addExpectedFailure(self, test, error):
        self.passed += 1

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self._say("failed", test, "expected to fail")

    def _say(self, what, test, why):
        first, *_ = str(why).strip().splitlines() or [""]
        print(f"{what}: {test.id().partition('.')[2]}: {first}", flush=True)

    @property
    def failed(self):
        return len(self.errors) + len(self.failures) + len(self.unexpectedSuccesses)


def tests_of(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from tests_of(item)
        else:
            yield item


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("path")
    parser.add_argument("patterns", nargs="*")
    parser.add_argument("--device", choices=DEVICES, default="cpu")
    parser.add_argument("--without", default=["cuDNN"], type=lambda words: words.split(","))
    parser.add_argument("--seconds", type=float, default=float("inf"))
    arguments = parser.parse_intermixed_args()
    device = arguments.device.removeprefix("fake-")
    if device == "cuda" and not torch.cuda.is_available():
        parser.error("--device: expected a CUDA device, found none")
    varlen.torch.install(devices=device)
    activate_flash_attention_impl("VARLEN")
    # PyTorch's loader reads options of its own.
    sys.argv = sys.argv[:1]
    module = load(arguments.path, [word for word in arguments.without if word], device)
    tests = [
        test
        for test in tests_of(unittest.TestLoader().loadTestsFromModule(module))
        if not arguments.patterns or any(part in test.id() for part in arguments.patterns)
    ]
    if not tests:
        sys.exit(f"{arguments.path}: expected tests, found none")
    result = Result(arguments.seconds)
    unittest.TestSuite(tests).run(result)
    for reason, count in result.reasons.most_common():
        print(f"skipped: {count}: {reason}")
    if result.testsRun < len(tests):
        print(f"not run: {len(tests) - result.testsRun}")
    print(
        f"torch {torch.__version__}: {result.passed} passed, {len(result.refused)} refused, "
        f"{len(result.skipped)} skipped, {result.failed} failed"
    )
    return int(result.failed != 0)


if __name__ == "__main__":
    sys.exit(main())
