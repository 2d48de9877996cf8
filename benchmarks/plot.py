"""The picture of a run of cpu.py."""

import functools

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt

OURS, PEER, INK, FAINT = "#1f5fa8", "#e08b2c", "#222222", "#bbbbbb"


def _bar(axes, y, gflops, limit, color, text):
    """One bar; its text stands inside where it fits, so as not to hide the peak."""
    axes.barh(y, gflops, 0.38, color=color)
    inside = gflops > 0.3 * limit
    axes.text(
        gflops, y, f"{text} " if inside else f" {text}", va="center", fontsize=7,
        ha="right" if inside else "left", color="white" if inside else INK,
    )  # fmt: skip


def _bars(axes, rows, labels, title, peak=True):
    """Ours and the best peer in GFLOP/s, with the measured peak as a tick."""
    limit = 1.05 * max(max(r.peak_gflops * peak, 1.2 * r.gflops) for r in rows)
    for i, row in enumerate(rows):
        share = f"{row.gflops:.0f}, {100 * row.fraction:.0f} %{'' if row.steady else ' ?'}"
        _bar(axes, i - 0.2, row.gflops, limit, OURS, share)
        if peak:
            axes.plot([row.peak_gflops] * 2, [i - 0.42, i + 0.42], color=INK, lw=1)
        if row.peer_ms:
            gflops = row.gflops * row.ms / row.peer_ms
            text = f"{gflops:.0f}, {row.ratio:.2f}x"
            _bar(axes, i + 0.2, gflops, limit, PEER, text)
    axes.set_yticks(range(len(rows)), labels, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlim(0, limit)
    axes.set_xlabel("GFLOP/s of useful work", fontsize=8)
    axes.set_title(title, fontsize=9, loc="left")


def _ghosts(axes, rows, title):
    """Time against the number of cu_seqlens entries, one line a window."""
    for mask, color in zip(dict.fromkeys(r.mask for r in rows), (OURS, PEER)):
        of_mask = [r for r in rows if r.mask == mask]
        names = [f"{r.sequences + 1}" for r in of_mask]
        base = of_mask[0].ms
        change = [100 * (r.ms / base - 1) for r in of_mask]
        axes.plot(names, change, "o-", color=color, label=f"{mask}: {base:.0f} ms")
    axes.axhline(0, color=FAINT, lw=1, zorder=0)
    limit = max(2.0, *(abs(y) for line in axes.lines[:2] for y in line.get_ydata()))
    axes.set_ylim(-1.2 * limit, 1.2 * limit)
    axes.set_xlabel("entries of cu_seqlens", fontsize=8)
    axes.set_ylabel("time, % over the exact length", fontsize=8)
    axes.legend(fontsize=7, frameon=False)
    axes.set_title(title, fontsize=9, loc="left")


def draw(rows, path):
    most = max(row.threads for row in rows)
    rows = [row for row in rows if row.threads == most]

    def of(name, **fields):
        fields = {"direction": "forward", **fields}
        return [
            r for r in rows
            if r.set == name and all(getattr(r, k) == v for k, v in fields.items())
        ]  # fmt: skip

    panels = []
    for dtype in ("f32", "bf16"):
        chosen = of("pr164502", dtype=dtype)
        if chosen:
            panels.append((
                _bars, chosen, [f"d {r.head_dim}, {r.mask}" for r in chosen],
                f"pr164502, {dtype}",
            ))  # fmt: skip
        chosen = of("pr164502", dtype=dtype, direction="backward")
        if chosen:
            panels.append((
                _bars, chosen, [f"d {r.head_dim}, {r.mask}" for r in chosen],
                f"pr164502, {dtype}, backward",
            ))  # fmt: skip
        chosen = of("fa-distributions", dtype=dtype, head_dim=128, mask="causal")
        if chosen:
            panels.append((
                _bars, chosen, [r.batch for r in chosen],
                f"fa-distributions, {dtype}, d 128, causal",
            ))  # fmt: skip
    ghosts = of("nanochat-d24")
    if ghosts:
        panels.append((_ghosts, ghosts, None, "nanochat-d24: the cost of ghosts"))
    chosen = of("decode")
    if chosen:
        panels.append((
            functools.partial(_bars, peak=False), chosen,
            [
                f"{r.dtype}, d {r.head_dim}" + (", pages" if r.page else "")
                + (f", {r.kv_dtype}" if r.kv_dtype else "") for r in chosen
            ],
            "decode (bound by memory; the peak is far to the right)",
        ))  # fmt: skip
    if not panels:
        panels.append((
            _bars, rows, [f"{r.set} {r.batch} {r.dtype}" for r in rows], "",
        ))  # fmt: skip

    columns = min(2, len(panels))
    lines = -(-len(panels) // columns)
    figure, grid = plt.subplots(
        lines, columns, figsize=(5.6 * columns, 3.7 * lines), squeeze=False,
        layout="constrained",
    )  # fmt: skip
    for axes in grid.flat[len(panels) :]:
        axes.remove()
    for axes, (kind, chosen, labels, title) in zip(grid.flat, panels):
        if labels is None:
            kind(axes, chosen, title)
        else:
            kind(axes, chosen, labels, title)
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    handles = [
        plt.Rectangle((0, 0), 1, 1, color=OURS),
        plt.Rectangle((0, 0), 1, 1, color=PEER),
        plt.Line2D([], [], color=INK, lw=1),
    ]
    names = [
        "varlen (GFLOP/s, share of the peak)",
        "PyTorch's fastest way (GFLOP/s, its time over ours)",
        "measured peak",
    ]
    figure.legend(
        handles, names, loc="outside upper center", ncols=3, fontsize=8, frameon=False,
        title=f"Variable-length attention on the CPU, {most} threads",
    )  # fmt: skip
    figure.savefig(path, dpi=150)
    plt.close(figure)
