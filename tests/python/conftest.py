"""Where the program, the shared models and the Python packages are. What is missing is said, not guessed."""
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("OPENRKNN_BINARY", ROOT / "build/release/bin/openrknn"))
SHARED = pathlib.Path(os.environ.get("OPENRKNN_SHARED", ROOT.parent / "shared"))


def run_openrknn(*arguments, check=True):
    """Runs the command; on failure the test shows its error text."""
    command = [str(BINARY), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert done.returncode in (0, 1, 2), f"{command} ended with {done.returncode}\n{done.stderr}"
    if check:
        assert done.returncode == 0, f"{command}\n{done.stderr}"
    return done


@pytest.fixture(scope="session")
def openrknn():
    if not BINARY.is_file():
        pytest.fail(f"{BINARY} is not there: build the release preset first (tools/test.sh does)")
    return run_openrknn


def require_shared(path):
    """A file of the shared models, or a skip that says where it was looked for."""
    full = SHARED / path
    if not full.is_file():
        pytest.skip(f"{full} is not there; set OPENRKNN_SHARED to the folder of shared models")
    return full
