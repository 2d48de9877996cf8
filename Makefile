# The front door. Every goal installs what it needs and is missing, and does
# nothing twice; CMake's presets do the work.

SHELL := /bin/bash
MAKEFLAGS += --no-print-directory

# Debian's LLVM.
LLVM := /usr/lib/llvm-22
export PATH := $(LLVM)/bin:$(PATH)

.PHONY: build demo packages check check-quick check-all train bench gpu-kit bench-gpu conformance fuzz fuzz-parser mutate release wheel release-wheel wheel-binaries asan sanitize \
	docs site lint format clean

# $(call compile,PRESET,FOLDER)
define compile
@test -f $(2)/build.ninja || cmake --preset $(1)
@cmake --build $(2)
endef

# $(call find_xla,FOLDER): has a configuration find jaxlib, for libvarlen-xla.
define find_xla
@tools/venv.sh build python/requirements-jax.txt
@grep -q '^VARLEN_XLA_INCLUDE_DIR:PATH=/' $(1)/CMakeCache.txt || cmake $(1) >/dev/null
endef

build:
	@tools/setup.sh build
	$(call compile,dev,build)

demo: build
	@python3 examples/demo.py --build build

# check-all is check with longer lists, more random inputs and other seeds of the same tests:
# for a release, or a night. check-quick has the tests of passes and one of numbers.
check: RUN_TESTS :=
check-all: RUN_TESTS := --long
check check-all:
	@tools/setup.sh build check
	@$(MAKE) --no-print-directory --jobs=2 build packages
	$(call find_xla,build)
	@cmake --build build --target VarlenXLA
	@tools/run-tests.py --build build $(RUN_TESTS)

# The Python packages of the tests, which arrive while the build compiles.
packages:
	@tools/venv.sh build
	@tools/venv.sh build python/requirements-torch.txt
	@tools/venv.sh build benchmarks/requirements-iree.txt || echo "no IREE: its tests are not run" >&2
	@tools/venv.sh build benchmarks/requirements-gpu.txt || echo "no nvdisasm: instructions of GPU kernels are not counted" >&2
	@tools/venv.sh build python/requirements-jax.txt
	@tools/venv.sh build python/requirements-onnx.txt
	@tools/venv.sh build site/requirements.txt

check-quick: build
	@tools/setup.sh check
	@tools/venv.sh build
	@tools/run-tests.py --build build --quick

# A small language model, beside the same one in PyTorch.
train: build
	@tools/setup.sh check
	@tools/venv.sh build benchmarks/requirements.txt
	@VARLEN_BUILD=build build/venv/bin/python examples/train.py --torch --out build/train

# Against PyTorch on the same machine, and zentorch and onnxruntime in an environment of
# their own.
bench: build
	@tools/setup.sh check
	@tools/venv.sh build benchmarks/requirements.txt
	@tools/venv.sh build/peers benchmarks/requirements-peers.txt
	@build/venv/bin/python benchmarks/cpu.py --build build

# A folder for a machine with a GPU, with the wheel: `python3 run.py --minutes=8` in it compiles,
# checks and times kernels there, beside peers, whose packages come from PyPI.
gpu-kit: release-wheel
	@cmake --build build-release --target varlen-cuda-test
	@build/venv/bin/python benchmarks/gpu/build.py

# On this machine's GPU. PYTHON is one that has PyTorch for CUDA.
bench-gpu: gpu-kit
	@$(or $(PYTHON),python3) build/gpu-kit/run.py --minutes=30 --out=build/bench/gpu

# Where conformance and fuzz run: cpu, or sim:CHIP, which is the executor.
DEVICE := cpu

# Every parameter of FlashAttention's tests of packed batches, ONNX's models of one node, and
# exports of transformers.
conformance: build
	@tools/setup.sh check
	@tools/venv.sh build
	@tools/venv.sh build python/requirements-torch.txt
	@tools/venv.sh build python/requirements-onnx.txt
	@tools/venv.sh build python/requirements-transformers.txt
	@PYTHONPATH=python VARLEN_BUILD=build build/venv/bin/python test/ONNX/Inputs/node-tests.py
	@PYTHONPATH=python VARLEN_BUILD=build build/venv/bin/python test/ONNX/Inputs/exports.py
	@build/venv/bin/python test/Integration/conformance.py --build build \
	  --device=$(DEVICE)
	@build/venv/bin/python test/Integration/conformance.py --build build \
	  --device=$(DEVICE) --gradients

# Random and hostile inputs, SECONDS for each DOOR (see test/Fuzz); default: all.
# SEED=S repeats a run.
DOOR := $(subst _,-,$(filter-out __init__ parser,$(basename $(notdir $(wildcard test/Fuzz/doors/*.py)))))
fuzz: SECONDS := 60
fuzz: build
	@tools/setup.sh check
	@tools/venv.sh build
	@tools/venv.sh build python/requirements-torch.txt
	$(call find_xla,build)
	@cmake --build build --target VarlenXLA
	@status=0; for door in $(DOOR); do build/venv/bin/python test/Fuzz/fuzz.py --build build \
	  --door=$$door --seconds=$(SECONDS) --device=$(DEVICE) $(if $(SEED),--seed=$(SEED)) \
	  || status=1; done; exit $$status

# The parser, the verifier and bytecode, guided by what of our code is reached.
fuzz-parser: SECONDS := 60
fuzz-parser: build
	@tools/setup.sh asan check
	@tools/venv.sh build
	@test -f build-fuzz/build.ninja || cmake --preset fuzz
	@cmake --build --preset fuzz
	@build/venv/bin/python test/Fuzz/fuzz.py --build build-fuzz --door=parser \
	  --seconds=$(SECONDS)$(if $(SEED), --seed=$(SEED))

# Every fault that can be put into the kernels, one at a time, in the executor.
mutate: build
	@tools/setup.sh check
	@tools/venv.sh build
	@PYTHONPATH=python build/venv/bin/python executor/test/mutation.py --all --build build

# A wheel for Python with the library and the tools. It is tried in environments of
# its own, with PYTHONS.
wheel: PYTHONS := python3
wheel: wheel-binaries
	@PYTHON=build/venv/bin/python tools/wheel.sh build-release $(PYTHONS)

# The same, tried with the standard library alone.
release-wheel: wheel-binaries
	@PYTHON=build/venv/bin/python tools/wheel.sh build-release --with=

wheel-binaries:
	@tools/setup.sh build check release
	@tools/venv.sh build
	@test -f build-release/build.ninja || cmake --preset release
	$(call find_xla,build-release)
	@cmake --build build-release --target wheel-binaries

# One archive that runs where no LLVM is installed. The tests show that what it
# registers of MLIR is enough.
release:
	@tools/setup.sh build check release
	@tools/venv.sh build
	@test -f build-release/build.ninja || cmake --preset release
	$(call find_xla,build-release)
	@cmake --build build-release
	@tools/package.sh build-release
	@tools/run-tests.py --build build-release

asan:
	@tools/setup.sh build asan check
	@tools/venv.sh build
	$(call compile,asan,build-asan)
	@tools/run-tests.py --build build-asan

# The GPU runtime and the launches of libvarlen-c, in many threads and with every failure,
# under both sanitizers: with a driver that needs no GPU.
sanitize: build
	@tools/setup.sh asan
	@for kind in thread address; do echo "$$kind sanitizer"; \
	  tools/sanitize-gpu-runtime.sh $$kind build/sanitize-$$kind build || exit 1; done

docs: build
	@tools/gen-docs.sh docs/reference

# The documentation as a site, in build/site: any web server, or none, will do. The
# reference of the Python package imports it, with PyTorch.
site:
	@tools/setup.sh site
	@tools/venv.sh build
	@tools/venv.sh build python/requirements-torch.txt
	@tools/venv.sh build site/requirements.txt
	@build/venv/bin/python -m sphinx --quiet --fail-on-warning --keep-going -c site \
	  -d build/site-cache . build/site
	@echo build/site/index.html

lint:
	@tools/setup.sh check lint
	@test -f build-lint/build.ninja || cmake --preset lint
	@cmake --build build-lint --target varlen-headers VarlenPrecompiled
	@tools/format.sh --check
	@tools/check-words.py
	$(call find_xla,build-lint)
	@tools/lint.sh build-lint

format:
	@tools/setup.sh lint
	@tools/format.sh

clean:
	rm -rf build build-lint build-release build-asan build-fuzz
