"""The page that the experiments write in addition to their tables."""

from __future__ import annotations

from paretomkl._experiments.plan import QUICK, make_plan
from paretomkl._experiments.slider import write_slider


def test_the_page_shows_the_first_run(tmp_path):
    plan = make_plan(["synthetic"], ["uniform"], runs=2, quick=True)
    found = write_slider(plan, QUICK, tmp_path)
    assert found.file == tmp_path / "trade-off-synthetic.html"
    assert "Synthetic: the trade-off along p" in found.file.read_text(encoding="utf-8")
    assert len(found.path) >= 100
    assert found.path.gap.max() <= 1e-5
    assert len(found.train) == len(found.test)
    assert [file.name for file in tmp_path.iterdir()] == ["trade-off-synthetic.html"]
