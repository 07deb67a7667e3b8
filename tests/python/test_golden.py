"""The golden run against onnxruntime: every output of every network."""
import numpy as np
import onnxruntime
import pytest

from networks import NETWORKS, cosine, load_outputs, only_input


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
