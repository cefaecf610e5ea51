"""MKLpy: GRAM, 50 steps of radius-margin descent on the simplex, then an SVM with C = 1 on the kernel found."""

import torch
from _harness import time_fit
from MKLpy.algorithms import GRAM
from sklearn.svm import SVC


def prepare(Ks, y):
    torch.set_num_threads(1)
    kernels = [torch.tensor(K) for K in Ks]
    model = GRAM(max_iter=50, learning_rate=0.01, learner=SVC(C=1.0))
    return lambda: model.fit(kernels, torch.tensor(y)), "50 steps, learning rate 0.01, then SVC(C=1); no gap known"


if __name__ == "__main__":
    time_fit("MKLpy GRAM", "MKLpy", prepare)
