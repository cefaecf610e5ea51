"""The gallery: one style, and the output of examples whose data are not shipped, shown where they are not at hand.

`PARETOMKL_DATA=... python doc/stored_examples.py [name ...]` runs these examples and stores what they print and draw in
doc/stored/. As an extension of Sphinx, this module puts it into the pages of those that were not run.
"""

from __future__ import annotations

import ast
import json
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from textwrap import indent
from typing import Any

from sphinx.errors import ExtensionError

DOC = Path(__file__).parent
STORED = DOC / "stored"
NEEDED = {"mfeat": "mfeat", "regression": "school", "landmine": "landmine"}  # example: data set
COMMAND = "python doc/stored_examples.py"


def use_site_style(*of_gallery: object) -> None:
    """Draw every figure in the style of the site; the gallery calls this before each example."""
    from matplotlib import pyplot as plt

    plt.style.use(DOC / "site.mplstyle")


def code_blocks(name: str) -> list[str]:
    """The code of an example, cut where its text stands."""
    from sphinx_gallery.py_source_parser import remove_config_comments, split_code_and_text_blocks

    _, blocks = split_code_and_text_blocks(str(DOC.parent / "examples" / f"plot_{name}.py"))
    return [remove_config_comments(block.content).strip("\n") for block in blocks if block.type == "code"]


def run(name: str) -> None:
    """Run an example and store what each of its blocks prints and draws."""
    from matplotlib import pyplot as plt

    plt.switch_backend("Agg")
    use_site_style()
    STORED.mkdir(exist_ok=True)
    names: dict[str, Any] = {"__name__": "__main__"}
    found, n_pictures = [], 0
    for code in code_blocks(name):
        with redirect_stdout(StringIO()) as printed:
            exec(compile(code, name, "exec"), names)
        pictures = []
        for number in plt.get_fignums():
            n_pictures += 1
            pictures.append(f"{name}-{n_pictures}.png")
            plt.figure(number).savefig(STORED / pictures[-1], dpi=110)
        plt.close("all")
        found.append({"code": code, "output": printed.getvalue().rstrip(), "pictures": pictures})
    (STORED / f"{name}.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")


def stored(name: str) -> list[dict[str, Any]]:
    """What the blocks of an example printed and drew, as long as its code is still the same."""
    found: list[dict[str, Any]] = json.loads((STORED / f"{name}.json").read_text("utf-8"))
    if [ast.dump(ast.parse(block["code"])) for block in found] != [ast.dump(ast.parse(c)) for c in code_blocks(name)]:
        raise ExtensionError(f"examples/plot_{name}.py has changed since its output was stored; run: {COMMAND} {name}")
    return found


def insert(app: Any, page: str, source: list[str]) -> None:
    """Put the stored output behind the blocks of an example that was not run."""
    folder, _, name = page.partition("/plot_")
    if folder != "auto_examples" or name not in app.config.shown_only:
        return
    text = source[0]
    for block, code in zip(stored(name), code_blocks(name), strict=True):
        code = indent(code, "    ")
        if code not in text:
            raise ExtensionError(f"{page} lacks a block of examples/plot_{name}.py.")
        behind = [
            f".. image:: /stored/{one}\n   :alt: {name}\n   :class: sphx-glr-single-img" for one in block["pictures"]
        ]
        if block["output"]:
            output = indent(block["output"], "    ")
            behind.append(f".. rst-class:: sphx-glr-script-out\n\n .. code-block:: none\n\n{output}")
        text = text.replace(code, "\n\n".join([code, *behind, ""]))
    source[0] = text


def setup(app: Any) -> dict[str, bool]:
    app.add_config_value("shown_only", [], "env", list)
    app.connect("source-read", insert)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    for name in sys.argv[1:] or NEEDED:
        run(name)
