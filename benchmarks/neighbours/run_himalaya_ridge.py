"""himalaya: MultipleKernelRidgeCV with its default random search on several outputs; R² on a test set.

python run_himalaya_ridge.py KERNELS.npz        # prints one JSON line for each setting
"""

import json
import sys
import time
from importlib.metadata import version

import numpy as np
from himalaya.kernel_ridge import MultipleKernelRidgeCV

SETTINGS = {"default, α = 1": 1.0, "six α from 10⁻³ to 10²": np.logspace(-3, 2, 6)}


def main() -> None:
    with np.load(sys.argv[1]) as data:
        Ks, Y, Ks_test, Y_test = (data[name] for name in ("Ks", "Y", "Ks_test", "Y_test"))
    for name, alphas in SETTINGS.items():
        params = {"n_iter": 100, "alphas": alphas, "progress_bar": False}
        model = MultipleKernelRidgeCV(
            kernels="precomputed", solver="random_search", solver_params=params, random_state=0
        )
        began, cpu = time.perf_counter(), time.process_time()
        model.fit(Ks, Y)
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        r2 = float(np.mean(model.score(Ks_test, Y_test)))
        name = f"himalaya {version('himalaya')}, 100 draws, {name}"
        print(json.dumps({"name": name, "seconds": seconds, "cpu": cpu, "r2": r2}), flush=True)


if __name__ == "__main__":
    main()
