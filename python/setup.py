"""The tag of the wheel: any Python 3 loads the library, which is for one platform.

VARLEN_VERSION and VARLEN_PLATFORM are what tools/wheel.sh has found out."""

import os

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel


class Wheel(bdist_wheel):
    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self):
        return "py3", "none", os.environ["VARLEN_PLATFORM"]


setup(version=os.environ["VARLEN_VERSION"], cmdclass={"bdist_wheel": Wheel})
