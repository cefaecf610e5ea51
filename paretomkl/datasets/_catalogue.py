"""The eight data sets of the paper: their form and their facts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from .._typing import AnyArray
from . import _registry as registry
from ._files import DataFile
from ._tables import Table, stack

Read = Callable[[DataFile], Table]


class DatasetInfo(NamedTuple):
    """A data set in short; ``n_tasks`` is the number of pairs of classes where the set has no tasks of its own."""

    name: str
    title: str
    n_samples: int
    n_features: int
    n_classes: int
    n_tasks: int


@dataclass(frozen=True)
class Contents:
    """What a data set hands out; more: further vectors of n_samples entries by name."""

    data: AnyArray
    target: AnyArray
    feature_names: Sequence[str]
    tasks: AnyArray | None = None
    more: Mapping[str, AnyArray] = field(default_factory=dict)


@dataclass(frozen=True)
class DataSet:
    """A data set of the catalogue.

    files, feature_names: of its form without options; build(data_set, read, **options): from files to contents;
    class_names: of classes that the files code as numbers; notes, source, reference: for DESCR.
    """

    info: DatasetInfo
    files: Sequence[DataFile]
    feature_names: Sequence[str]
    build: Callable[..., Contents]
    notes: str
    source: str
    reference: str
    class_names: Mapping[int, str] | None = None


def _all_rows(data_set: DataSet, read: Read) -> Contents:
    table = stack([read(file) for file in data_set.files])
    return Contents(table.data, table.target, data_set.feature_names)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


# ---------------------------------------------------------------------------------------------------- robot
def _robot(data_set: DataSet, read: Read, n_sensors: int = 4) -> Contents:
    if n_sensors == 24:
        table = read(registry.ROBOT_24)
        return Contents(table.data, table.target, [f"US{i}" for i in range(1, 25)])
    if n_sensors not in (2, 4):
        raise ValueError(f"robot has n_sensors 2, 4 or 24, got n_sensors={n_sensors!r}.")
    # the archive's file of two distances is the first two columns of that of four
    contents = _all_rows(data_set, read)
    return Contents(contents.data[:, :n_sensors], contents.target, contents.feature_names[:n_sensors])


ROBOT = DataSet(
    DatasetInfo("robot", "Wall-Following Robot Navigation", 5456, 4, 4, 6),
    files=[registry.ROBOT_4],
    feature_names=["front", "left", "right", "back"],
    build=_robot,
    notes="How a robot that follows a wall should move, by the least distance that its ultrasound sensors see in "
    "front, left, right and back (n_sensors=4; n_sensors=2 has front and left, n_sensors=24 each sensor). The rows are "
    "a time series, nine to the second: neighbouring rows are alike. The accuracies of the paper fit the four "
    "distances.",
    source="https://archive.ics.uci.edu/dataset/194",
    reference="Freire, Barreto, Veloso and Varela: Short-Term Memory Mechanisms in Neural Network Learning of Robot "
    "Navigation Tasks: A Case Study. Latin American Robotics Symposium, 2009.",
)


# -------------------------------------------------------------------------------------------------- segment
def _segment(data_set: DataSet, read: Read, drop_duplicates: bool = False) -> Contents:
    contents = _all_rows(data_set, read)
    if not drop_duplicates:
        return contents
    # no feature vector has two labels, so the features decide
    first = np.sort(np.unique(contents.data, axis=0, return_index=True)[1])
    return Contents(contents.data[first], contents.target[first], contents.feature_names)


SEGMENT = DataSet(
    DatasetInfo("segment", "Image Segmentation", 2310, 19, 7, 21),
    files=[registry.SEGMENT_DATA, registry.SEGMENT_TEST],
    feature_names=_names(
        "REGION-CENTROID-COL, REGION-CENTROID-ROW, REGION-PIXEL-COUNT, SHORT-LINE-DENSITY-5, SHORT-LINE-DENSITY-2, "
        "VEDGE-MEAN, VEDGE-SD, HEDGE-MEAN, HEDGE-SD, INTENSITY-MEAN, RAWRED-MEAN, RAWBLUE-MEAN, RAWGREEN-MEAN, "
        "EXRED-MEAN, EXBLUE-MEAN, EXGREEN-MEAN, VALUE-MEAN, SATURATION-MEAN, HUE-MEAN"
    ),
    build=_segment,
    notes="3 x 3 regions of seven outdoor images, by colour, contrast and place. All 210 rows of segmentation.data, "
    "which come first, occur again in segmentation.test, and that repeats 14 of its own: of 2310 rows, 2086 are "
    "distinct. Random splits put the same row on both sides; drop_duplicates=True keeps the first of each. "
    "REGION-PIXEL-COUNT is 9 throughout.",
    source="https://archive.ics.uci.edu/dataset/50",
    reference="Image Segmentation. Vision Group, University of Massachusetts, 1990; UCI Machine Learning Repository.",
)

# ------------------------------------------------------------------------ satellite, shuttle, vehicle, steel
SATELLITE = DataSet(
    DatasetInfo("satellite", "Statlog Landsat Satellite", 6435, 36, 6, 15),
    files=[registry.SATELLITE_TRAIN, registry.SATELLITE_TEST],
    feature_names=[f"pixel {pixel} band {band}" for pixel in range(1, 10) for band in range(1, 5)],
    build=_all_rows,
    notes="The kind of soil at the middle of 3 x 3 pixels of a satellite image in four spectral bands. The first 4435 "
    "rows are sat.trn, the others sat.tst. Code 6 does not occur.",
    source="https://archive.ics.uci.edu/dataset/146",
    reference="Srinivasan: Statlog (Landsat Satellite), 1993; UCI Machine Learning Repository.",
    class_names=dict(enumerate(_names("red soil, cotton crop, grey soil, damp grey soil, vegetation stubble"), start=1))
    | {7: "very damp grey soil"},
)
SHUTTLE = DataSet(
    DatasetInfo("shuttle", "Statlog Shuttle", 58000, 9, 7, 21),
    files=[registry.SHUTTLE_TRAIN, registry.SHUTTLE_TEST],
    feature_names=["time", *(f"feature {i}" for i in range(2, 10))],
    build=_all_rows,
    notes="The state of a part of the space shuttle, by nine readings with strong outliers. The first 43500 rows are "
    "shuttle.trn, the others shuttle.tst. Classes 1, 4 and 5 have 57756 of the 58000 rows; the paper uses the three "
    "large classes only.",
    source="https://archive.ics.uci.edu/dataset/148",
    reference="Statlog (Shuttle), given by J. Catlett and NASA; UCI Machine Learning Repository.",
    class_names=dict(enumerate(_names("Rad Flow, Fpv Close, Fpv Open, High, Bypass, Bpv Close, Bpv Open"), start=1)),
)
VEHICLE = DataSet(
    DatasetInfo("vehicle", "Statlog Vehicle Silhouettes", 846, 18, 4, 6),
    files=registry.VEHICLE,
    feature_names=_names(
        "compactness, circularity, distance circularity, radius ratio, pr.axis aspect ratio, max.length aspect ratio, "
        "scatter ratio, elongatedness, pr.axis rectangularity, max.length rectangularity, "
        "scaled variance along major axis, scaled variance along minor axis, scaled radius of gyration, "
        "skewness about major axis, skewness about minor axis, kurtosis about minor axis, kurtosis about major axis, "
        "hollows ratio"
    ),
    build=_all_rows,
    notes="Which of four model vehicles a silhouette shows, by measures of its shape. The rows are those of xaa.dat to "
    "xai.dat in turn.",
    source="https://archive.ics.uci.edu/dataset/149",
    reference="Siebert: Vehicle Recognition Using Rule Based Methods. Turing Institute Research Memorandum "
    "TIRM-87-018, 1987.",
)
STEEL = DataSet(
    DatasetInfo("steel", "Steel Plates Faults", 1941, 27, 7, 21),
    files=[registry.STEEL],
    feature_names=_names(
        "X_Minimum, X_Maximum, Y_Minimum, Y_Maximum, Pixels_Areas, X_Perimeter, Y_Perimeter, Sum_of_Luminosity, "
        "Minimum_of_Luminosity, Maximum_of_Luminosity, Length_of_Conveyer, TypeOfSteel_A300, TypeOfSteel_A400, "
        "Steel_Plate_Thickness, Edges_Index, Empty_Index, Square_Index, Outside_X_Index, Edges_X_Index, Edges_Y_Index, "
        "Outside_Global_Index, LogOfAreas, Log_X_Index, Log_Y_Index, Orientation_Index, Luminosity_Index, "
        "SigmoidOfAreas"
    ),
    build=_all_rows,
    notes="Surface faults of steel plates, by measures of their outline and brightness, whose scales differ by orders "
    "of magnitude. TypeOfSteel_A300 + TypeOfSteel_A400 = 1 throughout. The largest classes are Other_Faults, Bumps and "
    "K_Scatch.",
    source="https://archive.ics.uci.edu/dataset/198",
    reference="Buscema, Terzi and Tastle: Steel Plates Faults, 2010; UCI Machine Learning Repository.",
)

# --------------------------------------------------------------------------------------------------- letter
LETTER_PAIRS = ("ce", "gy", "mn", "ag", "ij", "ao", "ft", "hn")


def _letter(data_set: DataSet, read: Read, raw: bool = False) -> Contents:
    table = read(registry.LETTER)
    tasks = None
    rows = np.arange(len(table))
    if not raw:
        of_pair = [np.flatnonzero(np.isin(table.target, list(pair))) for pair in LETTER_PAIRS]
        rows = np.concatenate(of_pair)
        tasks = np.repeat(["/".join(pair) for pair in LETTER_PAIRS], [len(part) for part in of_pair])
    return Contents(
        table.data[rows].astype(np.float64),
        table.target[rows],
        data_set.feature_names,
        tasks,
        {"groups": rows, "folds": table.more["folds"][rows]},
    )


LETTER = DataSet(
    DatasetInfo("letter", "Handwritten letters, eight pairs", 45869, 128, 13, 8),
    files=[registry.LETTER],
    feature_names=[f"p_{row}_{column}" for row in range(16) for column in range(8)],
    build=_letter,
    notes="Handwritten letters of 16 x 8 pixels, 0 or 1, as eight tasks: c/e, g/y, m/n, a/g, i/j, a/o, f/t, h/n, one "
    "after the other. The images of a, g and n serve in two tasks and occur twice: groups is the row of the file (from "
    "0), the same for the same image; folds is Taskar's division into ten parts. The pairs sum to 45869 rows; the "
    "paper, which draws 200 for each task, says 45679. raw=True gives all 52152 letters of the file as 26 classes. Of "
    "these, 2572 repeat an earlier image and label, and some images occur under more than one letter.",
    source="https://ai.stanford.edu/~btaskar/ocr/",
    reference="Kassel: A Comparison of Approaches to On-line Handwritten Character Recognition. PhD thesis, MIT, 1995. "
    "Normalised for Taskar, Guestrin and Koller: Max-Margin Markov Networks. NIPS, 2003.",
)


# ------------------------------------------------------------------------------------------------- landmine
def _landmine(data_set: DataSet, read: Read) -> Contents:
    table = read(registry.LANDMINE)
    return Contents(table.data, table.target, data_set.feature_names, table.more["tasks"])


LANDMINE = DataSet(
    DatasetInfo("landmine", "Landmine detection, 29 fields", 14820, 9, 2, 29),
    files=[registry.LANDMINE],
    feature_names=[f"feature {i}" for i in range(1, 10)],
    build=_landmine,
    notes="Landmine or clutter, by features of radar images: four of moments, three of correlations, an energy ratio "
    "and a spatial variance, roughly standardised as distributed. Tasks 1 to 15 are foliated regions, 16 to 29 bare "
    "earth or desert. The task sizes of the paper, 30 to 96, are those of all positives and as many negatives of each "
    "task.",
    source="http://people.ee.duke.edu/~lcarin/LandmineData.zip",
    reference="Xue, Liao, Carin and Krishnapuram: Multi-Task Learning for Classification with Dirichlet Process "
    "Priors. Journal of Machine Learning Research 8, 2007.",
    class_names={0: "clutter", 1: "landmine"},
)

DATA_SETS: dict[str, DataSet] = {
    data_set.info.name: data_set for data_set in (ROBOT, SEGMENT, SATELLITE, SHUTTLE, VEHICLE, STEEL, LETTER, LANDMINE)
}
