"""The golden run against onnxruntime: every output of every network."""
import numpy as np
import onnxruntime
import pytest

from conftest import require_shared
from networks import NETWORKS, STREAMING, cosine, load_outputs, only_input


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.mark.parametrize("network", NETWORKS, ids=str)
def test_golden_run_equals_onnxruntime(network, openrknn, models, tmp_path):
    path = network.file(models)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    sample = network.sample(0)
    expected = session.run(None, {only_input(session): sample})
    np.save(tmp_path / "input.npy", sample)
    openrknn("run", path, "--input", tmp_path / "input.npy", "--outdir", tmp_path / "out", "--quiet")
    outputs = load_outputs(tmp_path / "out")
    assert [name for name, _ in outputs] == [o.name for o in session.get_outputs()]
    for (name, got), wanted in zip(outputs, expected):
        assert got.shape == wanted.shape, name
        largest = float(np.abs(wanted).max())
        assert cosine(got, wanted) >= 0.99999, name
        assert float(np.abs(got - wanted).max()) <= 1e-3 * largest, name


@pytest.mark.parametrize("network", STREAMING, ids=str)
def test_states_fed_back_stay_equal(network, openrknn, tmp_path):
    """Each side goes on from its own states."""
    path = require_shared(network.path)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    shapes = {i.name: [d if isinstance(d, int) else 1 for d in i.shape] for i in session.get_inputs()}
    audio, = set(shapes) - set(network.states) - set(network.constants)
    theirs = {name: np.zeros(shapes[name], np.float32) for name in network.states}
    ours = dict(theirs)
    for step, frame in enumerate(network.steps(8)):
        names = [o.name for o in session.get_outputs()]
        expected = dict(zip(names, session.run(None, {audio: frame, **theirs, **network.constants})))
        arguments = []
        for name, array in {audio: frame, **ours, **network.constants}.items():
            np.save(tmp_path / f"{name}.npy", array)
            arguments += ["--input", f"{name}={tmp_path / name}.npy"]
        openrknn("run", path, *arguments, "--outdir", tmp_path / "out", "--quiet")
        got = dict(load_outputs(tmp_path / "out"))
        assert list(got) == names
        for name in names:
            assert got[name].shape == expected[name].shape, name
            assert cosine(got[name], expected[name]) >= 0.99999, f"step {step}: {name}"
            assert np.abs(got[name] - expected[name]).max() <= 1e-3 * np.abs(expected[name]).max(), f"step {step}: {name}"
        theirs = {name: expected[output] for name, output in network.states.items()}
        ours = {name: got[output] for name, output in network.states.items()}
