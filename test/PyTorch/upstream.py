# RUN: %python %s %t.py
"""Inputs/upstream.py, which runs PyTorch's tests on Varlen, counts what they come to: here
for a file of the same kind, on the device of the tests."""

import pathlib
import subprocess
import sys

from device import IS_FAKE, NAME

FILE = '''
import torch
from torch.nn.attention.varlen import varlen_attn
from torch.testing._internal import common_cuda
from torch.testing._internal.common_device_type import instantiate_device_type_tests
from torch.testing._internal.common_utils import TestCase, parametrize
import unittest

CU = [0, 3, 5]


class TestOne(TestCase):
    @unittest.skipIf(not common_cuda.PLATFORM_SUPPORTS_FLASH_ATTENTION, "no flash attention")
    @parametrize("heads", [1, 2])
    def test_attention(self, device, heads):
        self.assertIn(device, ("cpu", "cuda:0"))
        q = torch.ones(5, heads, 8, device=device)
        cu = torch.tensor(CU, dtype=torch.int32, device=device)
        self.assertEqual(varlen_attn(q, q, q, cu, cu, 3, 3), q)

    def test_pages(self, device):
        q, pages = torch.ones(5, 1, 8, device=device), torch.ones(2, 4, 1, 8, device=device)
        cu, table, used = (
            torch.tensor(x, dtype=torch.int32, device=device) for x in (CU, [[0], [1]], [3, 2])
        )
        out = varlen_attn(q, pages, pages, cu, None, 3, 3, seqused_k=used, block_table=table)
        self.assertEqual(out, q)

    def test_refused(self, device):
        raise NotImplementedError("not offered")

    def test_wrong(self, device):
        self.assertEqual(1, 2)

    def test_skipped(self, device):
        self.skipTest("another time")


class TestCuDNN(TestCase):
    def test_other(self, device):
        raise RuntimeError("left out")


instantiate_device_type_tests(TestOne, globals(), only_for=("cuda",))
instantiate_device_type_tests(TestCuDNN, globals(), only_for=("cuda",))
'''

DEVICE = f"fake-{NAME}" if IS_FAKE else NAME
CLASS = f"TestOne{NAME.upper()}"
path = pathlib.Path(sys.argv[1])
path.write_text(FILE)
script = pathlib.Path(__file__).parent / "Inputs" / "upstream.py"


def run(*arguments):
    done = subprocess.run(
        [sys.executable, script, f"--device={DEVICE}", path, *arguments],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


status, output = run()
assert "3 passed, 1 refused, 1 skipped, 1 failed" in output and status == 1, output
assert f"failed: {CLASS}.test_wrong_{NAME}: AssertionError" in output, output
refused = f"refused: {CLASS}.test_refused_{NAME}: not offered"
assert refused in output, output
assert "skipped: 1: another time" in output, output
status, output = run("test_attention", "test_refused")
assert "2 passed, 1 refused, 0 skipped, 0 failed" in output and status == 0, output
status, output = run("test_attention", "--seconds=0")
assert "not run: 1" in output and "1 passed, 0 refused" in output and status == 0, output
