"""kill -9 at random moments, also within checkpoints; `benchmarks/kills.py` does the same for as long as one likes."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_killed_runs_end_like_the_one_that_was_not() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "kills.py"), "--kills", "5", "--rounds", "8"]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 differ from the one that was not" in done.stdout
    assert int(done.stdout.split(" runs were")[0].split()[-1]) >= 2
