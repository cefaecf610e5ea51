"""Tasks on the workers of a cluster: the same answers, few bytes, and no harm if a worker is lost."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from functools import partial
from traceback import walk_stack
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from paretomkl import (
    KernelBank,
    ParetoMKLClassifier,
    ParetoMKLClassifierCV,
    ParetoMKLRegressor,
    pareto_path,
    stack_tasks,
)
from paretomkl._data.reading import Reading
from paretomkl.distributed import Site, Sites
from paretomkl.distributed._shard import MOST_CLIENTS, Cancelled, NotHere, Request, Shard, cancel, cancelled_on
from paretomkl.problem import MultiTaskProblem
from paretomkl.protocols import Machine, check_part
from paretomkl.scalarizations import PowerMean
from paretomkl.solvers import CutPool
from paretomkl.weight_sets import LsBall

distributed = pytest.importorskip("distributed")

PS = [0.1, 1.0, np.inf]


def make_data(n_tasks, n=40, n_features=3, seed=0):
    """Tasks with different noise, by name."""
    rng = np.random.default_rng(seed)
    direction = rng.standard_normal((3, n_features))
    data = {}
    for t in range(n_tasks):
        X = rng.standard_normal((n, n_features)) + 5
        score = np.tanh((X - 5) @ direction[t % 3]) + (0.2 + 0.3 * (t % 4)) * rng.standard_normal(n)
        data[f"hospital-{t:03d}"] = X, np.where(score > np.median(score), "ill", "well")
    return data


def load(name, n_tasks=6, **options):
    """Load what a site would read from its disk."""
    return make_data(n_tasks, **options)[name]


def features(name, n_tasks=6):
    return make_data(n_tasks)[name][0]


def stacked(data):
    X, y, tasks = stack_tasks([X for X, _ in data.values()], [y for _, y in data.values()], list(data))
    return {"X": X, "y": y, "tasks": tasks}


def in_memory(data, **options):
    return Sites([Site(name, given) for name, given in data.items()], **options)


@pytest.fixture(scope="module")
def client(cluster):
    with distributed.Client(cluster) as client:
        yield client


def asked():
    """How many threads of this process answer a question; most answers are no tasks of the scheduler."""
    stacks = sys._current_frames().values()  # noqa: SLF001
    return sum(any(frame.f_code is Shard.answer.__code__ for frame, _ in walk_stack(stack)) for stack in stacks)


def busy(client):
    """What the workers are doing."""
    return [key for keys in client.processing().values() for key in keys] + [
        f"{n} answers" for n in client.run(asked).values() if n
    ]


def assert_soon_idle(client, deadline):
    while busy(client) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not busy(client)


# --------------------------------------------------------------------------------------------- the same answers
@pytest.mark.parametrize("kernels", ["paper", "default"])
def test_two_hundred_tasks_over_two_processes_match_the_local_path(client, kernels):
    data = make_data(200)
    far, near = (
        pareto_path(in_memory(data), kernels=kernels, ps=PS),
        pareto_path(**stacked(data), kernels=kernels, ps=PS),
    )
    assert far.task_names == near.task_names
    assert_allclose(far.theta, near.theta, rtol=0, atol=1e-9)
    assert_allclose(far.objectives, near.objectives, rtol=1e-9)
    assert far.gap.max() <= 1e-3
    assert_array_equal(far.models[1].support.rows, near.models[1].support.rows)
    some = {name: stacked(data)[name][:400] for name in ("X", "tasks")}
    ours, theirs = (path.models[1].decisions(some["X"], some["tasks"]) for path in (far, near))
    assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


def test_sites_agree_on_standardised_kernels_without_moving_samples(client):
    """The statistics are counts, sums and maxima, so they are exact."""
    data = make_data(6)
    bank = KernelBank(["linear", ("rbf", {"sigma": 1.0}), "laplacian"], normalize="capacity", standardize=True)
    sites = Sites([Site(name, load=partial(load, name)) for name in data])
    far, near = pareto_path(sites, kernels=bank, ps=PS), pareto_path(**stacked(data), kernels=bank, ps=PS)
    assert_array_equal(far.models[0].bank.factor, near.models[0].bank.factor)
    assert_array_equal(
        far.models[0].bank.evaluator.standardizer.scale, near.models[0].bank.evaluator.standardizer.scale
    )
    assert_allclose(far.theta, near.theta, rtol=0, atol=1e-9)


def test_sites_agree_that_counts_are_not_standardised(client):
    rng = np.random.default_rng(0)
    data = {name: (rng.poisson(0.2, (40, 20)).astype(float), y) for name, (_, y) in make_data(4).items()}
    far, near = (pareto_path(**given, ps=[1.0]) for given in ({"X": in_memory(data)}, stacked(data)))
    assert far.models[0].bank.scaling == near.models[0].bank.scaling == {"X": "root"}
    assert_allclose(far.theta, near.theta, rtol=0, atol=1e-9)


def test_default_widths_come_from_distances_within_sites(client):
    """They are close to the pooled ones, and a local path with the agreed kernels is the same path."""
    data = make_data(6)
    far = pareto_path(Sites([Site(name, load=partial(load, name)) for name in data]), ps=PS)
    bank = far.models[0].bank
    near = pareto_path(**stacked(data), kernels=KernelBank(bank.kernels, normalize="capacity", standardize=True), ps=PS)
    assert_allclose(far.theta, near.theta, rtol=0, atol=1e-9)
    pooled = pareto_path(**stacked(data), ps=[1.0]).models[0].bank
    assert_allclose(bank.kernels[5].sigma, pooled.kernels[5].sigma, rtol=0.1)


@pytest.mark.parametrize("normalize", ["trace", "none", "unit"])
def test_other_normalisations(client, normalize):
    data = make_data(5)
    bank = KernelBank(["linear", "poly", ("rbf", {"sigma": 1.0})], normalize=normalize)
    far, near = (pareto_path(**given, kernels=bank, ps=[1.0]) for given in ({"X": in_memory(data)}, stacked(data)))
    assert_allclose(far.theta, near.theta, rtol=0, atol=1e-9)


def test_futures_weights_and_several_classes(client):
    rng = np.random.default_rng(3)
    data = {}
    for name in ("b", "a"):  # not in their order
        X = rng.standard_normal((60, 2))
        data[name] = X, np.digitize(X[:, 0] + 0.3 * rng.standard_normal(60), [-0.5, 0.5]), rng.random(60)
    futures = {name: client.submit(tuple, given, pure=False) for name, given in data.items()}
    far = ParetoMKLClassifier(p=0.5, class_weight="balanced").fit(Sites([Site(n, f) for n, f in futures.items()]))
    X, y, tasks = stack_tasks([d[0] for d in data.values()], [d[1] for d in data.values()], list(data))
    weight = np.concatenate([d[2] for d in data.values()])
    near = ParetoMKLClassifier(p=0.5, class_weight="balanced").fit(X, y, tasks=tasks, sample_weight=weight)
    assert far.task_names_ == near.task_names_
    assert_allclose(
        far.theta_, near.theta_, atol=1e-4
    )  # tasks of one site share samples: sums differ in the last digit
    assert_array_equal(far.predict(X, tasks=tasks), near.predict(X, tasks=tasks))
    assert far.n_features_in_ == 2


def test_regression(client):
    rng = np.random.default_rng(4)
    data = {f"school {k}": (X := rng.standard_normal((30, 2)), X[:, 0] ** 2 + k) for k in range(3)}
    far = ParetoMKLRegressor().fit(in_memory(data))
    given = stacked(data)
    near = ParetoMKLRegressor().fit(given["X"], given["y"], tasks=given["tasks"])
    assert_allclose(far.theta_, near.theta_, rtol=0, atol=1e-9)
    assert_allclose(far.predict(given["X"], tasks=given["tasks"]), near.predict(given["X"], tasks=given["tasks"]))


def test_it_satisfies_the_machine_protocol(client):
    data = make_data(4)
    machine = in_memory(data).machine("paper")
    check_part(machine, Machine)
    solution = CutPool().solve(MultiTaskProblem(machine, PowerMean(1.0), LsBall(1.1)))
    assert_allclose(solution.theta, pareto_path(**stacked(data), kernels="paper", ps=[1.0]).theta[0], rtol=0, atol=1e-9)
    dual, intercepts, _ = machine.decisions(solution.sweep)
    assert [len(part) for part in dual] == [40] * 4
    assert intercepts.shape == (4,)


# --------------------------------------------------------------------------------------------- Dask collections
def test_dask_arrays_with_a_task_column(client):
    array = pytest.importorskip("dask.array")
    data = stacked(make_data(7))
    mixed = np.random.default_rng(0).permutation(len(data["y"]))
    codes = np.unique(data["tasks"], return_inverse=True)[1]
    X, y = np.column_stack([data["X"], codes])[mixed], data["y"][mixed]
    far = ParetoMKLClassifier(task_column=3).fit(array.from_array(X, chunks=(50, 2)), array.from_array(y, chunks=70))
    near = ParetoMKLClassifier(task_column=3).fit(X, y)
    assert_allclose(far.theta_, near.theta_, rtol=0, atol=1e-9)
    assert_array_equal(far.support_, near.support_)
    assert_array_equal(far.predict(X), near.predict(X))
    path = pareto_path(array.from_array(X[:, :3], chunks=(50, 3)), y, tasks=codes[mixed], ps=[1.0])
    assert_allclose(path.theta[0], near.theta_, rtol=0, atol=1e-9)


def test_dask_frames_with_a_task_column(client):
    pandas = pytest.importorskip("pandas")
    dataframe = pytest.importorskip("dask.dataframe")
    data = stacked(make_data(5))
    frame = pandas.DataFrame(data["X"], columns=["age", "dose", "time"]).assign(site=data["tasks"], y=data["y"])
    frame = frame.sample(frac=1, random_state=0)
    table = dataframe.from_pandas(frame, npartitions=3, sort=False)
    far = ParetoMKLClassifier(task_column="site").fit(table.drop(columns="y"), table["y"])
    near = ParetoMKLClassifier(task_column="site").fit(frame.drop(columns="y"), frame["y"])
    assert_allclose(far.theta_, near.theta_, rtol=0, atol=1e-9)
    assert list(far.feature_names_in_) == list(near.feature_names_in_)
    assert_array_equal(far.predict(frame.drop(columns="y")), near.predict(frame.drop(columns="y")))


# ------------------------------------------------------------------------------------------------- what travels
def test_at_most_a_kilobyte_for_each_task_and_round(client, monkeypatch):
    """Counts everything that this process, with the client and the scheduler, reads or writes on any socket."""
    from tornado.iostream import IOStream

    n_bytes = [0]
    write, read = IOStream.write_to_fd, IOStream.read_from_fd

    def counted_write(self, data):
        written = write(self, data)
        n_bytes[0] += written
        return written

    def counted_read(self, buffer):
        got = read(self, buffer)
        n_bytes[0] += got or 0
        return got

    machine = in_memory(make_data(200)).machine("paper")
    assert machine.n_kernels == 11
    theta = np.full(11, 0.1)
    warm = machine.sweep(theta).warm
    monkeypatch.setattr(IOStream, "write_to_fd", counted_write)
    monkeypatch.setattr(IOStream, "read_from_fd", counted_read)
    for k in range(10):
        warm = machine.sweep(theta * (1 + k), warm).warm
    assert 200 * 14 * 8 < n_bytes[0] / 10 <= 200 * 1000, f"{n_bytes[0] / 2000:.0f} bytes for each task and round"


def test_shards_cannot_be_sent(client):
    machine = in_memory(make_data(2)).machine("paper")
    shard = machine.workers.shards[0].future
    with pytest.raises(TypeError, match="stay on their worker"):
        shard.result(timeout=20)


def test_duals_of_forgotten_sweeps_are_dropped(client):
    machine = in_memory(make_data(4)).machine("paper")
    first = machine.sweep(np.ones(11))
    for _ in range(5):
        machine.sweep(np.ones(11))
    machine.sweep(np.ones(11), first.warm)

    def n_kept(shard):
        return len(shard.sweeps)

    shards = [shard.future for shard in machine.workers.shards]
    assert max(client.gather([client.submit(n_kept, shard, pure=False) for shard in shards])) <= 3


# ---------------------------------------------------------------------------------------------- models at sites
def test_models_can_stay_at_their_sites(client):
    data = make_data(6)
    sites = [Site(name, load=partial(load, name)) for name in data]
    path = pareto_path(Sites(sites, gather=False), kernels="paper", ps=[1.0])
    gathered = pareto_path(in_memory(data), kernels="paper", ps=[1.0]).models[0]
    left = path.models[0]
    found = left.predict({name: partial(features, name) for name in list(data)[:3]})
    for name, labels in found.items():
        X, y = data[name]
        assert_array_equal(labels, gathered.predict(X, [name] * len(X)))
        assert left.score({name: partial(load, name)})[name] == np.mean(labels == y)
    later = client.submit(features, "hospital-002", pure=False)
    assert_array_equal(left.predict({"hospital-002": later})["hospital-002"], found["hospital-002"])
    with pytest.raises(ValueError, match="Unknown site 'nowhere'"):
        left.predict({"nowhere": data["hospital-000"][0]})
    with pytest.raises(ValueError, match="'hospital-001' must have samples with 3 features"):
        left.predict({"hospital-001": np.ones((2, 5))})


# ------------------------------------------------------------------------------------------ lost and interrupted
def sweep_on(machine, enough=None):
    """One cold sweep after the other, for longer than any test takes."""
    end = time.monotonic() + 60
    while time.monotonic() < end and not (enough and enough.is_set()):
        machine.sweep(np.ones(machine.n_kernels), None, 1e-12)


@contextmanager
def two_workers(nanny):
    """A cluster whose workers are separate processes."""
    with distributed.LocalCluster(n_workers=0, dashboard_address=":0") as cluster:
        command = [sys.executable, "-m", "distributed.cli.dask_worker", cluster.scheduler_address, "--no-dashboard"]
        command += ["--nthreads", "1", "--nanny" if nanny else "--no-nanny"]
        workers = [subprocess.Popen([*command, "--name", f"w{k}"], stderr=subprocess.DEVNULL) for k in range(2)]
        try:
            with distributed.Client(cluster) as client:
                client.wait_for_workers(2, timeout=120)
                yield client
        finally:
            for worker in workers:
                worker.terminate()
            for worker in workers:
                worker.wait(20)


@pytest.mark.parametrize(("nanny", "bound"), [(False, False), (True, True)])
def test_a_worker_killed_mid_path_only_costs_time(nanny, bound):
    """Without a nanny its tasks move to the other worker; with one it returns, and so do the tasks bound to it."""
    data = make_data(24)
    near = pareto_path(**stacked(data), kernels="paper", ps=[1.0, np.inf])
    sites = [
        Site(name, load=partial(load, name, 24), worker=f"w{k % 2}") if bound else Site(name, given)
        for k, (name, given) in enumerate(data.items())
    ]
    with two_workers(nanny) as client:
        machine, sweeps = Sites(sites).machine("paper"), []
        sweep = machine.sweep
        victim = client.run(os.getpid)[machine.workers.shards[0].address]

        def fatal(theta, warm=None, rtol=1e-6):
            sweeps.append(theta)
            if len(sweeps) == 4:
                os.kill(victim, signal.SIGKILL)
            return sweep(theta, warm, rtol)

        machine.sweep = fatal
        solution = None
        for p, objective in zip([1.0, np.inf], near.objective, strict=True):
            solution = CutPool().solve(MultiTaskProblem(machine, PowerMean(p), LsBall(1.1)), solution)
            assert solution.gap <= 1e-3
            assert solution.objective == pytest.approx(objective, rel=2e-3)
        assert len(sweeps) >= 4
        assert victim not in client.run(os.getpid).values()
        dual, _, _ = machine.decisions(solution.sweep)  # those of the lost worker are solved again
        assert [len(part) for part in dual] == [40] * 24


def test_a_round_that_takes_long_is_shown_by_the_scheduler(client, monkeypatch):
    """Short rounds pass it by. A long one must not look like an idle cluster, which may be closed."""
    machine = in_memory(make_data(200, n=60)).machine("paper")
    for name in ("POLL", "SHOWN"):
        monkeypatch.setattr(f"paretomkl.distributed._workers.{name}", 0.01)  # all rounds are long now
    wanted, seen, enough = {"sweep", "1 answers"}, set(), threading.Event()
    sweeping = threading.Thread(target=sweep_on, args=(machine, enough))
    sweeping.start()
    while sweeping.is_alive() and not wanted <= seen:
        seen.update(key.split("-")[0] for key in busy(client))
    enough.set()
    sweeping.join()
    assert wanted <= seen
    assert_soon_idle(client, time.monotonic() + 2.0)


@pytest.mark.parametrize("error", [OSError("broken pipe"), NotHere("gone")], ids=["connection", "shard"])
def test_a_connection_that_breaks_or_a_shard_that_is_gone_costs_time_only(client, monkeypatch, error):
    data = make_data(4)
    machine = in_memory(data).machine("paper")
    run, shards, n_calls = client.run, [shard.future.key for shard in machine.workers.shards], []

    def broken_once(function, *args, **options):
        n_calls.append(function)
        if len(n_calls) == 4:
            raise error
        return run(function, *args, **options)

    monkeypatch.setattr(client, "run", broken_once)
    solution = CutPool().solve(MultiTaskProblem(machine, PowerMean(1.0), LsBall(1.1)))
    assert len(n_calls) > 4
    made_again = sum(shard.future.key != key for shard, key in zip(machine.workers.shards, shards, strict=True))
    assert made_again == isinstance(error, NotHere)
    near = pareto_path(**stacked(data), kernels="paper", ps=[1.0])
    assert solution.objective == pytest.approx(near.objective[0], rel=2e-3)


def test_a_worker_that_is_lost_again_and_again_is_given_up(client, monkeypatch):
    machine = in_memory(make_data(2)).machine("paper")

    def broken(function, *args, **options):
        raise OSError("broken pipe")

    monkeypatch.setattr(client, "run", broken)
    with pytest.raises(RuntimeError, match="was lost 4 times in one request"):
        machine.sweep(np.ones(11))


def test_a_named_worker_that_does_not_return_is_reported(client):
    with pytest.raises(TimeoutError, match=r"Worker 'nowhere', the only one with the samples of 'hospital-000'"):
        pareto_path(Sites([Site("hospital-000", load=partial(load, "hospital-000"), worker="nowhere")], patience=0.2))


def test_loaders_run_at_their_worker(client):
    names = {str(info["name"]): info for info in client.scheduler_info()["workers"].values()}
    sites = [
        Site(f"hospital-00{k}", load=partial(load, f"hospital-00{k}"), worker=name) for k, name in enumerate(names)
    ]
    machine = Sites(sites).machine("paper")
    addresses = {address: info["name"] for address, info in client.scheduler_info()["workers"].items()}
    for shard in machine.workers.shards:
        assert str(addresses[shard.address]) == shard.batch.worker
        assert client.who_has(shard.future)[shard.future.key] == (shard.address,)


@pytest.mark.parametrize("moment", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("stage", ["reading", "sweeps"])
def test_an_interrupt_ends_at_once_and_leaves_no_worker_busy(client, stage, moment, request):
    data = make_data(600, n=60)
    interrupted: list[float] = []

    def interrupt():
        time.sleep(moment)
        interrupted.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    machine = in_memory(data).machine("paper") if stage == "sweeps" else None

    def work():
        if machine:
            sweep_on(machine)
        while not interrupted:
            pareto_path(in_memory(data), kernels="default", ps=PS)

    gc.disable()  # a callback of Dask's would lose the interrupt
    request.addfinalizer(gc.enable)
    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        work()
    assert time.monotonic() - interrupted[0] < 2.0
    assert_soon_idle(client, interrupted[0] + 2.0)
    if machine:
        assert len(machine.sweep(np.ones(11)).lower) == 600  # only the requests of then are cancelled


def test_a_worker_only_remembers_the_last_cancelled_requests():
    worker = SimpleNamespace()
    for k in range(10 * MOST_CLIENTS):
        cancel(Request(f"client {k}", 7), worker)
    assert len(cancelled_on(worker)) == MOST_CLIENTS
    data, last = make_data(1)["hospital-000"], f"client {k}"
    shard = Shard(Reading(), [("hospital-000", data, None)], Request(last, 8), cancelled_on(worker))
    assert len(shard.answer(Request(last, 8), "describe")) == 1
    with pytest.raises(Cancelled):
        shard.answer(Request(last, 7), "describe")


# --------------------------------------------------------------------------------------------------- TLS, errors
def test_a_cluster_with_certificates(tmp_path):
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl makes the certificate")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost"]
    subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    who = {
        f"tls_{role}_{what}": str(file)
        for role in ("client", "scheduler", "worker")
        for what, file in (("key", key), ("cert", certificate))
    }
    security = distributed.Security(tls_ca_file=str(certificate), require_encryption=True, **who)
    data = make_data(4)
    with (
        distributed.LocalCluster(
            n_workers=2, processes=False, dashboard_address=":0", security=security, protocol="tls://"
        ) as cluster,
        distributed.Client(cluster, security=security) as client,
    ):
        assert client.scheduler.address.startswith("tls://")
        far = pareto_path(in_memory(data), kernels="paper", ps=[1.0])
    assert_allclose(far.theta, pareto_path(**stacked(data), kernels="paper", ps=[1.0]).theta, rtol=0, atol=1e-9)


def broken():
    raise OSError("no such disk")


def test_mistakes_are_named(client):
    X, y = make_data(1)["hospital-000"]
    with pytest.raises(ValueError, match="Site 'a' needs either data= or load="):
        Site("a")
    with pytest.raises(ValueError, match="Two sites are called 'a'"):
        Sites([Site("a", (X, y)), Site("a", (X, y))])
    with pytest.raises(ValueError, match="sites is empty"):
        Sites([])
    with pytest.raises(RuntimeError, match="The loader of site 'a' failed: OSError: no such disk"):
        pareto_path(Sites([Site("a", load=broken)]))
    with pytest.raises(ValueError, match="Site 'b' has 2 features, but site 'a' has 3"):
        pareto_path(Sites([Site("a", (X, y)), Site("b", (X[:, :2], y))]))
    with pytest.raises(ValueError, match=r"Site 'a': .*only one class"):
        pareto_path(Sites([Site("a", (X, np.zeros(len(X))))]))
    with pytest.raises(ValueError, match="Site 'a' must have"):
        pareto_path(Sites([Site("a", load=partial(features, "hospital-000"))]))
    with pytest.raises(ValueError, match="do not pass y"):
        pareto_path(Sites([Site("a", (X, y))]), y)
    with pytest.raises(ValueError, match="solver='tseng' needs"):
        pareto_path(Sites([Site("a", (X, y))]), solver="tseng", ps=[1.0])
    with pytest.raises(ValueError, match="share='function' needs the samples of all tasks in one place"):
        ParetoMKLClassifier(share="function").fit(Sites([Site("a", (X, y))]))
    with pytest.raises(ValueError, match="A search splits the samples"):
        ParetoMKLClassifierCV().fit(Sites([Site("a", (X, y))]))
    array = pytest.importorskip("dask.array")
    with pytest.raises(ValueError, match="A Dask collection needs tasks"):
        pareto_path(array.from_array(X), y)


def test_without_a_client_it_says_so():
    code = "import paretomkl.distributed as d; d.Sites([d.Site('a', ([[0.0], [1.0]], [0, 1]))]).machine()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ValueError: There is no Dask client" in done.stderr.splitlines()[-1]
