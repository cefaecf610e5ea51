"""scikit-multimodallearn: MKL, alternating kernel ridge regression on the L_2 ball, signs as targets."""

from _harness import time_fit
from multimodal.kernels.lpMKL import MKL


def prepare(Ks, y):
    model = MKL(lmbda=1.0, kernel="precomputed")
    views = dict(enumerate(Ks))
    return lambda: model.fit(views, y.astype(int)), "squared loss, s = 2, lambda = 1, at most 50 rounds, precision 1e-4"


if __name__ == "__main__":
    time_fit("scikit-multimodallearn MKL", "scikit-multimodallearn", prepare)
