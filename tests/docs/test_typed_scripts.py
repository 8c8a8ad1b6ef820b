# SPDX-License-Identifier: Apache-2.0
"""Every Python script that the documentation shows passes `mypy --strict`, as its user would run it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import evenhand
from tests.docs.documents import ROOT, blocks


def test_every_script_of_the_documentation_passes_mypy_strict(tmp_path: Path) -> None:
    """Whoever annotates a script finds all that it takes in `import evenhand`."""
    scripts = sorted((ROOT / "examples").glob("*.py"))
    for block in blocks("python"):
        script = tmp_path / f"{Path(block.document).stem.replace('-', '_')}_{block.line}.py"
        script.write_text(block.text)
        scripts.append(script)
    assert len(scripts) > 10
    package = Path(evenhand.__file__).parent
    assert (package / "py.typed").exists()  # without it, nothing of the package would be known
    ended = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", *scripts],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "MYPYPATH": str(package.parent), "HOME": str(tmp_path)},
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
