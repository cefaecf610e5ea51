"""``paretomkl demo``."""

from pathlib import Path
from textwrap import fill
from typing import Annotated, Any

from typer import Option

from ._running import Output, command

LOADING = """\
from paretomkl.datasets import load_digit_views

X, y = load_digit_views()"""
TESTED = 0.9  # of the digits: the library is for few samples


@command(
    "Example: `paretomkl demo --page digits.html`, then open `digits.html`.",
    summary="Learn handwritten digits from three sources.",
)
def demo(
    page: Annotated[Path, Option(help="File to write the page with the slider to.")] = Path("paretomkl-demo.html"),
    no_page: Annotated[bool, Option("--no-page", help="Skip the third step, the page.")] = False,
) -> None:
    """Three steps on scikit-learn's digits: learn from three sources, ask which of them matter, and write a page."""
    from .._tools.files import check_writable, write_whole

    if not no_page:
        check_writable(page)
    output = Output(as_json=False)
    output.say("1. Learn handwritten digits from three sources, with about ten images of each.\n")
    import numpy as np  # imported after the first line is printed: the libraries that learn take a second

    from ..datasets import load_digit_views
    from ..inspection import importance
    from ..report import held_out_split, trade_off_page
    from ..search import ParetoMKLClassifierCV

    views, y = load_digit_views()
    train, test = held_out_split(views, y, test_size=TESTED)
    X, X_test = ({name: view[rows] for name, view in views.items()} for rows in (train, test))
    search = ParetoMKLClassifierCV().fit(X, y[train])
    scores = {"paretomkl, chosen by cross-validation": search.score(X_test, y[test])}
    for name, baseline in _baselines().items():
        baseline.fit(np.hstack([*X.values()]), y[train])
        scores[f"{name}, all columns"] = baseline.score(np.hstack([*X_test.values()]), y[test])
    output.say(f"   Accuracy on {len(test)} other digits:")
    width = max(map(len, scores))
    _say("\n".join(f"{name:{width}}  {100 * score:.1f} %" for name, score in scores.items()), output)

    output.say("\n2. Which sources does the model need? Exchange each among held-out digits.\n")
    _say(str(importance(search, X, y[train])), output)
    if no_page:
        return

    output.say("\n3. Write a page about the model, with a slider that trades the digits off.\n")
    title = "Handwritten digits from three sources"
    found = trade_off_page(ParetoMKLClassifierCV(), views, y, test_size=TESTED, title=title)
    write_whole(page, found.page(loading=LOADING))
    points = f"{len(found.path)} models under a slider, tested on the same {len(found.test)} digits"
    _say(f"{page}: {points}. Open it in a browser.\nFor your own table: paretomkl path data.csv --target y", output)


def _baselines() -> dict[str, Any]:
    from sklearn.ensemble import ExtraTreesClassifier
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    grid = {"svc__C": [0.1, 1, 10, 100, 1000], "svc__gamma": [4.0**k / 96 for k in range(-3, 4)]}
    return {
        "300 extremely randomised trees": ExtraTreesClassifier(300, random_state=0),
        "SVC, C and γ by grid search": GridSearchCV(make_pipeline(StandardScaler(), SVC()), grid),
    }


def _say(words: str, output: Output) -> None:
    """Print lines below the heading of their step."""
    margin = "   "
    output.say(
        "\n".join(fill(line, 80, initial_indent=margin, subsequent_indent=margin) for line in words.splitlines())
    )
