"""install.py BUILD PREFIX RUN: installs the build into PREFIX, alone, unless that was done
for this RUN. Any number of tests may ask at once."""

import fcntl
import pathlib
import shutil
import subprocess
import sys


def main():
    build, prefix, run = sys.argv[1:]
    done = pathlib.Path(f"{prefix}.run")
    with open(f"{prefix}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if done.exists() and done.read_text() == run:
            return
        done.unlink(missing_ok=True)
        shutil.rmtree(prefix, ignore_errors=True)
        subprocess.run(
            ["cmake", "--install", build, "--prefix", prefix],
            check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        done.write_text(run)


main()
