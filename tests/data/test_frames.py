"""Tables as they are: text, categories, booleans and gaps."""

import datetime
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from paretomkl import (
    ParetoMKLClassifier,
    ParetoMKLClassifierCV,
    ParetoMKLOutlierDetector,
    ParetoMKLRegressor,
    TableEncoder,
    load_model,
    pareto_path,
    save_model,
    sources,
)
from paretomkl._select.held_out import held_out_by_task
from paretomkl.exceptions import MissingValueWarning, UnseenLevelWarning
from paretomkl.kernels import KernelBank
from paretomkl.kernels._preparing import Preparation
from paretomkl.report import compare

N = 90
GAPS = pytest.mark.filterwarnings("ignore::paretomkl.exceptions.MissingValueWarning")


def table(seed: int = 0, gaps: bool = True) -> tuple[pd.DataFrame, np.ndarray]:
    """Patients of two sites, with all kinds of columns, and whether they relapse."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.normal(50, 10, N).round(1),
            "sex": rng.choice(["f", "m"], N),
            "site": rng.choice(["north", "south"], N),
            "stage": pd.Categorical(rng.choice(["I", "II", "III"], N), ["I", "II", "III"], ordered=True),
            "smoker": rng.random(N) > 0.5,
            "marker": rng.normal(size=N),
        }
    )
    score = (frame["age"] - 50) / 10 + (frame["sex"] == "m") + frame["stage"].cat.codes + frame["marker"]
    y = np.where(score + rng.normal(size=N) / 2 > 1.5, "relapse", "well")
    if gaps:
        frame.loc[rng.random(N) < 0.1, "age"] = np.nan
        frame.loc[rng.random(N) < 0.1, "sex"] = None
        frame.loc[rng.random(N) < 0.1, "stage"] = None
    return frame, y


def by_hand(frame: pd.DataFrame, train: pd.DataFrame) -> np.ndarray:
    """Codes of a table, as the reader is expected to make them."""
    sexes = sorted(train["sex"].dropna().unique())
    return np.column_stack(
        [
            frame["age"],
            frame["sex"].map({sex: float(k) for k, sex in enumerate(sexes)}).astype(float),
            frame["stage"].astype(object).map({"I": 0.0, "II": 1.0, "III": 2.0}).astype(float),
            frame["smoker"].astype(float),
            frame["marker"],
        ]
    )


@GAPS
def test_a_frame_is_learned_from_as_by_hand():
    """Medians and indicators made with pandas give the same decisions, if indicators share a scale."""
    frame, y = table()
    X = frame.drop(columns="site")
    new = table(1)[0].drop(columns="site")
    ready = X.assign(stage=X["stage"].cat.codes.replace(-1, np.nan).astype(float), smoker=X["smoker"].astype(float))
    ready["age"] = ready["age"].fillna(ready["age"].median())
    ready["stage"] = ready["stage"].fillna(ready["stage"].median())
    size = 1 / np.sqrt(sum((X["sex"].fillna("none") == sex).var(ddof=0) for sex in ("f", "m", "none")))
    level = {sex: (X["sex"].fillna("none") == sex).mean() for sex in ("f", "m", "none")}

    def numbers(some: pd.DataFrame) -> np.ndarray:
        stage = some["stage"].astype(object).map({"I": 0.0, "II": 1.0, "III": 2.0}).astype(float)
        plain = np.column_stack(
            [
                some["age"].fillna(X["age"].median()),
                stage.fillna(ready["stage"].median()),
                some["smoker"].astype(float),
                some["marker"],
            ]
        )
        scaled = (plain - reference.mean(axis=0)) / reference.std(axis=0) if len(reference) else plain
        sexes = [size * ((some["sex"].fillna("none") == sex) - level[sex]) for sex in level]
        return np.column_stack([scaled, *sexes])

    reference = np.empty((0, 0))
    reference = numbers(X)[:, :4]
    bank = KernelBank(["linear", ("rbf", {"sigma": 2.0})], normalize="capacity", standardize=False)
    plain = ParetoMKLClassifier(kernels=bank, tol=1e-9).fit(numbers(X), y)  # decisions differ by less than its root
    ours = ParetoMKLClassifier(kernels=KernelBank(bank.kernels, "capacity", standardize=True), tol=1e-9).fit(X, y)
    assert_allclose(ours.decision_function(new), plain.decision_function(numbers(new)), atol=1e-6)


@GAPS
@pytest.mark.parametrize("share", ["kernel", "function", "everything", "nothing"])
def test_pandas_and_polars_agree_with_task_column_and_tasks(share):
    frame, y = table()
    there = pl.DataFrame({c: [None if pd.isna(v) else v for v in frame[c]] for c in frame if c != "stage"})
    there = there.with_columns(pl.Series("stage", frame["stage"].cat.codes.replace(-1, None).tolist()))
    there = there.select(list(frame))
    given = {"share": share, "C": 3.0, "kernels": ["linear", "rbf"]}
    column = ParetoMKLClassifier(task_column="site", **given).fit(frame, y)
    other = ParetoMKLClassifier(task_column="site", **given).fit(there.drop("stage"), y)
    pandas = ParetoMKLClassifier(task_column="site", **given).fit(frame.drop(columns="stage"), y)
    X, tasks = frame.drop(columns="site"), frame["site"].to_numpy()
    argument = ParetoMKLClassifier(**given).fit(X, y, tasks=tasks)
    assert_allclose(column.decision_function(frame), argument.decision_function(X, tasks=tasks), atol=1e-9)
    decided = pandas.decision_function(frame.drop(columns="stage"))
    assert_allclose(other.decision_function(there.drop("stage")), decided, atol=1e-9)


@GAPS
def test_levels_of_all_rows_leak_nothing():
    """A level that the training rows of a fold lack has no effect: the bank is that of the levels of the fold."""
    rng = np.random.default_rng(0)
    codes, x = rng.integers(0, 3, 60).astype(float), rng.normal(size=60)
    X = np.column_stack([x, codes])
    train, test = X[codes < 2], X[codes == 2]
    wide = KernelBank().fit(train, n_levels={1: 3})
    narrow = KernelBank().fit(train, n_levels={1: 2})
    assert wide.evaluator.preparation is not None
    values = [bank.stack(bank.side(test), bank.side(train)) for bank in (wide, narrow)]
    assert_allclose(*values, atol=1e-12)


def test_numbers_have_no_preparation():
    """Arrays of numbers, and frames of numbers, are read as before."""
    X = np.random.default_rng(0).normal(size=(40, 3))
    assert KernelBank().fit(X).evaluator.preparation is None
    assert not hasattr(ParetoMKLClassifier().fit(pd.DataFrame(X).add_prefix("x"), X[:, 0] > 0), "codings_")


@GAPS
def test_baselines_see_the_same_table():
    """Without gaps, indicators made beforehand give the same scores; with gaps, there are scores too."""
    given = {"Cs": [1.0], "s": 1.1, "cv": 2}
    names: list[dict[str, list[float]]] = []
    frame, y = table(gaps=False)
    X = frame.drop(columns="site")
    for some in (X, TableEncoder().fit_transform(X)):
        comparison = compare(ParetoMKLClassifierCV(**given).fit(some, y), some, y)
        names.append({baseline.name: baseline.folds.tolist() for baseline in comparison.baselines})
    assert names[0] == names[1]
    with_gaps = table()[0].drop(columns="site")
    comparison = compare(ParetoMKLClassifierCV(**given).fit(with_gaps, y), with_gaps, y)
    assert all(np.isfinite(baseline.folds).all() for baseline in comparison.baselines)


@GAPS
def test_searches_paths_pipelines_and_copies(tmp_path):
    frame, y = table()
    search = ParetoMKLClassifierCV(Cs=[3.0], s=1.1, cv=2, task_column="site", share="kernel").fit(frame, y)
    assert search.score(frame, y) > 0.8
    save_model(search, tmp_path / "m.skops")
    again = load_model(tmp_path / "m.skops")
    new = table(1)[0]
    assert_allclose(again.decision_function(new), search.decision_function(new), atol=1e-12)
    X = frame.drop(columns="site")
    assert np.mean(cross_val_score(clone(ParetoMKLClassifier(C=3)), X, y, cv=2)) > 0.7
    assert pareto_path(X, y, ps=[1.0]).models[0].task_accuracy is not None
    assert set(ParetoMKLOutlierDetector().fit(X).predict(X)) <= {-1, 1}
    both = sources({"clinic": ["age", "sex", "stage"], "rest": ["smoker", "marker"]})
    assert ParetoMKLRegressor(kernels=both).fit(X, X["marker"]).source_shares_["rest"] > 0.3


def test_what_is_missing_is_said_in_training_and_at_prediction():
    frame, y = table()
    X = frame.drop(columns="site").assign(empty=[1.0] + [np.nan] * (N - 1))
    with pytest.warns(MissingValueWarning, match="Column 'empty' is nearly empty and left out") as found:
        clf = ParetoMKLClassifier().fit(X, y)
    said = found[0].message
    assert said.columns == {c: int(n) for c, n in X.isna().sum().items() if n}
    assert said.n_rows == N - 1
    assert said.share == pytest.approx(X.isna().to_numpy().mean())
    assert said.unused == ("empty",)
    assert "'empty' in" not in str(said)
    with pytest.warns(MissingValueWarning, match="'age' in 1 row"):
        changed = clf.predict(X[:1].assign(age=np.nan, sex="f", stage="I"))
    assert changed.shape == (1,)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MissingValueWarning)
        other = X[:20].assign(empty=5.0)
        assert_allclose(clf.decision_function(other), clf.decision_function(X[:20]), atol=1e-12)


def test_scores_of_folds_note_the_gaps_of_the_table_once():
    frame, y = table()
    X = frame.drop(columns="site").assign(sex=["rare", *frame["sex"][1:]])  # a level that training folds may lack
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        search = ParetoMKLClassifierCV(Cs=[1.0], s=1.1, cv=3).fit(X, y)
        del found[:]
        assert held_out_by_task(search, X, y).rows.sum() == N
    assert [type(one.message) for one in found] == [MissingValueWarning]


@pytest.mark.parametrize("values", [[1.0, 2.0], ["x", "y"]], ids=["numbers", "text"])
def test_nearly_empty_columns_are_left_out_and_noted_once(values):
    """Also those of text; at prediction their gaps, and their values, are nobody's business."""
    frame, y = table(gaps=False)
    X = frame[["age", "marker"]]
    wide = X.assign(empty=pd.Series(values))
    with pytest.warns(MissingValueWarning, match="^Column 'empty' is nearly empty and left out.$"):
        clf = ParetoMKLClassifier(tol=1e-9).fit(wide, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        decided = clf.decision_function(wide)
        assert_allclose(clf.decision_function(wide.assign(empty=values[0])), decided, atol=1e-12)
    assert_allclose(ParetoMKLClassifier(tol=1e-9).fit(X, y).decision_function(X), decided, atol=1e-6)


def test_messages_are_bounded():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 300))).add_prefix("a long name of a column, number ")
    with pytest.warns(MissingValueWarning) as found:
        ParetoMKLClassifier().fit(X.mask(X > 1.5), np.arange(30) % 2)
    assert len(str(found[0].message)) <= 400
    assert len(found[0].message.columns) > 100


@GAPS
def test_levels_that_training_did_not_have_are_noted():
    frame, y = table()
    X = frame.drop(columns="site")
    clf = ParetoMKLClassifier().fit(X, y)
    with pytest.warns(UnseenLevelWarning, match="Column 'sex' has a level .* in 2 rows: 'x'") as found:
        clf.predict(X.assign(sex=["x", "x", *X["sex"][2:]]))
    noted = next(one.message for one in found if isinstance(one.message, UnseenLevelWarning))
    assert (noted.column, noted.levels, noted.rows) == ("sex", ("x",), (0, 1))


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (pd.date_range("2024-01-01", periods=N), "Column 'bad' contains dates or times.*days since"),
        ([f"2024-01-{k % 28 + 1:02d}" for k in range(N)], "Column 'bad' contains dates or times"),
        ([f"patient {k}" for k in range(N)], "Column 'bad' contains 90 different texts .*looks like names"),
        (["1,5"] * N, "Column 'bad' contains numbers with a comma"),
        ([1.5] * (N - 1) + ["?"], "Column 'bad' contains numbers and text, such as '\\?' in row 89"),
        ([[1, 2]] * N, "Column 'bad' contains lists"),
        ([np.inf] + [1.0] * (N - 1), "Input X contains infinity.*column 'bad'.*replace it with a number"),
        (pd.to_timedelta(np.arange(N), unit="D"), "Column 'bad' contains dates or times"),
        ([datetime.time(k % 24) for k in range(N)], "Column 'bad' contains dates or times"),
        ([datetime.timedelta(k) for k in range(N)], "Column 'bad' contains dates or times"),
        (["unknown"] + [f"2024-01-{k % 28 + 1:02d}" for k in range(1, N)], "Column 'bad' contains dates or times"),
        (np.ones(N) + 1j, "Column 'bad' contains complex numbers"),
    ],
)
@GAPS
def test_columns_that_cannot_be_used_are_named(column, words):
    frame, y = table()
    with pytest.raises(ValueError, match=words):
        ParetoMKLClassifier(task_column="site").fit(frame.assign(bad=column), y)
    with pytest.raises(ValueError, match=words):
        TableEncoder().fit(frame.assign(bad=column))


@GAPS
def test_a_model_of_a_table_needs_a_table():
    frame, y = table()
    X = frame.drop(columns="site")
    clf = ParetoMKLClassifier().fit(X, y)
    with pytest.raises(ValueError, match="text or categories in the columns 'sex' and 'stage'"):
        clf.predict(np.zeros((2, 5)))
    with pytest.raises(ValueError, match="Column 'age' must contain numbers, as in training; row 0 has 'old'"):
        clf.predict(X.astype({"age": object}).assign(age="old"))
    numbers = X[["age", "marker"]]
    plain = ParetoMKLClassifier().fit(numbers, y)
    assert_allclose(plain.decision_function(numbers.astype(object)), plain.decision_function(numbers), atol=1e-12)


@GAPS
def test_columns_at_other_places_are_refused_before_they_are_read():
    """An error about the text in the wrong place would say nothing about its cause."""
    frame, y = table()
    X = frame.drop(columns="site")
    clf = ParetoMKLClassifier().fit(X, y)
    with pytest.raises(ValueError, match="same order as they were in fit"):
        clf.predict(X[X.columns[::-1]])
    with pytest.raises(ValueError, match="yet now missing:\n- marker"):
        clf.predict(X.drop(columns="marker"))
    with pytest.raises(ValueError, match="several columns named 'age'; rename them"):
        ParetoMKLClassifier().fit(X.rename(columns={"marker": "age"}), y)
    with_text = ParetoMKLClassifier().fit({"a": X, "b": X[["age"]]}, y)
    with pytest.raises(ValueError, match="'marker' is at another place"):
        with_text.predict({"a": X[X.columns[::-1]], "b": X[["age"]]})


@GAPS
@pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum(["f", "m", "x"])], ids=repr)
def test_categories_of_polars_are_those_of_pandas(kind):
    frame, y = table()
    ours = frame[["age", "sex"]].astype({"sex": "category"})
    theirs = pl.DataFrame({c: [None if pd.isna(v) else v for v in ours[c]] for c in ours})
    theirs = theirs.with_columns(pl.col("sex").cast(kind))
    decided = ParetoMKLClassifier(tol=1e-9).fit(ours, y).decision_function(ours)
    assert_allclose(ParetoMKLClassifier(tol=1e-9).fit(theirs, y).decision_function(theirs), decided, atol=1e-6)


def test_tables_that_cannot_be_read_say_what_to_pass():
    with pytest.raises(TypeError, match=r"X is a LazyFrame.*pass X.collect\(\)"):
        ParetoMKLClassifier().fit(pl.LazyFrame({"a": [1.0, 2.0]}), [0, 1])


# ----------------------------------------------------------------------------------------------- encoder
def test_the_encoder_passes_scikit_learns_checks():
    check_estimator(TableEncoder())


@GAPS
def test_the_encoder_gives_the_numbers_that_the_bank_sees():
    frame, _ = table()
    X, new = frame.drop(columns="site"), table(1)[0].drop(columns="site")
    encoder = TableEncoder().set_output(transform="pandas").fit(X)
    made = encoder.transform(new)
    assert made.columns.tolist() == ["age", "sex=f", "sex=m", "sex=missing", "stage", "smoker", "marker"]
    preparation = Preparation.of(by_hand(X, X), n_levels={1: 2})
    expected = preparation(by_hand(new, X))[:, preparation.expanded(np.arange(5))]
    assert_allclose(made, expected)
    assert encoder.levels_ == {"sex": ("f", "m"), "stage": ("I", "II", "III")}


@GAPS
def test_the_encoder_before_a_linear_kernel_changes_nothing():
    """Without scaling, encoding before the estimator or inside it is the same."""
    frame, y = table()
    X = frame.drop(columns="site")
    clf = ParetoMKLClassifier(kernels=KernelBank(["linear", "rbf"], standardize=False), tol=1e-8)
    piped = make_pipeline(TableEncoder(), clone(clf)).fit(X, y)
    assert_allclose(piped.decision_function(X), clf.fit(X, y).decision_function(X), atol=1e-12)


# ----------------------------------------------------------------------------------------- missing sources
def blocks(seed: int = 0) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Three sources of the same classes; a third of the blocks is missing, and every sample has one."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, 120)
    X = {name: rng.normal(size=(120, 4)) + 2 * np.eye(3, 4)[y] for name in "abc"}
    lacks = rng.random((120, 3)) < 0.35
    lacks[lacks.all(axis=1), 0] = False
    for k, part in enumerate(X.values()):
        part[lacks[:, k]] = np.nan
    return X, y


def test_missing_sources_are_said_and_predicted_by_the_others(tmp_path):
    X, y = blocks()
    with pytest.warns(MissingValueWarning, match="source 'a' in") as found:
        clf = ParetoMKLClassifier(C=3, loss="squared", multi_class="one-vs-rest").fit(X, y)
    lacking = {name: int(np.isnan(part).all(axis=1).sum()) for name, part in X.items()}
    assert next(one.message for one in found if isinstance(one.message, MissingValueWarning)).sources == lacking
    assert clf.gap_ <= clf.tol
    new, truth = blocks(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MissingValueWarning)
        assert clf.score(new, truth) > 0.8
        decided = clf.decision_function(new)
        save_model(clf, tmp_path / "m.skops")
        assert_allclose(load_model(tmp_path / "m.skops").decision_function(new), decided, atol=1e-12)
        absent = {**new, "a": np.full_like(new["a"], np.nan)}
        assert_allclose(clf.decision_function({**new, "a": None}), clf.decision_function(absent), atol=1e-12)


@GAPS
def test_a_sample_with_one_source_is_decided_by_that_source_alone():
    """Its decision does not depend on what stands for the others, and is that of the tasks solved with its kernels."""
    X, y = blocks()
    clf = ParetoMKLClassifier(C=3, loss="squared", multi_class="one-vs-rest").fit(X, y)
    new, _ = blocks(1)
    alone = {name: part[~np.isnan(new["b"]).any(axis=1)].copy() for name, part in new.items()}
    for name in "ac":
        alone[name][:] = np.nan
    parts = clf.contributions(alone)
    of_b = [kernel.source == "b" for kernel in clf.model_.bank.kernels]
    assert_allclose(parts[..., ~np.array(of_b)], 0, atol=1e-12)
    stand_in = next(one for one in clf.model_.stand_ins if one.there == (False, True, False))
    assert_allclose(parts.sum(axis=-1) + stand_in.intercepts, clf.decision_function(alone), atol=1e-9)


@GAPS
def test_complete_samples_are_decided_by_the_certified_model():
    X, y = blocks()
    clf = ParetoMKLClassifier(C=3, loss="squared", multi_class="one-vs-rest").fit(X, y)
    whole = {name: np.random.default_rng(3).normal(size=(10, 4)) for name in X}
    assert_allclose(clf.contributions(whole).sum(axis=-1) + clf.intercept_, clf.decision_function(whole), atol=1e-9)


@GAPS
def test_ridge_fills_a_source_that_follows_from_another():
    """With b = 2a, a missing b is found again."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=(80, 3))
    X = np.hstack([a, 2 * a])
    X[::4, 3:] = np.nan
    preparation = Preparation.of(X, sources=[np.arange(3), np.arange(3, 6)])
    assert_allclose(preparation(X)[::4, 3:], 2 * a[::4], atol=0.3)
