"""Large problems on a device of PyTorch, compared with the CPU: on the CPU of PyTorch, and on a GPU with -m device."""

from __future__ import annotations

import gc
import warnings
import weakref
from dataclasses import replace
from threading import Thread

import numpy as np
import pytest
from numpy.testing import assert_allclose

import paretomkl
from paretomkl import KernelBank, ParetoMKLClassifier, config_context, get_config, pareto_path, set_config
from paretomkl.exceptions import DeviceWarning
from paretomkl.gram import GramBlocks
from paretomkl.kernels import Gaussian, Laplacian, Linear, Polynomial
from paretomkl.machines import MACHINES

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

KERNELS = [Linear(), Polynomial(2), Gaussian(0.7), Gaussian(1.5), Laplacian(0.3), Gaussian(0.7, columns=[0, 2])]
THETA = np.array([0.1, 0.1, 0.2, 0.3, 0.1, 0.2])
DEVICES = ["torch-cpu", pytest.param("cuda", marks=pytest.mark.device)]


@pytest.fixture(params=DEVICES)
def device(request):
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("PyTorch finds no CUDA device")
    return request.param


@pytest.fixture(autouse=True)
def _small_is_large(monkeypatch):
    """Everything goes to fields, and whatever can go to a device does."""
    monkeypatch.setattr("paretomkl.gram._blocks._FEW_PAIRS_OF_ALL", 0)
    monkeypatch.setattr("paretomkl.gram._blocks._FEW_PAIRS_ON_DEVICE", 0)
    monkeypatch.setattr("paretomkl.gram._blocks._LARGE_ON_DEVICE", 0)
    monkeypatch.setattr("paretomkl.machines._working_sets.SOME", 50)  # so that tasks start from a guess
    monkeypatch.setattr("paretomkl.gram._blocks._SYSTEM", 0)
    monkeypatch.setattr("paretomkl.machines._ridge.WORTH_A_DEVICE", 0)
    monkeypatch.setattr("paretomkl.kernels._fitted._PAIRS_WORTH_A_DEVICE", 0)
    monkeypatch.setattr("paretomkl.kernels._fitted._WORTH_A_DEVICE", 0)


def _gram(n_jobs=1, n=600, cache_mb=512):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    rows = [np.arange(n // 2), np.arange(n // 3, 2 * n // 3), np.arange(2 * n // 3, n)]
    return GramBlocks(KernelBank(KERNELS, normalize="unit", cache_mb=cache_mb).fit(X), X, rows, n_jobs), X, rows


def _machine(kind, n_jobs=1):
    gram, X, rows = _gram(n_jobs)
    signal = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
    targets = {"svc": np.where(signal > 0, 1.0, -1.0), "svr": signal, "ridge": signal}.get(kind, np.ones(len(X)))
    cost = {"svc": 5.0, "svr": 2.0, "one-class": 0.3, "svdd": 0.05, "ridge": 1.0}[kind]
    options = {"epsilon": 0.1} if kind == "svr" else {}
    costs = np.full(sum(map(len, rows)), cost)
    return MACHINES[kind].make(gram, np.concatenate([targets[r] for r in rows]), costs, np.ones(3), **options)


@pytest.mark.parametrize("kind", ["svc", "svr", "one-class", "svdd", "ridge"])
def test_bounds_on_a_device_enclose_the_objectives(kind, device):
    truth = _machine(kind).sweep(THETA, rtol=1e-8)
    there = _machine(kind, n_jobs=2)
    warm = None
    with config_context(device=device):
        for theta in (np.roll(THETA, 1), THETA):
            sweep = there.sweep(theta, warm, 1e-4)
            warm = sweep.warm
    assert (sweep.lower <= truth.upper).all()
    assert (sweep.upper >= truth.lower).all()
    assert (sweep.upper - sweep.lower <= 2.01e-4 * sweep.upper).all()  # single precision may add rtol
    if kind != "svdd":  # its slopes have another term
        forms = there.gram.quadratic_forms(warm.dual)
        assert (np.abs(sweep.forms - forms) <= 1e-10 * forms + 2 * sweep.rounding).all()


@pytest.mark.parametrize("free", [1e9, 0.0])
def test_linear_systems_are_made_on_the_device_if_there_is_memory(device, free, monkeypatch):
    from paretomkl.gram import CombinedGram

    made, flat = [], CombinedGram.flat
    monkeypatch.setattr("paretomkl.gram._on_device.free_bytes", lambda device: free)
    monkeypatch.setattr(CombinedGram, "flat", property(lambda self: made.append(1) or flat.fget(self)))
    gram, X, rows = _gram()
    costs = np.where(np.arange(900) % 7 == 0, 0.0, 1.0)  # some samples are left out
    here, there = (MACHINES["ridge"].make(gram, np.tile(np.sin(X[:, 0]), 2)[:900], costs, np.ones(3)) for _ in range(2))
    there.gram = gram.with_bank(gram.bank.with_capacity(0.5))  # shares the values, but not the factors
    here.gram = GramBlocks(there.gram.bank, X, rows)
    truth = here.sweep(THETA, rtol=1e-10)
    made.clear()
    with config_context(device=device):
        sweep = there.sweep(THETA, rtol=1e-10)
    assert bool(made) == (free == 0.0)
    assert (there.gram._made.device_values is None) == (free == 0.0)  # noqa: SLF001
    assert_allclose(sweep.lower, truth.lower, rtol=1e-9)
    assert_allclose(sweep.forms, truth.forms, rtol=1e-8)
    assert_allclose(sweep.warm.dual, truth.warm.dual, atol=1e-9)


@pytest.mark.parametrize("kind", ["precomputed", "function", "sparse"])
def test_linear_systems_of_any_kernels_go_to_the_device(device, kind):
    from scipy.sparse import csr_matrix

    _, X, rows = _gram()
    kernels = [Gaussian(0.7), Linear()] if kind == "sparse" else [lambda a, b: (a @ b.T) ** 2, Gaussian(0.7)]
    samples = csr_matrix(np.where(X > 0.5, X, 0.0)) if kind == "sparse" else X
    if kind == "precomputed":
        samples = np.stack([X @ X.T, (X @ X.T + 1) ** 2], axis=2)
        bank = KernelBank("precomputed").fit(samples)
    else:
        bank = KernelBank(kernels).fit(samples)
    found = []
    for name in ("cpu", device):
        gram = GramBlocks(bank, samples, rows)
        machine = MACHINES["ridge"].make(
            gram, np.concatenate([np.sin(X[r, 0]) for r in rows]), np.full(sum(map(len, rows)), 2.0)
        )
        with config_context(device=name), warnings.catch_warnings():
            warnings.simplefilter("error", DeviceWarning)
            found.append(machine.sweep(np.array([0.4, 0.6]), rtol=1e-10))
    assert gram._made.device_values is not None  # noqa: SLF001
    assert_allclose(found[1].lower, found[0].lower, rtol=1e-9)
    assert_allclose(found[1].forms, found[0].forms, rtol=1e-7)


def test_matrices_that_others_write_to_are_not_taken_from_the_device(device):
    """Those of tasks that share a function are the sum of two, which is made on the host."""
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(120, 3)), np.repeat([0, 1], 60)
    y, found = X[:, 0] + 0.3 * task * X[:, 1], []
    for name in ("cpu", device):
        with config_context(device=name):
            model = paretomkl.ParetoMKLRegressor(share="function", tol=1e-8).fit(X, y, tasks=task)
            found.append(model.predict(X, tasks=task))
    assert_allclose(found[1], found[0], atol=1e-6)


def test_work_is_done_on_the_device(device, monkeypatch):
    """Otherwise the tests here would compare the CPU with itself."""
    from paretomkl.gram._large.on_device import DeviceField

    used = []
    move_to = DeviceField.move_to
    monkeypatch.setattr(DeviceField, "move_to", lambda self, dual: used.append(self.device.type) or move_to(self, dual))
    with config_context(device=device):
        _machine("svc").sweep(THETA, rtol=1e-2)
    assert set(used) == {"cpu" if device == "torch-cpu" else "cuda"}


@pytest.mark.parametrize("pairs", [2**26, 5000])
@pytest.mark.parametrize("resident", [True, False])
def test_fields_match_dense_kernels_in_pieces_and_with_samples_on_the_host(device, pairs, resident, monkeypatch):
    from paretomkl._tools.devices import chosen_device
    from paretomkl.gram._large.on_device import DeviceField, DeviceStore

    monkeypatch.setattr("paretomkl.kernels._device.PAIRS", pairs)
    if not resident:
        monkeypatch.setattr("paretomkl.kernels._device.MOST_SHARE", 0.0)
        monkeypatch.setattr("paretomkl.kernels._device.free_bytes", lambda device: 1e9)
    gram, X, rows = _gram()
    side = gram.bank.side(X)
    dense, rng = gram.bank.stack(side, side), np.random.default_rng(1)
    with config_context(device=device):
        field = DeviceField(DeviceStore(gram, chosen_device(True)))
    assert field.store.samples.resident == resident
    weight, dual = rng.random(len(KERNELS)), np.zeros(gram.layout.ptr[-1])
    for share in (0.3, 0.1):
        dual = np.where(rng.random(len(dual)) < share, rng.normal(size=len(dual)), dual)
        field.begin(weight, 0.5 * dual)
        field.move_to(dual)
        forms, errors = field.quadratic_forms(), field.single_errors(weight * gram.bank.factor)[1]
        for t, f in enumerate(field.decisions(range(3))):
            K, v = dense[:, rows[t]][:, :, rows[t]], dual[gram.layout.ptr[t] : gram.layout.ptr[t + 1]]
            expected = np.einsum("m,mij,j->i", weight, K, v)
            assert_allclose(f, expected, atol=1e-5 * np.abs(v).sum())
            exact = field.exact_decisions([(t, np.arange(5))], weight / gram.bank.factor)[0]
            assert_allclose(exact, expected[:5], rtol=1e-9)
            assert np.abs(f - expected).max() <= 4 * errors[t]
            assert_allclose(forms[t], np.einsum("i,mij,j->m", v, K, v), rtol=1e-5)
            some = np.sort(rng.choice(len(v), 20, replace=False))
            found = (
                field.matrices({t: some}, torch.from_numpy(gram.layout.ptr[t] + some).to(field.device)).cpu().numpy()
            )
            assert_allclose(found.reshape(20, 20), np.tensordot(weight, K[:, some][:, :, some], 1), atol=1e-5)


@pytest.mark.parametrize("machine", ["svc", "ridge"])
def test_paths_and_predictions_agree_with_those_of_the_cpu(machine, device):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 5))
    y = (X[:, 0] > 0) * 1 + (X[:, 1] > 0.5) if machine == "svc" else X @ rng.normal(size=(5, 40)) + X[:, :1] ** 2
    paths = []
    for name in ("cpu", device):
        with config_context(device=name):
            path = pareto_path(X, y, machine=machine, C=10.0, ps=[0.5, 1, 2], tol=1e-4)
            paths.append((path, path.models[1].decisions(X[:50])))
    (here, expected), (there, found) = paths
    assert (there.gap <= 1e-4).all()
    assert_allclose(there.objective, here.objective, rtol=2e-4)
    with config_context(device=device):
        of_same_model = here.models[1].decisions(X[:50])
    assert_allclose(of_same_model, expected, atol=1e-9 * np.nanstd(expected))
    assert np.nanmax(np.abs(found - expected)) < 0.05 * np.nanstd(expected)


@pytest.mark.parametrize("kind", ["svc", "ridge"])
def test_memory_of_a_device_is_freed_with_the_store(kind, device):
    with config_context(device=device):
        machine = _machine(kind)
        machine.sweep(THETA, rtol=1e-3)
    gram = machine.gram
    kept = weakref.ref(gram._made.device_values if kind == "ridge" else gram._fields[0])  # noqa: SLF001
    gc.disable()
    try:
        assert kept() is not None
        del machine, gram
        assert kept() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("rtol", [1e-3, 1e-7])
def test_stores_with_other_factors_share_what_is_on_the_device(device, rtol):
    factors = np.linspace(1.0, 0.2, len(KERNELS))
    for kind in ("svc", "ridge"):
        truth, machine = _machine(kind).sweep(THETA * factors, rtol=1e-9), _machine(kind)
        with config_context(device=device):
            machine.sweep(THETA, rtol=rtol)
            machine.gram = machine.gram.with_bank(replace(machine.gram.bank, factor=factors))
            other = machine.sweep(THETA, rtol=rtol)
        assert (other.lower <= truth.upper).all()
        assert (other.upper >= truth.lower).all()
        assert (other.upper - other.lower <= 2.01 * rtol * other.upper).all()


def test_statistics_of_columns_do_not_depend_on_the_device(device):
    from paretomkl.kernels._fitted import weighted_quantiles

    X = np.random.default_rng(0).integers(0, 9, (101, 7)).astype(float)
    here = weighted_quantiles(X, np.ones(101), (0.5, 0.05, 0.95))
    with config_context(device=device):
        there = weighted_quantiles(X, np.ones(101), (0.5, 0.05, 0.95))
    assert np.array_equal(there, here)


def test_a_kernel_that_cannot_go_to_a_device_stays_on_the_cpu_with_a_warning(device):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)), np.repeat([0, 1], 150)
    bank = KernelBank([lambda a, b: a @ b.T, Gaussian(1.0)])
    with config_context(device=device), pytest.warns(DeviceWarning, match="is a function that a device") as caught:
        pareto_path(X, y, kernels=bank, ps=[1.0], C=1.0)
    assert caught[0].message.device == device
    with config_context(device="auto"), warnings.catch_warnings():
        warnings.simplefilter("error", DeviceWarning)
        pareto_path(X, y, kernels=bank, ps=[1.0], C=1.0)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_without_a_gpu_cuda_warns_and_auto_does_not():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)), np.repeat([0, 1], 150)
    expected = pareto_path(X, y, ps=[1.0], C=1.0).objective
    with config_context(device="cuda"), pytest.warns(DeviceWarning, match="The CPU is used: PyTorch finds no CUDA"):
        assert_allclose(pareto_path(X, y, ps=[1.0], C=1.0).objective, expected)
    with config_context(device="auto"), warnings.catch_warnings():
        warnings.simplefilter("error", DeviceWarning)
        assert_allclose(pareto_path(X, y, ps=[1.0], C=1.0).objective, expected)


def test_models_of_a_device_are_like_any_other(device, tmp_path):
    pytest.importorskip("skops", reason="skops is not installed")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.where(X[:, 0] * X[:, 1] > 0, "yes", "no")
    with config_context(device=device):
        fitted = ParetoMKLClassifier(C=10.0).fit(X, y)
    paretomkl.save_model(fitted, tmp_path / "model")
    assert_allclose(paretomkl.load_model(tmp_path / "model").decision_function(X), fitted.decision_function(X))
    assert fitted.score(X, y) > 0.9


def test_contexts_nest_and_belong_to_their_thread(monkeypatch):
    monkeypatch.delenv("PARETOMKL_DEVICE", raising=False)
    assert get_config() == {"device": "cpu"}
    seen = []
    with config_context(device="auto"):
        with config_context(device="cuda"):
            assert get_config()["device"] == "cuda"
        other = Thread(target=lambda: seen.append(get_config()["device"]))
        other.start()
        other.join()
        assert get_config()["device"] == "auto"
    assert seen == ["cpu"]
    monkeypatch.setenv("PARETOMKL_DEVICE", "auto")
    assert get_config()["device"] == "auto"
    try:
        set_config(device="cpu")
        assert get_config()["device"] == "cpu"
    finally:
        monkeypatch.setattr("paretomkl._tools.config.everywhere", {})


def test_threads_have_the_configuration_of_their_caller():
    from paretomkl._tools.running import run_chunks

    with config_context(device="auto"):
        assert run_chunks(lambda: get_config()["device"], [(), ()], 2) == ["auto", "auto"]


def test_copies_of_a_store_may_be_used_at_the_same_time(device):
    from paretomkl._tools.running import run_chunks

    gram, _, _ = _gram()
    duals = np.random.default_rng(0).normal(size=(2, gram.layout.ptr[-1]))
    expected = [gram.quadratic_forms(v) for v in duals]
    with config_context(device=device):
        with gram.combined(THETA) as K:
            assert K.on_device(0, np.arange(5)) is not None  # so that the values are there
        copies = [gram.with_bank(gram.bank) for _ in duals]
        for _ in range(20):
            found = run_chunks(lambda copy, v: copy.quadratic_forms(v), list(zip(copies, duals, strict=True)), 2)
            assert_allclose(found, expected, rtol=1e-9)


def test_folds_in_threads_have_the_configuration_of_their_search(monkeypatch):
    from paretomkl._select import folds

    seen, score = [], folds._score_fold  # noqa: SLF001
    monkeypatch.setattr(folds, "_score_fold", lambda *given: seen.append(get_config()["device"]) or score(*given))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    with config_context(device="auto"):
        paretomkl.ParetoMKLClassifierCV(Cs=[1.0], ps=[1.0], cv=2, n_jobs=2).fit(X, X[:, 0] > 0)
    assert set(seen) == {"auto"}


@pytest.mark.parametrize("rest", [["path"], ["fit", "--p", "1", "--C", "1", "--out", "model"]])
def test_commands_take_a_device(rest, tmp_path, monkeypatch):
    pytest.importorskip("typer")
    from typer.testing import CliRunner

    from paretomkl.cli._app import app

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("paretomkl._tools.config.everywhere", {})
    (tmp_path / "t.csv").write_text("a,b,y\n" + "".join(f"{k},{k * k % 7},{k % 2}\n" for k in range(12)))
    command, *options = rest
    found = CliRunner().invoke(app, [command, "t.csv", "--target", "y", *options, "--device", "gpu"])
    assert found.exit_code == 2
    assert "--device takes cpu, cuda or auto, got 'gpu'" in " ".join(found.stderr.split())
    if command == "fit":
        assert CliRunner().invoke(app, [command, "t.csv", "--target", "y", *options, "--device", "auto"]).exit_code == 0
        assert get_config() == {"device": "auto"}


def test_an_unknown_device_is_named():
    with pytest.raises(ValueError, match="device must be 'cpu', 'cuda' or 'auto', got 'gpu'"):
        set_config(device="gpu")
