#!/usr/bin/env python3
"""Runs the tests of this folder without lit, by run_scripts.py: on a GPU, --device=cuda; what
is meant for one can be tried with CUDA tensors on the fake driver, --device=fake-cuda."""

import pathlib
import sys

folder = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(folder.parent / "python"))

import run_scripts

if __name__ == "__main__":
    sys.exit(run_scripts.main(folder))
