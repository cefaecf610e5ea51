"""Data sets: public files that are intact, damaged, missing or downloaded; synthetic tasks with known kernels."""

from __future__ import annotations

import functools
import gzip
import hashlib
import re
import shutil
import subprocess
import sys
import threading
import zipfile
from collections import Counter
from dataclasses import replace
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.io import savemat
from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import NearestNeighbors

from paretomkl import Gaussian, Linear, ParetoMKLClassifier
from paretomkl.datasets import data_found, fetch, list_datasets, load_digit_views, make_multitask
from paretomkl.datasets._fetch import DATA_SETS, DatasetInfo
from paretomkl.datasets._files import (
    FILES,
    DataFile,
    FileContent,
    read_columns,
    read_fields,
    read_idx,
    read_indicators,
    read_letters,
    read_survey,
)
from paretomkl.model_selection import MultiTaskKFold, MultiTaskShuffleSplit, split_by_time

NAMES = list(DATA_SETS)

# ------------------------------------------------------------------------------------------ the real files
COUNTS = {
    "robot": {"Move-Forward": 2205, "Sharp-Right-Turn": 2097, "Slight-Right-Turn": 826, "Slight-Left-Turn": 328},
    "segment": dict.fromkeys(("BRICKFACE", "SKY", "FOLIAGE", "CEMENT", "WINDOW", "PATH", "GRASS"), 330),
    "satellite": {1: 1533, 2: 703, 3: 1358, 4: 626, 5: 707, 7: 1508},
    "shuttle": {1: 45586, 2: 50, 3: 171, 4: 8903, 5: 3267, 6: 10, 7: 13},
    "vehicle": {"bus": 218, "saab": 217, "opel": 212, "van": 199},
    "steel": {
        "Pastry": 158,
        "Z_Scratch": 190,
        "K_Scatch": 391,
        "Stains": 72,
        "Dirtiness": 55,
        "Bumps": 402,
        "Other_Faults": 673,
    },
    "landmine": {0: 13916, 1: 904},
    "mfeat": dict.fromkeys(range(10), 200),
    "mnist": dict(enumerate((6903, 7877, 6990, 7141, 6824, 6313, 6876, 7293, 6825, 6958))),
}
LETTERS = dict(
    zip(
        "abcdefghijklmnopqrstuvwxyz",
        (4034, 1284, 2114, 1442, 4955, 921, 2472, 861, 4913, 189, 909, 3140, 1602)
        + (5024, 3897, 1377, 341, 2673, 1394, 2136, 2562, 664, 520, 413, 1221, 1094),
        strict=True,
    )
)
LETTER_TASKS = {
    "c/e": (2114, 4955),
    "g/y": (2472, 1221),
    "m/n": (1602, 5024),
    "a/g": (4034, 2472),
    "i/j": (4913, 189),
    "a/o": (4034, 3897),
    "f/t": (921, 2136),
    "h/n": (861, 5024),
}
POSITIVES = [40, 48, 39, 19, 22, 29, 29, 26, 31, 15, 38, 35, 27, 31, 17]
POSITIVES += [32, 27, 31, 30, 37, 33, 39, 17, 41, 31, 36, 36, 26, 42]
NEGATIVES = [650, 642, 650, 489, 487, 480, 481, 485, 477, 494, 651, 653, 481, 479, 490]
NEGATIVES += [413, 422, 417, 419, 412, 418, 415, 430, 408, 414, 412, 412, 428, 407]

# the last features of the first and of the last line
ENDS = {
    "robot": ([2.332, 0.429], [1.016, 1.168]),
    "segment": ([0.5456349, -1.1218182], [0.4799313, -2.0293121]),
    "satellite": ([113, 87], [108, 92]),
    "shuttle": ([48, 22], [46, 4]),
    "vehicle": ([187, 197], [186, 190]),
    "steel": ([-0.2913, 0.5822], [-0.1139, 0.5296]),
    "mfeat": ([1.3117, 1620.2], [1.5646, 3808]),
}


def counts(labels) -> dict:
    return dict(Counter(labels.tolist()))


@pytest.mark.parametrize("name", NAMES)
def test_sizes_names_and_numbers(shared_data, name):
    made = fetch(name, data_home=shared_data)
    info = DATA_SETS[name].info
    n_classes = len(made.target_names or [])
    n_tasks = len(made.task_names) if made.tasks is not None else n_classes * (n_classes - 1) // 2
    assert (*made.data.shape, n_classes, n_tasks) == info[2:]
    assert (
        made.kind == info.kind == ("regression" if name in ("school", "parkinsons", "computer") else "classification")
    )
    assert made.data.dtype == np.float64
    assert np.isfinite(made.data).all()
    assert len(made.target) == len(made.data)
    assert len(set(made.feature_names)) == made.data.shape[1]
    assert f"{info.n_samples} samples" in made.DESCR
    assert DATA_SETS[name].source in made.DESCR


@pytest.mark.parametrize("name", COUNTS)
def test_class_counts_match_the_files(shared_data, name):
    made = fetch(name, data_home=shared_data)
    assert counts(made.target) == COUNTS[name]
    if made.target.dtype.kind == "U":
        assert made.target_names == sorted(COUNTS[name])


@pytest.mark.parametrize("name", ENDS)
def test_first_and_last_line(shared_data, name):
    data = fetch(name, data_home=shared_data).data
    assert_array_equal(data[[0, -1], -2:], ENDS[name])


def test_train_and_test_parts_keep_their_order(shared_data):
    satellite = fetch("satellite", data_home=shared_data).target
    assert counts(satellite[:4435]) == {1: 1072, 2: 479, 3: 961, 4: 415, 5: 470, 7: 1038}
    shuttle = fetch("shuttle", data_home=shared_data).target
    assert counts(shuttle[43500:]) == {1: 11478, 2: 13, 3: 39, 4: 2155, 5: 809, 6: 4, 7: 2}


def test_names_of_coded_classes(shared_data):
    assert fetch("satellite", data_home=shared_data).target_names[-1] == "very damp grey soil"
    assert fetch("landmine", data_home=shared_data).target_names == ["clutter", "landmine"]


def test_robot_distances_are_minima_over_arcs_of_sensors(shared_data):
    four, all_sensors = (fetch("robot", data_home=shared_data, n_sensors=n) for n in (4, 24))
    two = fetch("robot", data_home=shared_data, n_sensors=2)
    assert_array_equal(four.target, all_sensors.target)
    assert_array_equal(two.data, four.data[:, :2])
    assert two.feature_names == ["front", "left"]
    assert all_sensors.feature_names[0] == "US1"
    arcs = [all_sensors.data[:, first - 1 : last].min(axis=1) for first, last in ((11, 15), (18, 20), (5, 9), (23, 24))]
    assert_array_equal(four.data, np.transpose(arcs))


def test_segment_without_repeated_rows(shared_data):
    whole, distinct = (fetch("segment", data_home=shared_data, drop_duplicates=drop) for drop in (False, True))
    assert len(distinct.data) == 2086
    assert len(np.unique(whole.data, axis=0)) == 2086
    assert_array_equal(distinct.data[:210], whole.data[:210])  # the first of each is kept
    assert "2086 samples" in distinct.DESCR


def test_letter_tasks(shared_data):
    made = fetch("letter", data_home=shared_data)
    assert made.task_names == list(LETTER_TASKS)
    for task, sizes in LETTER_TASKS.items():
        assert counts(made.target[made.tasks == task]) == dict(zip(task.split("/"), sizes, strict=True))
    assert set(np.unique(made.data)) == {0.0, 1.0}


def test_raw_letters(shared_data):
    raw, tasks = fetch("letter", data_home=shared_data, raw=True), fetch("letter", data_home=shared_data)
    assert raw.tasks is None
    assert counts(raw.target) == LETTERS
    assert set(raw.folds) == set(range(10))
    first = raw.data[0].reshape(16, 8).astype(int)
    assert "".join(map(str, first[3])) == "01110000"
    assert (raw.target[0], raw.target[-1], raw.folds[-1]) == ("o", "l", 9)
    # a row of a task is the letter that its group names
    assert_array_equal(tasks.data[::97], raw.data[tasks.groups[::97]])
    assert_array_equal(tasks.target, raw.target[tasks.groups])
    assert_array_equal(tasks.folds, raw.folds[tasks.groups])
    repeated = np.unique(tasks.groups, return_counts=True)[1]
    assert (repeated == 2).sum() == LETTERS["a"] + LETTERS["g"] + LETTERS["n"]


def test_landmine_fields(shared_data):
    made = fetch("landmine", data_home=shared_data)
    assert made.task_names == list(range(1, 30))
    positive = [int(made.target[made.tasks == t].sum()) for t in made.task_names]
    assert positive == POSITIVES
    assert [int((made.tasks == t).sum()) for t in made.task_names] == np.add(POSITIVES, NEGATIVES).tolist()
    assert made.data[0, 0] == pytest.approx(1.3683079, abs=1e-8)
    assert made.data[-1, -1] == pytest.approx(0.03426093, abs=1e-8)


def test_sources_of_mfeat(shared_data):
    """The columns of a source match its file, whatever the other columns are."""
    made = fetch("mfeat", data_home=shared_data)
    assert [column for columns in made.sources.values() for column in columns] == list(range(649))
    for name, columns in made.sources.items():
        raw = gzip.decompress((shared_data / f"mfeat/mfeat-{name}.csv.gz").read_bytes())
        alone = np.loadtxt(raw.decode().splitlines()[1:], delimiter=",")
        assert_array_equal(made.data[:, columns], alone[:, :-1])
        assert_array_equal(made.target, alone[:, -1])
        assert [made.feature_names[column] for column in columns] == [f"{name}_{i}" for i in range(len(columns))]
    assert len(np.unique(made.data, axis=0)) == 1994
    made.sources["fou"].clear()  # a copy: the next fetch has them all
    assert len(fetch("mfeat", data_home=shared_data).sources["fou"]) == 76
    assert fetch("vehicle", data_home=shared_data).sources is None


def test_a_kernel_for_each_source_of_mfeat(shared_data):
    made = fetch("mfeat", data_home=shared_data)
    rows = np.flatnonzero(np.isin(made.target, (3, 8)))[::10]
    kernels = [Linear(columns=columns) for columns in made.sources.values()]
    clf = ParetoMKLClassifier(kernels=kernels).fit(made.data[rows], made.target[rows])
    assert clf.theta_.shape == (6,)


# -------------------------------------------------------------------------------------- sets for regression
@pytest.mark.parametrize(
    ("name", "shape", "n_tasks", "smallest", "largest", "low", "high"),
    [
        ("school", (15362, 28), 139, 22, 251, 1, 70),
        ("parkinsons", (5875, 18), 42, 101, 168, 7, 54.992),
        ("computer", (3800, 13), 190, 20, 20, 0, 10),
    ],
)
def test_regression_sets(shared_data, name, shape, n_tasks, smallest, largest, low, high):
    made = fetch(name, data_home=shared_data)
    assert made.data.shape == shape
    assert made.target.dtype == np.float64
    assert (made.target.min(), made.target.max()) == (low, high)
    assert made.target_names is None
    assert made.task_names == list(range(1, n_tasks + 1))
    sizes = counts(made.tasks).values()
    assert (min(sizes), max(sizes)) == (smallest, largest)
    assert f"{n_tasks} tasks. Target from {low:.4g} to {high:.4g}, mean" in made.DESCR
    X, y, tasks = fetch(name, data_home=shared_data, return_X_y=True)
    for ours, other in ((X, made.data), (y, made.target), (tasks, made.tasks)):
        assert_array_equal(ours, other)
    frame = fetch(name, data_home=shared_data, as_frame=True).frame
    assert list(frame.columns) == [*made.feature_names, "task", "target"]
    assert_array_equal(frame["target"], made.target)


def test_school_columns_match_their_names(shared_data):
    made = fetch("school", data_home=shared_data)
    assert made.target.var() == pytest.approx(161.8, abs=0.05)
    assert made.data.max() == 91  # bytes in the file: arithmetic on those would wrap around
    own = {stem: [c for c, name in enumerate(made.feature_names) if name.startswith(f"{stem}_")] for stem in
           ("year", "gender", "band", "ethnic_group", "school_gender", "school_denomination")}  # fmt: skip
    for stem, columns in own.items():
        total = made.data[:, columns].sum(axis=1)
        assert (total == 1).sum() == (15347 if stem == "band" else 15362)
        of_school = {tuple(row) for row in np.column_stack([made.tasks, made.data[:, columns]]).tolist()}
        assert (len(of_school) == 139) == stem.startswith("school_")
    assert (made.data[:, made.feature_names.index("constant")] == 1).all()
    assert [len(columns) for columns in own.values()] == [3, 2, 3, 11, 3, 3]


def test_targets_and_times_of_parkinsons(shared_data):
    lines = (shared_data / "parkinsons/parkinsons_updrs.data").read_text().splitlines()
    header, values = lines[0].split("\t"), np.array([line.split("\t") for line in lines[1:]], dtype=float)
    total, motor = (
        fetch("parkinsons", data_home=shared_data, **options) for options in ({}, {"target": "motor_UPDRS"})
    )
    for made, target in ((total, "total_UPDRS"), (motor, "motor_UPDRS")):
        assert_array_equal(made.target, values[:, header.index(target)])
        assert_array_equal(made.time, values[:, header.index("test_time")])
        assert_array_equal(made.tasks, values[:, 0])
        assert_array_equal(made.data, values[:, [header.index(name) for name in made.feature_names]])
    assert set(header) - set(total.feature_names) == {"subject#", "test_time", "motor_UPDRS", "total_UPDRS"}
    with pytest.raises(ValueError, match="target of parkinsons must be 'total_UPDRS' or 'motor_UPDRS', got 'UPDRS'"):
        fetch("parkinsons", data_home=shared_data, target="UPDRS")
    with pytest.raises(TypeError, match="'school' has no option 'target'"):
        fetch("school", data_home=shared_data, target="score")


def test_ratings_of_computers(shared_data):
    made = fetch("computer", data_home=shared_data)
    assert set(np.unique(made.data)) == {-1.0, 1.0}
    products = made.data.reshape(190, 20, 13)
    assert (products == products[0]).all()
    assert len(np.unique(products[0], axis=0)) == 20
    assert_array_equal(made.target[:4], [6, 3, 5, 7])
    assert_array_equal(made.target[20:24], [5, 3, 3, 7])
    ratings = made.target.reshape(190, 20)
    assert np.flatnonzero(np.ptp(ratings, axis=1) == 0) + 1 == [123]
    effects = np.linalg.lstsq(products[0], ratings.mean(axis=0) - ratings.mean(), rcond=None)[0]
    assert made.feature_names[int(effects.argmin())] == "price"
    known = made.respondents.reshape(190, 20, 7)
    assert (known == known[:, :1]).all()
    assert_array_equal(known[:2, 0], [[1, 0, 1, 1, 1, 4, 9], [1, 0, 0, 1, 1, 1, 6]])


def test_the_usual_splits_of_the_regression_sets(shared_data):
    school, parkinsons, computer = (fetch(name, data_home=shared_data) for name in ("school", "parkinsons", "computer"))
    for train_size in (0.75, 0.9):
        splits = MultiTaskShuffleSplit(2, train_size=train_size, random_state=0)
        for train, test in splits.split(school.data, school.target, tasks=school.tasks):
            assert len(train) / 15362 == pytest.approx(train_size, abs=0.005)
            assert len(set(school.tasks[test])) == 139
    ((train, test),) = MultiTaskShuffleSplit(1, train_size=8).split(computer.data, tasks=computer.tasks)
    assert set(counts(computer.tasks[train]).values()) == {8}
    assert len(test) == 190 * 12
    train, test = split_by_time(parkinsons.tasks, np.floor(parkinsons.time), 0.75)
    assert len(train) / 5875 == pytest.approx(0.75, abs=0.03)
    for person in parkinsons.task_names:
        last = np.floor(parkinsons.time[train][parkinsons.tasks[train] == person]).max()
        assert last < np.floor(parkinsons.time[test][parkinsons.tasks[test] == person]).min()
    for _, test in MultiTaskKFold(5).split(school.data, tasks=school.tasks):
        assert len(set(school.tasks[test])) == 139


def test_mnist_parts_keep_their_order(shared_data):
    made = fetch("mnist", data_home=shared_data)
    assert made.target[:5].tolist() == [5, 0, 4, 1, 9]
    assert made.target[60000:60005].tolist() == [7, 2, 1, 0, 4]
    assert made.data[:60000].mean() == pytest.approx(33.3184, abs=1e-4)
    assert made.data.max() == 255
    assert made.data[0, made.feature_names.index("p_5_12")] == 3  # the first stroke of the first image


def test_return_X_y(shared_data):
    X, y = fetch("vehicle", data_home=shared_data, return_X_y=True)
    assert (X.shape, y.shape) == ((846, 18), (846,))
    X, y, tasks = fetch("landmine", data_home=shared_data, return_X_y=True)
    assert len(X) == len(y) == len(tasks) == 14820


def test_frames(shared_data):
    made = fetch("landmine", data_home=shared_data, as_frame=True)
    assert list(made.frame.columns) == [*made.feature_names, "task", "target"]
    assert made.frame.shape == (14820, 11)
    assert_array_equal(made.frame["task"], fetch("landmine", data_home=shared_data).tasks)
    X, y = fetch("steel", data_home=shared_data, as_frame=True, return_X_y=True)
    assert X["TypeOfSteel_A300"].isin([0, 1]).all()
    assert y.name == "target"


def test_a_frame_with_its_task_column_is_learned_from(shared_data):
    frame = fetch("landmine", data_home=shared_data, as_frame=True).frame
    frame = frame[frame["task"] <= 2].iloc[::4]
    clf = ParetoMKLClassifier(kernels=["linear"], task_column="task").fit(frame.drop(columns="target"), frame["target"])
    assert clf.sources_ == [1, 2]


# ------------------------------------------------------------------------------- copies, sound and damaged
@pytest.fixture
def mirror(shared_data, tmp_path) -> Path:
    """A copy of some of the files, for the tests to damage."""
    for folder in ("robot", "steel", "landmine", "letter", "mfeat", "school", "parkinsons", "computer"):
        shutil.copytree(shared_data / folder, tmp_path / folder)
        for path in (tmp_path / folder).iterdir():
            path.chmod(0o644)
    return tmp_path


# published MD5 of the original MNIST files, unpacked; copies differ in their compression
MNIST_UNPACKED = {
    "mnist/train-images-idx3-ubyte.gz": "6bbc9ace898e44ae57da46a324031adb",
    "mnist/train-labels-idx1-ubyte.gz": "a25bea736e30d166cdddb491f175f624",
    "mnist/t10k-images-idx3-ubyte.gz": "2646ac647ad5339dbf082846283269ea",
    "mnist/t10k-labels-idx1-ubyte.gz": "27ae3e4e09519cfbb04c329615203637",
}


def test_known_bytes(shared_data):
    for path, file in FILES.items():
        raw = (shared_data / path).read_bytes()
        if path == "steel/Faults.NNA" and not raw.startswith(b'"'):  # the public copy has each line in quotation marks
            raw = b"".join(b'"' + line + b'"\r\n' for line in raw.splitlines())
        if path in MNIST_UNPACKED:
            assert hashlib.md5(gzip.decompress(raw)).hexdigest() == MNIST_UNPACKED[path], path
        elif file.sha256 is not None:
            assert hashlib.sha256(raw).hexdigest() == file.sha256, path


def test_line_ends_and_quotation_marks_do_not_matter(mirror):
    plain = {name: fetch(name, data_home=mirror) for name in ("robot", "steel")}
    robot, steel = mirror / "robot/sensor_readings_4.data", mirror / "steel/Faults.NNA"
    robot.write_bytes(robot.read_bytes().replace(b"\r\n", b"\n"))
    steel.write_bytes(b"".join(b'"' + line + b'"\n' for line in steel.read_bytes().splitlines()))
    for name, made in plain.items():
        again = fetch(name, data_home=mirror)
        assert_array_equal(again.data, made.data)
        assert_array_equal(again.target, made.target)


def test_letters_unpacked_and_in_another_order(mirror):
    path = mirror / "letter/letter.data.gz"
    lines = gzip.decompress(path.read_bytes()).splitlines()
    path.write_bytes(b"".join(line + b"\t\n" for line in lines[::-1]))
    assert counts(fetch("letter", data_home=mirror, raw=True).target) == LETTERS


def test_mfeat_unpacked_is_the_same_and_rows_keep_their_order(mirror):
    path = mirror / "mfeat/mfeat-zer.csv.gz"
    lines = gzip.decompress(path.read_bytes()).splitlines()
    packed = fetch("mfeat", data_home=mirror).data
    path.write_bytes(b"\n".join(lines))
    assert_array_equal(fetch("mfeat", data_home=mirror).data, packed)
    path.write_bytes(b"\n".join([*lines[:1], lines[2], lines[1], *lines[3:]]))  # two zeros change places
    with pytest.raises(ValueError, match="checksum"):
        fetch("mfeat", data_home=mirror)


def test_a_survey_in_its_archive_is_the_same(mirror):
    """The public copy is a .zip archive."""
    path = mirror / "computer/conjointAnalysisComputerBuyers.mat"
    plain, raw = fetch("computer", data_home=mirror), path.read_bytes()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("conjointAnalysisComputerBuyers/meta.txt", "a survey")
        archive.writestr("conjointAnalysisComputerBuyers/conjointAnalysisComputerBuyers.mat", raw)
    assert_array_equal(fetch("computer", data_home=mirror).target, plain.target)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("meta.txt", "a survey")
    with pytest.raises(ValueError, match="it cannot be read"):
        fetch("computer", data_home=mirror)


SPOILT = [
    ("school", "school/school.mat", lambda raw: raw[: len(raw) // 2], "cannot be read"),
    ("computer", "computer/conjointAnalysisComputerBuyers.mat", lambda raw: b"PK\x03\x04" + raw, "cannot be read"),
    ("parkinsons", "parkinsons/parkinsons_updrs.data", lambda raw: raw.replace(b"28.199", b"28.198", 1), "checksum"),
    ("parkinsons", "parkinsons/parkinsons_updrs.data", lambda raw: raw[:-500], "cannot be read|checksum"),
    ("robot", "robot/sensor_readings_4.data", lambda raw: raw[: len(raw) // 2], "cannot be read|checksum"),
    ("robot", "robot/sensor_readings_4.data", lambda raw: b"", "checksum"),
    ("robot", "robot/sensor_readings_4.data", lambda raw: raw + b"\n" + raw.splitlines()[0], "checksum"),
    ("robot", "robot/sensor_readings_4.data", lambda raw: raw.replace(b"1.687", b"1.688", 1), "checksum"),
    ("robot", "robot/sensor_readings_4.data", lambda raw: raw.replace(b"1.687", b"1.6x7", 1), "cannot be read"),
    ("robot", "robot/sensor_readings_4.data", lambda raw: raw.replace(b"Slight", b"Sl1ght", 1), "checksum"),
    ("steel", "steel/Faults.NNA", lambda raw: b"\n".join(raw.splitlines()[1:]), "checksum"),
    ("steel", "steel/Faults.NNA", lambda raw: raw.replace(b"\t1\t", b"\t0\t", 1), "cannot be read|checksum"),
    ("letter", "letter/letter.data.gz", lambda raw: raw[:-100], "cannot be read"),
    ("letter", "letter/letter.data.gz", lambda raw: gzip.decompress(raw).replace(b"\t1\t", b"\t", 1), "cannot be read"),
    ("mfeat", "mfeat/mfeat-mor.csv.gz", lambda raw: raw[:-100], "cannot be read"),
    ("landmine", "landmine/LandmineData.mat", lambda raw: raw[: len(raw) // 2], "cannot be read"),
    ("landmine", "landmine/LandmineData.mat", lambda raw: b"<html>", "cannot be read"),
]


@pytest.mark.parametrize(("name", "path", "spoil", "what"), SPOILT, ids=[f"{s[0]}-{i}" for i, s in enumerate(SPOILT)])
def test_damaged_files_are_named(mirror, name, path, spoil, what):
    (mirror / path).write_bytes(spoil((mirror / path).read_bytes()))
    with pytest.raises(ValueError, match=what) as caught:
        fetch(name, data_home=mirror)
    assert str(mirror / path) in str(caught.value)
    assert "Replace it with a good copy" in str(caught.value)


# ------------------------------------------------------------------------------------------------- parsing
def test_columns_with_any_line_end():
    for end in ("\n", "\r\n", "\r", " \r\n"):
        table = read_columns(f"1 2.5 van{end}{end}-3 4e2 bus{end}".encode())
        assert_array_equal(table.data, [[1, 2.5], [-3, 400]])
        assert table.target.tolist() == ["van", "bus"]


def test_label_first_header_skipped_and_whole_labels():
    text = b";;; written by hand\n\nREGION-A,REGION-B\n\nSKY,1,2\nPATH,3,4\n"
    table = read_columns(text, label=0, delimiter=",", skip=(";", "REGION-"))
    assert_array_equal(table.data, [[1, 2], [3, 4]])
    assert table.target.tolist() == ["SKY", "PATH"]
    assert read_columns(b"5 7\n6 1\n", label_type=int).target.tolist() == [7, 1]


def test_indicator_columns():
    table = read_indicators(b'"0.5\t1\t0"\r\n"0.7\t0\t1"\r\n', classes=("a", "b"))
    assert table.data.ravel().tolist() == [0.5, 0.7]
    assert table.target.tolist() == ["a", "b"]


def letter_line(letter: str, fold: int, pixels: str) -> str:
    return "\t".join(["7", letter, "-1", "3", "1", str(fold), *pixels]) + "\t\r\n"


def test_letters():
    pixels = "01" * 64
    raw = (letter_line("k", 3, pixels) + letter_line("z", 0, pixels[::-1])).encode()
    for packed in (raw, gzip.compress(raw)):
        table = read_letters(packed)
        assert_array_equal(table.data, [[0, 1] * 64, [1, 0] * 64])
        assert table.target.tolist() == ["k", "z"]
        assert table.more["folds"].tolist() == [3, 0]


def cells(*arrays) -> np.ndarray:
    made = np.empty((1, len(arrays)), dtype=object)
    made[0] = [None] * len(arrays)
    for i, array in enumerate(arrays):
        made[0, i] = array
    return made


def mat_bytes(path: Path, features, labels) -> bytes:
    savemat(path, {"feature": cells(*features), "label": cells(*labels)})
    return path.read_bytes()


def test_landmine_cells(tmp_path):
    features = [np.arange(18.0).reshape(2, 9), np.ones((3, 9))]
    labels = [np.array([[0], [1]], dtype=np.uint8), np.array([[1], [1], [0]], dtype=np.uint8)]
    table = read_fields(mat_bytes(tmp_path / "sound.mat", features, labels))
    assert_array_equal(table.data, np.vstack(features))
    assert table.target.tolist() == [0, 1, 1, 1, 0]
    assert table.more["tasks"].tolist() == [1, 1, 2, 2, 2]


def test_school_cells(tmp_path):
    path = tmp_path / "school.mat"
    bytes_ = np.array([[200, 1], [100, 2]], dtype=np.uint8)
    savemat(path, {"X": cells(bytes_, bytes_[:1]), "Y": cells(np.array([[7], [9]], dtype=np.uint8), np.array([[250]]))})
    table = read_fields(path.read_bytes(), "X", "Y", np.float64)
    assert_array_equal(table.data * 2, [[400, 2], [200, 4], [400, 2]])
    assert (table.target.dtype, table.target.tolist()) == (np.float64, [7, 9, 250])


def test_surveys(tmp_path):
    path = tmp_path / "survey.mat"
    survey = {
        "designMarix": np.array([[1, -1, 1], [1, 1, 1]], dtype=np.int16),
        "likeBuy": np.array([[3, 4], [5, 6], [7, 8]], dtype=np.uint8),
        "computerDataZ": np.array([[1], [2], [3]], dtype=np.uint8),
    }
    savemat(path, survey)
    table = read_survey(path.read_bytes())
    assert_array_equal(table.data, [[-1, 1], [1, 1]] * 3)
    assert table.target.tolist() == [3, 4, 5, 6, 7, 8]
    assert table.more["tasks"].tolist() == [1, 1, 2, 2, 3, 3]
    assert table.more["respondents"].tolist() == [[1], [1], [2], [2], [3], [3]]


def test_idx_files():
    labels = b"\x00\x00\x08\x01" + (3).to_bytes(4) + bytes([7, 0, 9])
    images = b"\x00\x00\x08\x03" + b"".join(n.to_bytes(4) for n in (2, 1, 3)) + bytes([1, 2, 3, 253, 254, 255])
    assert read_idx(gzip.compress(labels)).target.tolist() == [7, 0, 9]
    assert_array_equal(read_idx(images).data, [[1, 2, 3], [253, 254, 255]])


def test_checksum_sees_values_labels_and_order():
    data, target = np.arange(6.0).reshape(3, 2), np.array(["a", "b", "c"])
    table = FileContent(data, target)
    others = [
        FileContent(data + 1e-12, target),
        FileContent(data, target[::-1]),
        FileContent(data[::-1], target[::-1]),
        FileContent(data, target, {"tasks": np.zeros(3)}),
    ]
    assert len({table.checksum(), *(other.checksum() for other in others)}) == 5
    assert table.checksum(any_order=True) == others[2].checksum(any_order=True)
    assert table.checksum(any_order=True) != others[1].checksum(any_order=True)


# ------------------------------------------------------------------------------------- folders and network
TINY = b"1,2,up\n3,4,down\n5,6,up\n"


def tiny_file(url: str = "http://127.0.0.1:9/tiny.data", sha256: str | None = None) -> DataFile:
    read = functools.partial(read_columns, delimiter=",")
    return DataFile("tiny/tiny.data", url, read, sha256=sha256, checksum=read(TINY).checksum())


def add_tiny(monkeypatch, file: DataFile) -> None:
    """Add a data set with three rows to the catalogue."""

    def build(data_set, read):
        return read(file), ["a", "b"]

    tiny = replace(DATA_SETS["robot"], info=DatasetInfo("tiny", "Tiny", 3, 2, 2, 1), files=[file], build=build)
    monkeypatch.setitem(DATA_SETS, "tiny", tiny)


@pytest.fixture(autouse=True)
def away_from_home(monkeypatch, tmp_path_factory):
    """No test reads or writes the cache of the machine, or uses a proxy."""
    import pooch

    cache = tmp_path_factory.mktemp("cache")
    monkeypatch.setattr(pooch, "os_cache", lambda project: cache / project)
    for name in ("PARETOMKL_DATA", "PARETOMKL_DATA_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return cache / "paretomkl"


class Handler(SimpleHTTPRequestHandler):
    """Serves a folder, counts the requests, and stops halfway through files under /half/."""

    def do_GET(self):
        self.server.asked.append(self.path)
        if not self.path.startswith("/half/"):
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(TINY)))
        self.end_headers()
        self.wfile.write(TINY[: len(TINY) // 2])

    def log_message(self, *args):
        pass


@pytest.fixture
def serve():
    """serve(folder) starts a server on the loopback and returns it; server.url is its address."""
    servers = []

    def start(folder: Path) -> ThreadingHTTPServer:
        server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder)))
        server.asked = []
        server.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def write(folder: Path, raw: bytes = TINY) -> Path:
    (folder / "tiny").mkdir(parents=True, exist_ok=True)
    (folder / "tiny/tiny.data").write_bytes(raw)
    return folder


def files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_folders_are_searched_in_order(monkeypatch, tmp_path):
    add_tiny(monkeypatch, tiny_file())
    named, variable = write(tmp_path / "named"), tmp_path / "variable"
    monkeypatch.setenv("PARETOMKL_DATA", str(variable))
    assert fetch("tiny", data_home=named).target.tolist() == ["up", "down", "up"]
    with pytest.raises(FileNotFoundError, match=r"tiny/tiny\.data is not in .*variable, the folder given by PARETOMKL"):
        fetch("tiny")
    write(variable)
    assert_array_equal(fetch("tiny").data, [[1, 2], [3, 4], [5, 6]])


def test_missing_file_in_a_named_folder(monkeypatch, tmp_path):
    add_tiny(monkeypatch, tiny_file())
    with pytest.raises(
        FileNotFoundError, match=r"given by data_home; set data_home or .* or use neither to download"
    ) as e:
        fetch("tiny", data_home=tmp_path / "nowhere")
    assert str(tmp_path / "nowhere") in str(e.value)
    assert not (tmp_path / "nowhere").exists()


def test_home_directory_is_expanded(monkeypatch, tmp_path):
    add_tiny(monkeypatch, tiny_file())
    write(tmp_path / "mine")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert len(fetch("tiny", data_home="~/mine").data) == 3


def test_download_once(monkeypatch, tmp_path, serve, away_from_home):
    server = serve(write(tmp_path))
    add_tiny(monkeypatch, tiny_file(f"{server.url}/tiny/tiny.data", hashlib.sha256(TINY).hexdigest()))
    assert data_found()["tiny"] is None
    with pytest.raises(FileNotFoundError, match="the folder for downloads; use download=True"):
        fetch("tiny", download=False)
    assert server.asked == []
    for download in (True, True, False):
        assert fetch("tiny", download=download).target.tolist() == ["up", "down", "up"]
    assert server.asked == ["/tiny/tiny.data"]
    assert files_below(away_from_home) == [away_from_home / "tiny/tiny.data"]
    assert data_found()["tiny"] == away_from_home


def test_other_bytes_than_announced_are_refused(monkeypatch, tmp_path, serve, away_from_home):
    server = serve(write(tmp_path, TINY.replace(b"5", b"7")))
    add_tiny(monkeypatch, tiny_file(f"{server.url}/tiny/tiny.data", hashlib.sha256(TINY).hexdigest()))
    with pytest.raises(OSError, match=r"Could not download tiny/tiny\.data from http://127.*hash"):
        fetch("tiny")
    assert files_below(away_from_home) == []


def test_a_broken_transfer_leaves_nothing(monkeypatch, tmp_path, serve, away_from_home):
    server = serve(tmp_path)
    add_tiny(monkeypatch, tiny_file(f"{server.url}/half/tiny.data", hashlib.sha256(TINY).hexdigest()))
    with pytest.raises(OSError, match=r"Could not download tiny/tiny\.data .*set PARETOMKL_DATA to the folder"):
        fetch("tiny")
    assert files_below(away_from_home) == []


def test_a_mirror_by_url(monkeypatch, tmp_path, serve, away_from_home):
    server = serve(write(tmp_path, TINY.replace(b"\n", b"\r\n")))  # other bytes, the same content
    add_tiny(monkeypatch, tiny_file("http://127.0.0.1:9/none", hashlib.sha256(TINY).hexdigest()))
    monkeypatch.setenv("PARETOMKL_DATA_URL", f"{server.url}/")
    assert fetch("tiny").data.sum() == 21
    assert server.asked == ["/tiny/tiny.data"]


def test_a_damaged_mirror_is_refused_and_removed(monkeypatch, tmp_path, serve, away_from_home):
    server = serve(write(tmp_path, TINY[:7]))
    add_tiny(monkeypatch, tiny_file())
    monkeypatch.setenv("PARETOMKL_DATA_URL", server.url)
    with pytest.raises(ValueError, match=r"checksum .* It was just downloaded and has been removed"):
        fetch("tiny")
    assert files_below(away_from_home) == []
    write(tmp_path)
    assert len(fetch("tiny").data) == 3


def test_damage_in_the_cache(monkeypatch, away_from_home):
    add_tiny(monkeypatch, tiny_file())
    write(away_from_home, TINY[:-6])
    with pytest.raises(ValueError, match=r"tiny\.data is damaged: .* Delete it and fetch it again\."):
        fetch("tiny")


def test_absent_from_the_server(monkeypatch, tmp_path, serve):
    server = serve(tmp_path)
    monkeypatch.setenv("PARETOMKL_DATA_URL", server.url)
    with pytest.raises(OSError, match=r"Could not download robot/sensor_readings_4\.data from http://127.*404"):
        fetch("robot")


def test_real_files_over_the_network(monkeypatch, shared_data, serve, away_from_home):
    server = serve(shared_data)
    monkeypatch.setenv("PARETOMKL_DATA_URL", server.url)
    made = fetch("vehicle")
    assert counts(made.target) == COUNTS["vehicle"]
    assert len(server.asked) == 9
    assert len(fetch("letter").data) == 45869  # a .gz file, as served
    assert {name for name, folder in data_found().items() if folder} == {"vehicle", "letter"}


def test_data_found(shared_data, tmp_path):
    assert data_found(shared_data) == dict.fromkeys(NAMES, shared_data)
    assert data_found(tmp_path) == dict.fromkeys(NAMES)


def test_without_pooch(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pooch", None)
    add_tiny(monkeypatch, tiny_file())
    assert len(fetch("tiny", data_home=write(tmp_path)).data) == 3
    assert data_found() == dict.fromkeys([*NAMES, "tiny"])
    with pytest.raises(ImportError, match=r"needs pooch; install it with: pip install 'paretomkl\[data\]'"):
        fetch("tiny")


def test_without_pandas(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pandas", None)
    add_tiny(monkeypatch, tiny_file())
    with pytest.raises(ImportError, match="as_frame=True needs pandas"):
        fetch("tiny", data_home=write(tmp_path), as_frame=True)


def test_import_is_light():
    code = "import sys, paretomkl.datasets; print({'pooch', 'pandas', 'sklearn', 'scipy.io'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


# ---------------------------------------------------------------------------------------------- the catalogue
def test_unknown_names_and_options():
    with pytest.raises(
        ValueError, match=r"no data set 'landmines'; did you mean 'landmine'\? The data sets are robot,"
    ):
        fetch("landmines")
    with pytest.raises(ValueError, match="did you mean 'robot'"):
        fetch("Robot")
    with pytest.raises(ValueError, match=r"no data set 7\. The data sets are"):
        fetch(7)
    with pytest.raises(TypeError, match="'segment' has no option 'n_sensors'; its options are drop_duplicates"):
        fetch("segment", n_sensors=4)
    with pytest.raises(TypeError, match="'steel' has no option 'raw'; it has no options"):
        fetch("steel", raw=True)
    with pytest.raises(ValueError, match="n_sensors of robot must be 2, 4 or 24, got 3"):
        fetch("robot", n_sensors=3)


def test_every_file_is_pinned():
    for path, file in FILES.items():
        assert re.fullmatch("[0-9a-f]{64}", file.checksum), path
        assert file.url.startswith("https://"), path
        if file.path != "letter/letter.data.gz":
            assert path in MNIST_UNPACKED or re.search("/[0-9a-f]{40}/", file.url), path  # MNIST: by its bytes alone
            assert not file.any_order, path
        if not path.startswith(("letter/", "mfeat/", "computer/")):
            assert re.fullmatch("[0-9a-f]{64}", file.sha256), path


def test_list_datasets():
    listed = list_datasets()
    assert [info.name for info in listed] == NAMES
    assert ("landmine", "Landmine detection, 29 fields", 14820, 9, 2, 29) in listed
    by_name = {info.name: info for info in listed}
    assert by_name["mfeat"][2:] == (2000, 649, 10, 45)
    assert by_name["school"][2:] == (15362, 28, 0, 139)
    assert [name for name, info in by_name.items() if info.kind == "regression"] == ["school", "parkinsons", "computer"]


def test_digit_views_describe_the_same_images():
    """The amplitude at frequency zero is the sum of the image; noise says nothing about the digit."""
    views, y = load_digit_views()
    assert_array_equal(y, load_digits().target[:1000])
    assert_allclose(views["sums"][:, :8].sum(axis=1), views["sums"][:, 8:].sum(axis=1))
    assert_allclose(views["frequencies"][:, 0], views["sums"][:, :8].sum(axis=1))
    assert abs(np.corrcoef(views["noise"].T, y)[-1, :-1]).max() < 0.15


# -------------------------------------------------------------------------------------------- synthetic tasks
def source_weights(made, sigma: float = 1.0) -> np.ndarray:
    kernels = [Gaussian(sigma, columns=columns) for columns in made.columns]
    theta = ParetoMKLClassifier(kernels=kernels).fit(made.data, made.target, tasks=made.tasks).theta_
    return theta / theta.sum()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("options", "least"),
    [({}, 0.75), ({"noise": 0.1}, 0.6), ({"n_samples": [40, 60, 100, 160]}, 0.7), ({"n_features": 3}, 0.6)],
    ids=["plain", "noisy", "sizes", "features"],
)
def test_weights_go_to_the_relevant_sources(options, least, seed):
    made = make_multitask(random_state=seed, **options)
    share = source_weights(made)
    assert set(np.argsort(share)[-2:]) == set(made.relevant)
    assert share[made.relevant].sum() > least


def test_tasks_can_have_the_same_functions():
    """At the same x, tasks with common=1 agree up to the level of each task; tasks with common=0 do not."""
    agreement = {}
    for common in (0.0, 1.0):
        made = make_multitask(
            n_tasks=2, n_samples=400, n_sources=1, n_relevant=1, sigma=2.0, common=common, random_state=0
        )
        first, second = (made.tasks == t for t in (0, 1))
        nearest = NearestNeighbors(n_neighbors=1).fit(made.data[first])
        twin = nearest.kneighbors(made.data[second], return_distance=False)[:, 0]
        agreement[common] = np.mean(made.target[first][twin] == made.target[second])
    assert agreement[1.0] > 0.9
    assert agreement[0.0] < 0.8
    with pytest.raises(ValueError, match="common must be"):
        make_multitask(common=1.5)


def test_own_sources_draw_weight_away_as_tasks_grow_apart():
    shares = []
    for relatedness in (1.0, 0.6, 0.2):
        made = make_multitask(relatedness=relatedness, n_sources=8, random_state=1)
        shares.append(source_weights(made)[made.relevant].sum())
        if made.own is not None:
            assert not set(made.own) & set(made.relevant)
            assert len(set(made.own)) == 4
    assert shares[0] > shares[1] > shares[2]


def test_noise_and_sizes_by_task():
    sizes, noise = [40, 100, 200], [0.0, 0.1, 0.3]
    options = {"n_tasks": 3, "n_samples": sizes, "random_state": 5}
    clean, noisy = make_multitask(**options), make_multitask(noise=noise, **options)
    assert np.bincount(clean.tasks).tolist() == sizes
    assert [float(clean.target[clean.tasks == t].mean()) for t in range(3)] == [0.5] * 3
    # the first task comes before the noise, so it is the same
    assert_array_equal(clean.data[clean.tasks == 0], noisy.data[noisy.tasks == 0])
    assert_array_equal(clean.target[clean.tasks == 0], noisy.target[noisy.tasks == 0])
    alone = make_multitask(n_tasks=1, n_samples=101, noise=0.3, random_state=2)
    pure = make_multitask(n_tasks=1, n_samples=101, random_state=2)
    assert (alone.target != pure.target).sum() == 15 + 15
    assert set(make_multitask(n_samples=4, noise=0.49, random_state=0).target) == {0, 1}


def test_functions_have_the_covariance_of_the_kernel():
    from paretomkl.datasets._synthetic import _random_function

    rng = np.random.RandomState(0)
    X = rng.standard_normal((5, 2))
    draws = np.array([_random_function(2, 1.5, rng)(X) for _ in range(10000)])
    distances = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    assert np.abs(draws.T @ draws / len(draws) - np.exp(-distances / (2 * 1.5**2))).max() < 0.05


def test_consecutive_rows_hold_all_tasks():
    made = make_multitask(n_tasks=3, n_samples=30, random_state=0)
    X = np.column_stack([made.data, made.tasks])
    cross_val_score(ParetoMKLClassifier(task_column=-1), X, made.target, cv=3, error_score="raise")


def test_same_seed_same_tasks():
    first, second = make_multitask(random_state=3), make_multitask(random_state=3)
    assert_array_equal(first.data, second.data)
    assert_array_equal(first.target, second.target)
    assert not np.array_equal(first.data, make_multitask(random_state=4).data)
    assert first.data.shape == (400, 12)
    assert [column for columns in first.columns for column in columns] == list(range(12))
    assert str(first.relevant.tolist()) in first.DESCR


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_tasks": 0}, "n_tasks must be a whole number"),
        ({"n_sources": 1}, "n_sources must be at least 2 for n_relevant=2"),
        ({"n_sources": 2, "relatedness": 0.5}, "n_sources must be at least 3"),
        ({"relatedness": 1.5}, "relatedness must be a number between 0 and 1"),
        ({"noise": 0.5}, "noise of task 0 must be at least 0 and less than 0.5"),
        ({"noise": [0, 0.1]}, "noise must be one number, or 4 numbers"),
        ({"noise": [0, 0, float("nan"), 0]}, "noise of task 2"),
        ({"n_samples": [10, 10, 3, 10]}, "n_samples of task 2 must be a whole number of at least 4, got 3"),
        ({"n_samples": 10.5}, "n_samples of task 0"),
        ({"n_samples": float("nan")}, "n_samples of task 0"),
        ({"sigma": 0}, "sigma must be a number greater than 0"),
    ],
)
def test_wrong_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        make_multitask(**options)
