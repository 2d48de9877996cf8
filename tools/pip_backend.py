"""What `pip install .` of a checkout calls (PEP 517): `make wheel`, which builds the
compiler, links it into one library, and tries the wheel. `pip install -v .` shows how far it
is; the first build takes long."""

import os
import pathlib
import shutil
import subprocess

_ROOT = pathlib.Path(__file__).resolve().parent.parent


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Puts the wheel into a folder; returns its name."""
    # pip's environment of the build is not that of the packages make wants.
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    status = 1
    try:
        status = subprocess.run(["make", "wheel"], cwd=_ROOT, env=environment).returncode
    except OSError as error:
        print(f"make: {error}")
    if status:
        raise SystemExit(
            "varlen: `make wheel` has failed: run it in the checkout to see all of its output. It "
            "builds with LLVM 22, which it installs where it may, on Debian 12; without a wheel, "
            "`make build` and PYTHONPATH are enough (docs/start/python.md)"
        )
    # make leaves one.
    (wheel,) = (_ROOT / "build-release").glob("varlen-*.whl")
    shutil.copy(wheel, wheel_directory)
    return wheel.name


def build_sdist(sdist_directory, config_settings=None):
    raise SystemExit("varlen: no source distribution is made: expected a checkout")
