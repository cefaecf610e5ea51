"""The pictures in the text of the pages, drawn by the code above them.

`python doc/page_pictures.py [page ...]` runs the code of the pages that show `pictures/<name>.svg`, and saves the
figure that is open where each picture stands.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

from stored_examples import use_site_style

DOC = Path(__file__).parent
PARTS = re.compile(r"^```python\n(?P<code>.*?)^```|^!\[.*?\]\((?P<picture>\S*pictures/\S+\.svg)\)", re.M | re.S)


def pages() -> list[Path]:
    return [page for page in sorted(DOC.rglob("*.md")) if re.search(r"^!\[.*pictures/", page.read_text("utf-8"), re.M)]


def draw(page: Path) -> None:
    from matplotlib import pyplot as plt

    names: dict[str, Any] = {}
    for part in PARTS.finditer(page.read_text("utf-8")):
        if part["code"]:
            exec(compile(part["code"], page.name, "exec"), names)
            continue
        file = page.parent / part["picture"]
        file.parent.mkdir(exist_ok=True)
        plt.gcf().savefig(file, metadata={"Date": None})
        plt.close("all")
        print(file.relative_to(DOC))


if __name__ == "__main__":
    from matplotlib import pyplot as plt

    plt.switch_backend("Agg")
    use_site_style()
    warnings.simplefilter("ignore")
    chosen = [Path(name).resolve() for name in sys.argv[1:]] or pages()
    os.chdir(tempfile.mkdtemp())  # some pages write files
    for page in chosen:
        draw(page)
