"""Which pages the site has, in which order, and what they lack outside of it."""

# Captions of the sidebar, and their pages. Sphinx fails on a page that is in none.
SECTIONS = {
    "Start": [
        "Overview </README>",
        "PyTorch programs </docs/start/pytorch>",
        "JAX programs </docs/start/jax>",
        "Arrays in Python </docs/start/python>",
        "Models of ONNX </docs/start/onnx>",
        "ML compilers </docs/start/compiler>",
        "A compiler in C++ </docs/start/cpp>",
        "C programs </docs/start/c>",
        ".mlir files </docs/start/mlir>",
        "GPU kernels </docs/start/gpu-kernels>",
    ],
    "Guides": [
        "/docs/pytorch",
        "/docs/python",
        "/docs/jax",
        "/docs/onnx",
        "/docs/c-api",
        "/docs/inside-your-pipeline",
        "/docs/gradients",
        "/docs/derivatives",
        "/docs/scores",
        "/docs/package",
        "/docs/kernel-abi",
        "/docs/iree",
        "/docs/varlen-run",
        "/docs/executor",
        "/docs/gpu-runtime",
        "/docs/gpu-functions",
        "/docs/context-parallel",
        "/docs/pages",
        "/docs/quantised-keys",
        "/docs/mla",
        "/docs/editors",
    ],
    "Measured": ["/docs/comparison", "/benchmarks/README"],
    "Reference": [
        "/docs/attn",
        "/docs/attn-grad",
        "/docs/attn-jvp",
        "/docs/attn-jvp-grad",
        "/docs/limits",
        "/docs/stability",
        "/site/python-api",
        "/site/c-headers",
        "/docs/reference/VarlenDialect",
        "/docs/reference/PipelinePasses",
        "/docs/reference/VarlenPasses",
        "/docs/reference/LinalgPasses",
        "/docs/reference/ConversionPasses",
        "/docs/reference/CPUPasses",
        "/docs/reference/NVVMPasses",
        "/docs/reference/ABIPasses",
        "/docs/reference/ImportPasses",
        "/docs/reference/ExecutorPasses",
        "/docs/reference/KernelDialect",
        "/docs/reference/KernelPasses",
    ],
    "Inside": [
        "/docs/design",
        "/docs/levels",
        "/docs/gpu-kernels",
        "/docs/gpu-model",
        "/docs/adding-a-pass",
        "/docs/adding-a-mask",
        "/docs/adding-a-role",
        "/docs/adding-a-cpu-target",
        "/docs/adding-a-gpu-target",
        "/docs/adding-a-conversion",
        "/docs/fuzzing",
        "/docs/notes/README",
        "/CHANGELOG",
    ],
}
GLOBS = {"docs/notes/README": "docs/notes/*"}

# TableGen's pages of passes begin with a pass.
TITLES = {
    "docs/reference/PipelinePasses": "Passes for other compilers",
    "docs/reference/VarlenPasses": "Passes of the varlen dialect",
    "docs/reference/LinalgPasses": "Passes on linalg",
    "docs/reference/ConversionPasses": "Conversions",
    "docs/reference/CPUPasses": "Passes for CPUs",
    "docs/reference/NVVMPasses": "Passes for NVIDIA GPUs",
    "docs/reference/ABIPasses": "Passes on the interfaces of functions",
    "docs/reference/ImportPasses": "Imports of programs of other tools",
    "docs/reference/ExecutorPasses": "Passes of the executor",
    "docs/reference/KernelPasses": "Passes of the kernel dialect",
}


def toctree(entries, *options):
    return "\n".join(["", "```{toctree}", ":hidden:", *options, "", *entries, "```", ""])


def complete(app, name, source):
    """Adds what the site needs to the text of a page as it is read."""
    if name in TITLES:
        source[0] = f"# {TITLES[name]}\n\n{source[0]}"
    if name == app.config.root_doc:
        for caption, pages in SECTIONS.items():
            source[0] += toctree(pages, f":caption: {caption}")
    if name in GLOBS:
        source[0] += toctree([f"/{GLOBS[name]}"], ":glob:")
