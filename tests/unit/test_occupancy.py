"""A cell's directory holds one run at a time."""

import subprocess
import sys

import pytest

from async_rollout.config.errors import ConfigError
from async_rollout.runners.occupancy import occupied

HOLD = """\
import sys
from pathlib import Path
from async_rollout.runners.occupancy import occupied
with occupied(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_run_is_refused_until_the_first_is_gone(tmp_path):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout.readline() == b"held\n"
    with pytest.raises(ConfigError, match="another run is at work there"), occupied(tmp_path):
        pass
    holder.kill()
    holder.wait()
    with occupied(tmp_path / "new"), occupied(tmp_path):
        assert (tmp_path / "new").is_dir()
    holder.stdin.close()
    holder.stdout.close()


def test_what_cannot_be_a_directory_is_an_error_of_out(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="--out"), occupied(tmp_path / "file"):
        pass
