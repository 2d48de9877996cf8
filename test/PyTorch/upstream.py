# RUN: %python %s %t.py
"""Inputs/upstream.py, which runs PyTorch's tests on Varlen, counts what they come to: here
for a file of the same kind."""

import pathlib
import subprocess
import sys

FILE = '''
import torch
from torch.nn.attention.varlen import varlen_attn
from torch.testing._internal import common_cuda
from torch.testing._internal.common_device_type import instantiate_device_type_tests
from torch.testing._internal.common_utils import TestCase, parametrize
import unittest

CU = torch.tensor([0, 3, 5], dtype=torch.int32)


class TestOne(TestCase):
    @unittest.skipIf(not common_cuda.PLATFORM_SUPPORTS_FLASH_ATTENTION, "no flash attention")
    @parametrize("heads", [1, 2])
    def test_attention(self, device, heads):
        self.assertEqual(device, "cpu")
        q = torch.ones(5, heads, 8, device=device)
        self.assertEqual(varlen_attn(q, q, q, CU, CU, 3, 3), q)

    def test_pages(self, device):
        q, pages = torch.ones(5, 1, 8), torch.ones(2, 4, 1, 8)
        table = torch.tensor([[0], [1]], dtype=torch.int32)
        used = torch.tensor([3, 2], dtype=torch.int32)
        varlen_attn(q, pages, pages, CU, None, 3, 3, seqused_k=used, block_table=table)

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

path = pathlib.Path(sys.argv[1])
path.write_text(FILE)
script = pathlib.Path(__file__).parent / "Inputs" / "upstream.py"


def run(*arguments):
    done = subprocess.run(
        [sys.executable, script, path, *arguments],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


status, output = run()
assert "2 passed, 1 refused, 1 skipped, 1 failed" in output and status == 1, output
assert "failed: TestOneCPU.test_wrong_cpu: AssertionError" in output, output
assert "refused: TestOneCPU.test_pages_cpu: block_table: Varlen offers no paged" in output, output
assert "skipped: 1: another time" in output, output
status, output = run("test_attention", "test_pages")
assert "2 passed, 1 refused, 0 skipped, 0 failed" in output and status == 0, output
status, output = run("test_attention", "--seconds=0")
assert "not run: 1" in output and "1 passed, 0 refused" in output and status == 0, output
