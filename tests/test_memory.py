"""Memory that was freed is not given back to the system."""

import os
import platform
import subprocess
import sys

import pytest

PROGRAM = """
import resource
import numpy as np
from ellzero.memory import keep_freed

def pages():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    several = [np.ones(1 << 18) for _ in range(8)]  # 2 MB each
    del several
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

if {keep}:
    keep_freed()
print(min(pages() for _ in range(6)))  # what else goes on may take pages away
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="this is about malloc of glibc")
def test_freed_memory_is_used_again():
    # Who sets malloc's variables has chosen for the process, and malloc stays with that.
    environment = {name: value for name, value in os.environ.items() if "MALLOC" not in name}

    def pages(keep):
        program = [sys.executable, "-c", PROGRAM.format(keep=keep)]
        return int(subprocess.check_output(program, env=environment, text=True))

    assert min(pages(keep=True) for _ in range(3)) < 50 < pages(keep=False)
