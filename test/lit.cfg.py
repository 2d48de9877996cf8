# Runs with `lit -v test` (the build is VARLEN_BUILD, or build/ beside test/)
# and with `lit -v build/test`. .lit_test_times.txt has the longest tests, which lit starts
# first where a build has no times of its own; `tools/run-tests.py --record` writes it.
# VARLEN_LONG=1 adds the feature `long`: tests and RUN lines of `make check-all` alone.

import ctypes
import ctypes.util
import glob
import os
import platform
import re
import shutil
import sys

import lit.formats

source = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
build = os.path.abspath(
    getattr(config, "varlen_build", None)
    or os.environ.get("VARLEN_BUILD")
    or os.path.join(source, "build")
)
cache_file = os.path.join(build, "CMakeCache.txt")
if not os.path.exists(cache_file):
    lit_config.fatal(f"no build in {build}; set VARLEN_BUILD or run `make build`")
with open(cache_file) as file:
    cache = dict(re.findall(r"^(\w+):\w+=(.*)$", file.read(), re.M))

llvm = os.path.normpath(os.path.join(cache["MLIR_DIR"], "..", "..", ".."))

config.name = "varlen"
config.test_format = lit.formats.ShTest(execute_external=False)
# What `tools/run-tests.py --record` needs.
if os.environ.get("VARLEN_MEASURE", "0") not in ("", "0"):
    sys.path.append(os.path.join(source, "test"))
    import cpu_time

    config.test_format = cpu_time.ShTest(execute_external=False)
config.suffixes = [".mlir", ".py", ".test", ".c", ".cpp"]
# What lit does not run: modules, and programs that run tests.
config.excludes = ["Inputs", "CMakeLists.txt", "lit.cfg.py", "cpu_time.py", "run.py", "run_scripts.py"]
config.test_source_root = os.path.join(source, "test")
config.test_exec_root = os.path.join(build, "test")

path = [os.path.join(build, "bin"), os.path.join(llvm, "bin")]
environment = config.environment
environment["PATH"] = os.pathsep.join(path + [environment["PATH"]])
environment["PYTHONPATH"] = os.path.join(source, "python")
environment["PYTHONDONTWRITEBYTECODE"] = "1"
environment["VARLEN_BUILD"] = build
# Not the user's; what one build has compiled no other one takes.
environment["VARLEN_CACHE_DIR"] = os.path.join(build, "test-cache")
# lit's workers share the machine: numpy's products, too, take one thread each.
environment["OPENBLAS_NUM_THREADS"] = "1"
# PyTorch's threads sleep where they wait: spinning took 20 to 300 % of a test's time.
environment["OMP_WAIT_POLICY"] = "passive"
environment["QEMU_LD_PREFIX"] = "/usr/aarch64-linux-gnu"
environment["FILECHECK_OPTS"] = " ".join(
    ["--enable-var-scope", "--allow-unused-prefixes=false", "--dump-input-filter=error"]
)
for name in ("HOME", "CCACHE_DIR"):
    if name in os.environ:
        environment[name] = os.environ[name]


# Features.
def has(*tools):
    return all(shutil.which(tool, path=environment["PATH"]) for tool in tools)


features = config.available_features
if os.environ.get("VARLEN_LONG", "0") not in ("", "0"):
    features.add("long")
# How often kernels run in the executor: with each order of warps and each timing of copies, and for
# a release with three seeds each.
environment["VARLEN_EXECUTOR_RUNS"] = "27" if "long" in features else "9"
# For tests of what surrounds compiled code, or of what is computed whatever LLVM makes of it. Code
# as users get it, its numbers and bits, is that of conformance.py, determinism.py and others of
# Integration, and with `make check-all` of all tests.
config.around_code = {} if "long" in features else {"VARLEN_CODEGEN": "fast"}
features.add({"x86_64": "x86", "AMD64": "x86"}.get(platform.machine(), platform.machine()))
try:
    with open("/proc/cpuinfo") as file:
        flags = set(file.read().split())
except OSError:
    flags = set()
features.update(flags & {"avx2", "avx512f", "avx512_bf16"})
if has("qemu-aarch64", "aarch64-linux-gnu-g++"):
    features.add("aarch64-cross")
features.update(tool for tool in ("ptxas", "pkg-config") if has(tool))
if has("mpirun", "mpicc") and ctypes.util.find_library("mpi"):
    features.add("openmpi")
try:
    ctypes.CDLL("libcuda.so.1")
    features.add("cuda")
except OSError:
    pass
if cache.get("VARLEN_SANITIZE"):
    features.add("asan")
plugin = os.path.join(build, "lib", "VarlenPlugin.so")
if "asan" not in features and os.path.exists(plugin):
    features.add("plugin")
    environment["VARLEN_PLUGIN"] = plugin
# A package for others: with LLVM's shared libraries, and without sanitizers.
if "asan" not in features and cache.get("VARLEN_LINK") == "dylib":
    features.add("package")
# One virtual environment serves all builds of a checkout; VARLEN_VENV names another one,
# such as one with another version of PyTorch.
chosen = os.environ.get("VARLEN_VENV")
environments = [os.path.abspath(chosen)] if chosen else [os.path.join(root, "venv") for root in (build, os.path.join(source, "build"))]
pythons = [os.path.join(root, "bin", "python") for root in environments]
python = next(filter(os.path.exists, pythons), None)
if chosen and not python:
    lit_config.fatal(f"VARLEN_VENV: expected a virtual environment, got {chosen}, which has no bin/python")
if python:
    features.add("venv")
    packages = os.path.join(os.path.dirname(python), "..", "lib", "python*", "site-packages")
    if glob.glob(os.path.join(packages, "torch", "version.py")):
        features.add("torch")
    if glob.glob(os.path.join(packages, "sphinx", "__init__.py")):
        features.add("sphinx")
    # What iree-compile and iree-run-module are from.
    if all(glob.glob(os.path.join(packages, "iree", name, "version.py")) for name in ("compiler", "runtime")):
        features.add("iree")
    # Of requirements-gpu.txt; benchmarks/gpu/sass.py finds it there, too.
    if has("nvdisasm") or glob.glob(os.path.join(packages, "nvidia", "cu*", "bin", "nvdisasm")):
        features.add("nvdisasm")
    if glob.glob(os.path.join(packages, "torch_mlir", "fx.py")):
        features.add("torch-mlir")
    # From the build too: libvarlen-xla is built where jaxlib's headers are found.
    has_xla = os.path.exists(os.path.join(build, "lib", "libvarlen-xla.so"))
    if has_xla and glob.glob(os.path.join(packages, "jax", "version.py")):
        features.add("jax")
    if glob.glob(os.path.join(packages, "onnx", "version.py")):
        features.add("onnx")
    for name in ("onnxscript", "onnxruntime", "transformers"):
        if glob.glob(os.path.join(packages, name, "__init__.py")):
            features.add(name)

# Substitutions. A tool's name is one only where it stands as a command.
substitutions = config.substitutions
substitutions.append(("%mlir-opt-plugin", f"mlir-opt --load-dialect-plugin={plugin}"))
substitutions.append(("%python", python or sys.executable))
# Before a command of a test that is in no such folder.
around_code = " ".join(f"{name}={value}" for name, value in config.around_code.items())
substitutions.append(("%around-code", f"env {around_code}"))
substitutions.append(("%varlen-src", source))
substitutions.append(("%mlir-libs", os.path.join(llvm, "lib")))
substitutions.append(("%mlir-dir", cache["MLIR_DIR"]))
substitutions.append(("%varlen-build", build))
# What a C program that links the runtime has to be compiled with.
sanitizers = cache.get("VARLEN_SANITIZE")
sanitize = f"-fsanitize={sanitizers} -fno-sanitize=function" if sanitizers else ""
substitutions.append(("%sanitize", sanitize))
# A C program of a user of libvarlen-c. Sanitizers of one compiler do not work
# with another's.
strict = "-std=c11 -Wall -Wextra -Werror"
substitutions.append(("%cc", f"clang-22 {sanitize} {strict}" if sanitizers else f"cc {strict}"))
library = os.path.join(build, "lib")
substitutions.append(("%capi", f"-I {source}/include -L {library} -lvarlen-c -Wl,-rpath,{library}"))
# Each module that varlen-opt reads is printed, parsed and compared, as text and as bytecode,
# before the passes run on it: tests of passes are tests of their input's syntax, too. --emit
# has no such option.
command = r"(?<![\w./%-])varlen-opt(?![\w./-])(?!.*--emit)"
substitutions.append((command, "varlen-opt --verify-roundtrip"))
