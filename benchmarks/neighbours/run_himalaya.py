"""himalaya: MultipleKernelRidgeCV, random search of kernel weights by five-fold cross-validation, signs as targets."""

from _harness import time_fit
from himalaya.kernel_ridge import MultipleKernelRidgeCV


def prepare(Ks, y):
    model = MultipleKernelRidgeCV(
        kernels="precomputed", solver="random_search", solver_params={"progress_bar": False}, cv=5, random_state=0
    )
    return lambda: model.fit(Ks, y[:, None]), "squared loss, default random search of 100 draws, five folds"


if __name__ == "__main__":
    time_fit("himalaya MultipleKernelRidgeCV", "himalaya", prepare)
