"""Runs a configuration with varlen-run and reads its figures."""

import dataclasses
import json
import pathlib
import subprocess
import tempfile


class Failed(Exception):
    pass


@dataclasses.dataclass
class Result:
    ms: float
    peak_gflops: float
    memory_bytes: int


def module_text(config):
    """One varlen.attn on tensors with open numbers of rows."""
    batch, d, dtype = config.batch, config.head_dim, config.dtype
    q = f"tensor<?x{batch.heads}x{d}x{dtype}>"
    kv = f"tensor<?x{batch.kv_heads}x{d}x{dtype}>"
    cu = "tensor<?xi32>"
    lse = f"tensor<{batch.heads}x?xf32>"
    left, right = config.window
    mask = "full" if (left, right) == (-1, -1) else f"window = ({left}, {right})"
    return (
        f"func.func @attention(%q: {q}, %k: {kv}, %v: {kv}, %cu_q: {cu}, "
        f"%cu_k: {cu}) -> ({q}, {lse}) {{\n"
        f"  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k "
        f"{{mask = #varlen.mask<{mask}>}}\n"
        f"      : ({q}, {kv}, {kv}, {cu}, {cu}) -> ({q}, {lse})\n"
        f"  return %out, %lse : {q}, {lse}\n"
        f"}}\n"
    )


def measure(build, config, repeat):
    def lengths(values):
        return ",".join(map(str, values))

    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "module.mlir").write_text(module_text(config))
        command = [
            build / "bin" / "varlen-run", folder / "module.mlir", "--entry=attention",
            "--random=1", f"--lengths={lengths(config.batch.q_lengths)}",
            f"--lengths-k={lengths(config.batch.k_lengths)}",
            f"--threads={config.threads}", f"--repeat={repeat}", "--peak",
            f"--json={folder / 'figures.json'}",
        ]  # fmt: skip
        try:
            result = subprocess.run(
                command, capture_output=True, text=True, check=False
            )
        except OSError as error:
            raise Failed(str(error)) from error
        if result.returncode:
            raise Failed(result.stderr.strip() or f"status {result.returncode}")
        figures = json.loads((folder / "figures.json").read_text())
    return Result(
        ms=figures["ms_median"],
        peak_gflops=figures["peak_gflops"],
        memory_bytes=figures["workspace_bytes"],
    )
