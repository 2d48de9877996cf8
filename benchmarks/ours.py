"""Runs a configuration with varlen-run and reads its figures."""

import json
import os
import pathlib
import tempfile

import varlen


def measure(build, config, repeat):
    """What varlen-run measured, as the dict of its --json."""
    module = varlen.text.attn(
        dtype=config.dtype,
        heads=config.batch.heads,
        kv_heads=config.batch.kv_heads,
        head_dim=config.head_dim,
        window=config.window,
    )

    def lengths(values):
        return ",".join(map(str, values))

    os.environ["VARLEN_BUILD"] = str(build)
    with tempfile.TemporaryDirectory() as folder:
        figures = pathlib.Path(folder) / "figures.json"
        varlen.call(
            "varlen-run", "-", "--random=1",
            f"--lengths={lengths(config.batch.q_lengths)}",
            f"--lengths-k={lengths(config.batch.k_lengths)}",
            f"--threads={config.threads}", f"--repeat={repeat}", "--peak",
            f"--json={figures}", text=module,
        )  # fmt: skip
        return json.loads(figures.read_text())
