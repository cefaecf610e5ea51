"""The figures that the paper prints in its Tables I to IV, in per cent, to stand beside those of a run.

C. Li, M. Georgiopoulos and G. C. Anagnostopoulos: Pareto-Path Multi-Task Multiple Kernel Learning. IEEE Transactions on
Neural Networks and Learning Systems 26, 2015 (arXiv:1404.3190).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MULTI_CLASS = ("robot", "satellite", "vehicle", "steel", "segment", "shuttle")


@dataclass(frozen=True)
class Printed:
    """An accuracy, and whether it is underlined: significantly worse than that of p < 1."""

    accuracy: float
    worse: bool = False


def _row(text: str) -> list[Printed]:
    return [Printed(float(word.strip("_")), word.startswith("_")) for word in text.split()]


def _table(
    columns: Mapping[str, tuple[int, ...]], rows: dict[str, dict[int, str]]
) -> dict[tuple[str, int, str], Printed]:
    """(data set, fraction, row name) → what is printed; columns: fractions of each data set."""
    table = {}
    for name, by_fraction in rows.items():
        for fraction, text in by_fraction.items():
            datasets = [dataset for dataset, fractions in columns.items() if fraction in fractions]
            for dataset, printed in zip(datasets, _row(text), strict=True):
                table[dataset, fraction, name] = printed
    return table


_CLASSES = dict.fromkeys(MULTI_CLASS, (10, 20, 50))
_LETTER, _LANDMINE = {"letter": (10, 20, 50)}, {"landmine": (20, 30, 50)}


def _by_fraction(fractions: tuple[int, ...], text: str) -> dict[int, str]:
    return dict(zip(fractions, text.split(), strict=True))


PATH = {
    **_table(
        _CLASSES,
        {
            "p<1": {
                10: "90.11 85.48 61.47 73.35 90.22 98.77",
                20: "92.70 87.78 66.97 76.33 92.86 99.20",
                50: "96.12 90.56 73.07 79.30 94.76 99.28",
            },
            "p=1": {
                10: "_88.63 _83.79 60.61 73.33 _88.56 _97.78",
                20: "92.36 _85.43 65.83 75.82 _90.72 _98.74",
                50: "96.03 _87.53 _70.05 _76.78 _92.66 _98.71",
            },
            "p=inf": {
                10: "87.01 82.12 46.75 71.49 84.98 72.32",
                20: "91.51 83.55 50.80 72.74 87.71 76.03",
                50: "95.64 85.60 52.70 72.93 90.36 80.71",
            },
        },
    ),
    **_table(
        _LETTER,
        {
            "p<1": _by_fraction((10, 20, 50), "83.95 87.51 90.61"),
            "p=1": _by_fraction((10, 20, 50), "_81.45 _86.42 90.01"),
            "p=inf": _by_fraction((10, 20, 50), "77.67 85.60 89.80"),
        },
    ),
    **_table(
        _LANDMINE,
        {
            "p<1": _by_fraction((20, 30, 50), "69.59 74.15 77.42"),
            "p=1": _by_fraction((20, 30, 50), "_67.24 _71.62 76.96"),
            "p=inf": _by_fraction((20, 30, 50), "65.01 69.00 74.06"),
        },
    ),
}
"""Tables I and III, by (data set, fraction, "p<1", "p=1" or "p=inf")."""

TASKS_UP = {
    **{
        (dataset, fraction): n
        for fraction, row in {10: (6, 12, 5, 2, 21, 1), 20: (6, 12, 5, 3, 19, 1), 50: (6, 14, 6, 3, 21, 2)}.items()
        for dataset, n in zip(MULTI_CLASS, row, strict=True)
    },
    **{("letter", fraction): n for fraction, n in zip((10, 20, 50), (8, 8, 7), strict=True)},
    **{("landmine", fraction): n for fraction, n in zip((20, 30, 50), (29, 28, 27), strict=True)},
}
"""Tables I and III: tasks whose accuracy rises as p falls."""

METHODS = {
    **_table(
        _CLASSES,
        {
            "sparse": {
                10: "_87.59 85.43 60.58 75.21 90.01 98.66",
                20: "_91.81 87.99 67.58 76.44 92.77 99.08",
                50: "95.77 92.18 74.85 78.84 94.49 99.66",
            },
            "tang": {
                10: "_88.61 85.27 60.50 73.03 _88.65 98.06",
                20: "92.13 87.40 66.67 75.07 _91.17 _98.83",
                50: "95.68 90.52 74.04 78.64 94.59 99.43",
            },
            "mm-aep": {
                10: "92.78 _83.06 71.89 _65.65 89.27 _97.22",
                20: "95.10 _84.63 75.07 _66.83 _91.30 _97.56",
                50: "97.71 _86.85 78.80 _67.54 _92.55 _97.98",
            },
            "mm-ep": {
                10: "93.96 _80.94 68.31 _69.45 _85.57 _97.43",
                20: "96.59 _82.08 73.46 _72.45 _89.89 _97.72",
                50: "98.73 _85.49 75.57 _75.26 _93.15 _98.37",
            },
            "independent": {
                10: "_87.93 _82.46 60.05 72.98 _83.48 _74.81",
                20: "_91.45 _84.15 65.61 75.17 _85.30 _78.94",
                50: "_95.09 _86.32 _69.89 _76.66 _86.32 _82.59",
            },
        },
    ),
    **_table(
        _LETTER,
        {
            "sparse": _by_fraction((10, 20, 50), "83.00 87.09 90.65"),
            "tang": _by_fraction((10, 20, 50), "_80.86 _82.95 _84.87"),
            "mm-aep": _by_fraction((10, 20, 50), "83.92 86.77 _88.94"),
            "mm-ep": _by_fraction((10, 20, 50), "_81.73 _84.14 _86.43"),
            "independent": _by_fraction((10, 20, 50), "_81.33 86.39 _89.80"),
        },
    ),
    **_table(
        _LANDMINE,
        {
            "sparse": _by_fraction((20, 30, 50), "_58.89 _65.83 _75.82"),
            "tang": _by_fraction((20, 30, 50), "_66.60 _70.89 76.08"),
            "mm-aep": _by_fraction((20, 30, 50), "_59.27 _61.06 _67.34"),
            "mm-ep": _by_fraction((20, 30, 50), "69.69 73.62 76.40"),
            "independent": _by_fraction((20, 30, 50), "_66.64 _71.14 76.29"),
        },
    ),
}
"""Tables II and IV, by (data set, fraction, method); the row "Pareto" is "p<1" of PATH."""
