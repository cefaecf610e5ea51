"""The numbers printed in Tables I to IV of the paper, in per cent, to compare with those of a run.

C. Li, M. Georgiopoulos and G. C. Anagnostopoulos: Pareto-Path Multi-Task Multiple Kernel Learning. IEEE Transactions on
Neural Networks and Learning Systems 26, 2015 (arXiv:1404.3190).
"""

from __future__ import annotations

from dataclasses import dataclass

MULTI_CLASS = ("robot", "satellite", "vehicle", "steel", "segment", "shuttle")


@dataclass(frozen=True)
class Printed:
    """An accuracy, and whether it is underlined: significantly worse than at p < 1."""

    accuracy: float
    worse: bool = False


# one column for each data set; _ marks underlined numbers
_COLUMNS = (*MULTI_CLASS, "letter", "landmine")
_LANDMINE = {10: 20, 20: 30, 50: 50}  # the fraction of landmine that the paper prints in each row


def _fraction(dataset: str, row: str) -> int:
    return _LANDMINE[int(row)] if dataset == "landmine" else int(row)


def _table(text: str) -> dict[tuple[str, int, str], Printed]:
    """Map (data set, fraction, row name) to the printed number."""
    table = {}
    for name, fraction, *words in map(str.split, text.strip().splitlines()):
        for dataset, word in zip(_COLUMNS, words, strict=True):
            table[dataset, _fraction(dataset, fraction), name] = Printed(float(word.strip("_")), word[0] == "_")
    return table


PATH = _table("""
p<1   10  90.11  85.48  61.47  73.35  90.22  98.77  83.95  69.59
p<1   20  92.70  87.78  66.97  76.33  92.86  99.20  87.51  74.15
p<1   50  96.12  90.56  73.07  79.30  94.76  99.28  90.61  77.42
p=1   10 _88.63 _83.79  60.61  73.33 _88.56 _97.78 _81.45 _67.24
p=1   20  92.36 _85.43  65.83  75.82 _90.72 _98.74 _86.42 _71.62
p=1   50  96.03 _87.53 _70.05 _76.78 _92.66 _98.71  90.01  76.96
p=inf 10  87.01  82.12  46.75  71.49  84.98  72.32  77.67  65.01
p=inf 20  91.51  83.55  50.80  72.74  87.71  76.03  85.60  69.00
p=inf 50  95.64  85.60  52.70  72.93  90.36  80.71  89.80  74.06
""")
"""Tables I and III, by (data set, fraction, "p<1", "p=1" or "p=inf")."""

METHODS = _table("""
sparse      10 _87.59  85.43  60.58  75.21  90.01  98.66  83.00 _58.89
sparse      20 _91.81  87.99  67.58  76.44  92.77  99.08  87.09 _65.83
sparse      50  95.77  92.18  74.85  78.84  94.49  99.66  90.65 _75.82
tang        10 _88.61  85.27  60.50  73.03 _88.65  98.06 _80.86 _66.60
tang        20  92.13  87.40  66.67  75.07 _91.17 _98.83 _82.95 _70.89
tang        50  95.68  90.52  74.04  78.64  94.59  99.43 _84.87  76.08
mm-aep      10  92.78 _83.06  71.89 _65.65  89.27 _97.22  83.92 _59.27
mm-aep      20  95.10 _84.63  75.07 _66.83 _91.30 _97.56  86.77 _61.06
mm-aep      50  97.71 _86.85  78.80 _67.54 _92.55 _97.98 _88.94 _67.34
mm-ep       10  93.96 _80.94  68.31 _69.45 _85.57 _97.43 _81.73  69.69
mm-ep       20  96.59 _82.08  73.46 _72.45 _89.89 _97.72 _84.14  73.62
mm-ep       50  98.73 _85.49  75.57 _75.26 _93.15 _98.37 _86.43  76.40
independent 10 _87.93 _82.46  60.05  72.98 _83.48 _74.81 _81.33 _66.64
independent 20 _91.45 _84.15  65.61  75.17 _85.30 _78.94  86.39 _71.14
independent 50 _95.09 _86.32 _69.89 _76.66 _86.32 _82.59 _89.80  76.29
""")
"""Tables II and IV, by (data set, fraction, method); the row "Pareto" is "p<1" of PATH."""

TASKS_UP = {
    (dataset, _fraction(dataset, fraction)): int(n)
    for fraction, row in {"10": "6 12 5 2 21 1 8 29", "20": "6 12 5 3 19 1 8 28", "50": "6 14 6 3 21 2 7 27"}.items()
    for dataset, n in zip(_COLUMNS, row.split(), strict=True)
}
"""Tables I and III: number of tasks whose accuracy rises as p falls."""
