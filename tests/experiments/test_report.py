"""From records to tables: the right C, the right p, the right marks, and the paper's numbers."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ttest_rel

from paretomkl._experiments.analysis import PAPER_SETS, PRINTED, Findings, compare, pick
from paretomkl._experiments.methods import Candidate, Outcome
from paretomkl._experiments.plan import FULL, METHODS, STUDIES, Cell
from paretomkl._experiments.report import TABLES, fill_places, make_tables, markdown, write_report
from paretomkl._experiments.results import Record, Results, read_records

PS = (0.01, 0.5, 1.0, 10.0, np.inf)
CS = (1.0, 10.0)
SHARED = Path(__file__).resolve().parents[3] / "shared" / "paper"


def path_outcome(rng, n_tasks=3, gain=0.0) -> Outcome:
    """Small p better by ``gain``; C = 10 better in cross-validation."""
    n_test = [100] * n_tasks
    points = []
    for C in CS:
        for k, p in enumerate(PS):
            right = np.clip(rng.normal(80 - 10 * gain * k, 2, n_tasks).round(), 0, 100).astype(int).tolist()
            cv = 0.5 + 0.01 * (C == 10) + 0.001 * (p == 0.5)
            accuracy = float(np.mean(right) / 100)
            points.append(Candidate({"C": C, "p": p}, cv, accuracy, right, 1e-5, [1.0 + k] * n_tasks))
    return Outcome(points, [f"task {t}" for t in range(n_tasks)], n_test, 9)


def other_outcome(rng, method) -> Outcome:
    def drawn(accuracy: float) -> float:
        return round(float(rng.normal(accuracy, 0.01)), 4)  # no more digits than the file keeps

    gap = None if method.endswith("svc") else 1e-5
    points = [Candidate({"C": 1.0}, 0.4), Candidate({"C": 10.0}, 0.6, drawn(0.7), [70] * 3, gap)]
    if method.startswith("mm-"):
        points = [
            Candidate({"alpha": 0.3, "mu": 0.1}, 0.6, drawn(0.6), [60] * 3, 1e-5),
            Candidate({"alpha": 0.6, "mu": 0.1}, 0.5, drawn(0.9), [90] * 3, 1e-5),
        ]
    return Outcome(points, ["task 0", "task 1", "task 2"], [100] * 3)


def only(records: list[Record], *methods: str) -> list[Record]:
    return [record for record in records if record.cell.method in methods]


def shifted(records: list[Record], method: str, dataset: str, accuracy: float) -> None:
    """Set the score of a method on a data set, with a little noise that differs between runs."""
    rng = np.random.default_rng(1)
    for record in only(records, method):
        if record.cell.dataset == dataset:
            record.outcome.points[-1].accuracy = accuracy + 0.001 * rng.standard_normal()


def all_records(runs=6, gain=0.1) -> list[Record]:
    rng = np.random.default_rng(0)
    return [
        Record(
            Cell(name, fraction, method, run),
            float(1 + run),
            {"numpy": "2.0", "source": "abc"},
            path_outcome(rng, study.n_tasks, gain) if method == "pareto" else other_outcome(rng, method),
        )
        for name, study in STUDIES.items()
        for fraction in study.fractions
        for method in study.methods
        for run in range(runs)
    ]


# -------------------------------------------------------------------------------------------------- statistics
@pytest.mark.parametrize("shift", [-0.02, -0.004, 0.0, 0.004, 0.02])
@pytest.mark.parametrize("seed", range(4))
def test_marks_come_from_a_paired_t_test(shift, seed):
    rng = np.random.default_rng(seed)
    ours, reference = rng.normal(0.8 + shift, 0.01, 12), rng.normal(0.8, 0.01, 12)
    expected = ttest_rel(ours, reference)
    mark = int(np.sign(expected.statistic)) if expected.pvalue < 0.05 else 0
    assert compare(dict(enumerate(ours)), dict(enumerate(reference))) == mark


def test_marks_pair_by_run_and_not_by_position():
    rng = np.random.default_rng(0)
    hard = rng.normal(0.8, 0.1, 10)  # runs differ far more than methods do
    reference = dict(enumerate(hard))
    ours = dict(reversed(list(enumerate(hard + 0.01 + rng.normal(0, 0.001, 10)))))
    assert compare(ours, reference) == 1
    assert compare(reference, ours) == -1
    assert compare(ours, {run: score for run, score in reference.items() if run < 1}) == 0, "one run tells nothing"
    assert compare(ours, ours) == 0


def test_cross_validation_chooses_C_at_each_p_and_the_smallest_on_a_tie():
    points = [
        Candidate({"C": 10.0, "p": 1.0}, 0.7, 0.1, [1]),
        Candidate({"C": 1.0, "p": 1.0}, 0.7, 0.2, [1]),
        Candidate({"C": 0.1, "p": 1.0}, 0.6, 0.9, [1]),
        Candidate({"C": 0.1, "p": 2.0}, 0.8, 0.3, [1]),
    ]
    outcome = Outcome(points, ["t"], [1])
    assert pick(outcome, 1.0) is points[1], "never by the accuracy on the test set"
    assert pick(outcome, 2.0) is points[3]
    assert pick(outcome, 1.0, C=0.1) is points[2]
    with pytest.raises(ValueError, match="p=3"):
        pick(outcome, 3.0)


def test_path_scores_follow_p():
    found = Findings(all_records(gain=0.4))
    path = found.path("robot", 10)
    assert path.ps.tolist() == list(PS)
    assert path.overall.shape == (6, 5)
    assert (path.C == 10).all()
    assert path.best_below_one == 0.01
    assert path.n_rising() == 6
    assert path.n_better(0.01, 1.0) == 6
    assert path.n_better(1.0, 0.01) == 0
    falling = Findings(all_records(gain=-0.4)).path("robot", 10)
    assert falling.n_rising() == 0
    assert falling.best_below_one == 0.5


def test_both_parameters_are_chosen_as_the_search_does():
    found = Findings(all_records())
    chosen = found.scores("robot", 10, "cv")
    outcomes = found.outcomes("robot", 10, "pareto")
    for run, outcome in outcomes.items():
        assert outcome.chosen.params == {"C": 10.0, "p": 0.5}
        assert chosen[run] == outcome.chosen.accuracy


def test_minimax_is_reported_with_the_better_alpha_as_in_the_paper():
    found = Findings(all_records())
    reported, outcomes = found.scores("robot", 10, "mm-ep"), found.outcomes("robot", 10, "mm-ep")
    assert min(reported.values()) > 0.8 > max(outcome.chosen.accuracy for outcome in outcomes.values())


# ----------------------------------------------------------------------------------------------------- the page
def test_every_table_is_made_and_well_formed(tmp_path):
    tables = make_tables(Findings(all_records()))
    assert set(tables) == set(TABLES)
    for name, text in tables.items():
        rows = [line for line in text.splitlines() if line.startswith("|")]
        assert rows or name == "coverage"
        blocks = re.split(r"\n(?!\|)", text)
        for block in blocks:
            widths = {line.count("|") for line in block.splitlines() if line.startswith("|")}
            assert len(widths) <= 1, (name, block)


def test_tables_match_the_records():
    records = all_records(gain=0.4)
    found = Findings(records)
    path = found.path("robot", 10)
    text = make_tables(Findings(records))["table-1"]
    row = next(line for line in text.splitlines() if line.startswith("| p = 1 |"))
    assert row.split("|")[2].strip() == f"{100 * path.overall[:, 2].mean():.2f} ▾ (88.63 ▾)"
    row = next(line for line in text.splitlines() if line.startswith("| p < 1 |"))
    assert row.split("|")[2].strip() == f"{100 * path.overall[:, 0].mean():.2f} (90.11)"


def test_a_partial_run_makes_the_tables_it_can():
    records = [one for one in all_records() if one.cell.dataset == "letter" and one.cell.method != "sparse"]
    tables = make_tables(Findings(records))
    assert "table-3" in tables
    assert "table-1" not in tables
    assert "–" in next(line for line in tables["table-4"].splitlines() if line.startswith("| Sparse"))
    assert make_tables(Findings([])) == {}


def test_the_report_is_the_same_from_the_file(tmp_path):
    records = all_records(runs=2)
    results = Results(tmp_path / "r.jsonl", FULL)
    for record in records:
        results.save(record)
    assert make_tables(Findings(read_records(results.path))) == make_tables(Findings(records))


def test_pages_and_figures_are_written(tmp_path):
    pytest.importorskip("matplotlib")
    records = all_records(runs=3)
    write_report(records, tmp_path)
    assert (tmp_path / "tables.md").read_text(encoding="utf-8").count("\n## ") == len(TABLES)
    for name in ("figure-1", "figure-2", "figure-3", "all-sets"):
        assert (tmp_path / f"{name}.png").stat().st_size > 10_000
    page = tmp_path / "page.md"
    page.write_text("Before\n<!-- begin seconds -->\nold\n<!-- end seconds -->\nafter\n", encoding="utf-8")
    write_report(records, tmp_path, page)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("Before\n<!-- begin seconds -->\n\n|")
    assert text.endswith("<!-- end seconds -->\nafter\n")
    assert "old" not in text


def test_a_place_without_an_end_is_refused():
    with pytest.raises(ValueError, match="end a"):
        fill_places("<!-- begin a -->", {"a": "x"})
    assert fill_places("nothing", {"a": "x"}) == "nothing"


def test_markdown_tables():
    assert markdown(("a", "b"), [("1", "2")]) == "| a | b |\n|---|---:|\n| 1 | 2 |"


# --------------------------------------------------------------------------------------------------- the paper
TABLE_ROWS = {
    "results": ("p<1", "p=1", "p=inf"),
    "results_compare_four_other_methods": ("sparse", "tang", "mm-aep", "mm-ep", "independent"),
}


def test_the_printed_numbers_are_complete():
    rows = [row for names in TABLE_ROWS.values() for row in names]
    columns = [(name, fraction) for name in PAPER_SETS for fraction in STUDIES[name].fractions]
    assert set(PRINTED) == {(*column, row) for column in columns for row in (*rows, "rising")}
    assert set(TABLE_ROWS["results_compare_four_other_methods"]) <= set(METHODS)
    assert all(PRINTED[*column, "rising"].value <= STUDIES[column[0]].n_tasks for column in columns)


def test_the_printed_numbers_match_the_paper():
    texts = list(SHARED.glob("*.txt"))
    if not texts:
        pytest.skip("the text of the paper is not here")
    source = texts[0].read_text(encoding="utf-8")
    for name, rows in TABLE_ROWS.items():
        start = source.index("\\label{Table:" + name + "}")
        body = source[start : source.index("\\end{table}", start)]
        underlined = {float(number) for number in re.findall(r"underline\{([\d.]+)\}", body)}
        numbers = {float(number) for number in re.findall(r"\d\d\.\d\d", body)}
        for (dataset, _, row), cell in PRINTED.items():
            if row in rows and dataset in PAPER_SETS[:6]:
                assert cell.value in numbers
                assert not cell.worse or cell.value in underlined


def test_variants_are_listed_with_the_paper_numbers():
    tables = make_tables(Findings(all_records()))
    lines = {line.split(" |")[0][2:]: line for line in tables["sensors"].splitlines()}
    assert {"10 %, 4 distances", "10 %, 24 sensors", "10 %, 2 distances", "50 %, printed"} <= set(lines)
    assert "| (90.11) | (88.63 ▾) | (87.01) | (87.93 ▾) |" in lines["10 %, printed"]
    assert "(" not in lines["10 %, 4 distances"]
    assert "20 %, distinct rows" in tables["duplicates"]
    assert "20 %, scaled to [0, 1]" in tables["scaling"]


def test_the_worst_certificate_is_reported():
    records = all_records(runs=2)
    before = make_tables(Findings(records))["coverage"]
    outcome = next(record.outcome for record in records if record.cell.method == "mm-aep")
    outcome.points[0].gap = 0.02
    after = make_tables(Findings(records))["coverage"]
    assert "nan" not in after
    assert "mm-aep 2.0e-02" not in before
    assert after.replace("mm-aep 2.0e-02", "mm-aep 1.0e-05") == before


def rows_of(table: str) -> dict[str, list[str]]:
    lines = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("|")]
    return {line[0].strip(): [cell.strip() for cell in line[1:]] for line in lines}


def test_the_default_is_compared_with_a_grid_search():
    records = all_records()
    for dataset, ours in (("robot", 0.9), ("steel", 0.5)):
        shifted(records, "svc", dataset, 0.7)
        shifted(records, "default", dataset, ours)
    found = Findings(records)
    tables = make_tables(found)
    rows = rows_of(tables["default"])
    assert len(rows) == 2 + 8 * 3 + 1, "header, rule, the paper's sets, and their mean"
    scores = [found.scores("robot", 20, method) for method in ("svc", "default")]
    svc, default = (100 * np.mean(list(of_method.values())) for of_method in scores)
    path = found.path("robot", 20)
    assert rows["robot 20 %"][0].startswith(f"{100 * path.overall[:, path.index(1.0)].mean():.2f}")
    assert rows["robot 20 %"][3:] == [f"{svc:.2f}", f"{default:.2f} ▴", f"{default - svc:+.2f} ▴"]
    assert rows["steel 10 %"][5].endswith(" ▾")
    assert rows["steel 10 %"][5].startswith("-2")
    of_all = [float(row[5].split()[0]) for name, row in rows.items() if name.endswith(" %")]
    assert float(rows["mean of 24"][5]) == pytest.approx(np.mean(of_all), abs=0.01)
    # in other tables the first mark compares with p < 1 or p = 1, the second with the grid search
    line = next(line for line in tables["table-2"].splitlines() if line.startswith("| Our default"))
    assert "△" in line.split("|")[2]
    assert "▽" in line.split("|")[5]
    assert rows_of(tables["honest"])["robot 10 %"][-1].endswith(" △")
    assert rows_of(tables["honest"])["segment-distinct 10 %"][-2:] == ["–", "–"]


def test_means_and_differences_use_only_paired_results():
    records = [one for one in all_records() if one.cell.method != "default" or one.cell.run > 3]
    records = [one for one in records if (one.cell.dataset, one.cell.method) != ("robot", "uniform")]
    found = Findings(records)
    rows = rows_of(make_tables(found)["default"])
    ours, theirs = (found.scores("robot", 10, method) for method in ("default", "svc"))
    assert len(ours) == 2
    expected = 100 * np.mean([ours[run] - theirs[run] for run in ours])
    assert rows["robot 10 %"][5].split()[0] == f"{expected:+.2f}"
    assert rows["robot 10 %"][2] == "–"
    assert "mean of 21" in rows


def test_methods_that_were_not_run_have_a_dash():
    tables = make_tables(Findings([one for one in all_records() if one.cell.method not in ("svc", "default")]))
    assert set(tables) == set(TABLES)
    assert rows_of(tables["default"])["letter 50 %"][3:] == ["–"] * 3
    assert set(rows_of(tables["table-2"])["Our default"]) == {"–"}


def test_gains_are_differences_between_table_entries():
    records = all_records(gain=0.4)
    lines = {
        line.split(" |")[0][2:]: line.split(" | ")[1:] for line in make_tables(Findings(records))["gains"].splitlines()
    }
    path = Findings(records).path("robot", 10)
    best = path.best_below_one
    expected = 100 * (path.overall[:, path.index(best)].mean() - path.overall[:, path.index(1.0)].mean())
    assert lines["robot 10 %"][1] == f"{expected:+.2f} ▴ (+1.48)", "the paper has 90.11 and 88.63"
    assert lines["robot 10 %"][3].startswith("-")
    assert "▾ (-1.62)" in lines["robot 10 %"][3]
    assert not any(name.startswith("synthetic") for name in lines)
