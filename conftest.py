"""What the tests of examples in docstrings leave out."""

import re
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parent
FOR_DEVICES = [path for path in ROOT.glob("paretomkl/**/*.py") if re.search(r"^import torch", path.read_text(), re.M)]

# modules for devices need PyTorch, which is optional
collect_ignore = [] if find_spec("torch") else [str(path.relative_to(ROOT)) for path in FOR_DEVICES]
