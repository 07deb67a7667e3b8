"""Models that bring their own quantization: built without samples, and as exact as int8 can be."""
import json

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from networks import load_outputs

TensorProto = onnx.TensorProto


def quantized_network():
    """Two convolutions, a skip connection and a pool between QuantizeLinear and DequantizeLinear; a Relu is left to them."""
    random = np.random.default_rng(3)
    weights = {"w1": random.uniform(-0.4, 0.4, (8, 3, 3, 3)), "w2": random.uniform(-0.2, 0.2, (8, 8, 3, 3))}
    constants, nodes = {}, []
    for name, values in weights.items():
        scale = np.float32(np.abs(values).max(axis=(1, 2, 3)) / 127)
        constants |= {f"{name}_q": np.int8(np.round(values / scale.reshape(-1, 1, 1, 1))), f"{name}_s": scale,
                      f"{name}_z": np.zeros(8, np.int8)}
        nodes.append(helper.make_node("DequantizeLinear", [f"{name}_q", f"{name}_s", f"{name}_z"], [name], axis=0))

    def pair(tensor, scale, zero):
        constants.update({f"{tensor}_s": np.float32(scale), f"{tensor}_z": np.uint8(zero)})
        parameters = [f"{tensor}_s", f"{tensor}_z"]
        nodes.append(helper.make_node("QuantizeLinear", [tensor, *parameters], [f"{tensor}_q"]))
        nodes.append(helper.make_node("DequantizeLinear", [f"{tensor}_q", *parameters], [f"{tensor}_d"]))

    pair("x", 2 / 255, 128)
    nodes.append(helper.make_node("Conv", ["x_d", "w1"], ["a"], pads=[1, 1, 1, 1]))
    pair("a", 3 / 255, 0)  # negative values are cut here
    nodes.append(helper.make_node("Conv", ["a_d", "w2"], ["b"], pads=[1, 1, 1, 1]))
    pair("b", 6 / 255, 120)
    nodes.append(helper.make_node("Add", ["a_d", "b_d"], ["c"]))
    pair("c", 7 / 255, 100)
    nodes.append(helper.make_node("GlobalAveragePool", ["c_d"], ["g"]))
    pair("g", 4 / 255, 60)
    graph = helper.make_graph(nodes, "qat", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 12, 12])],
                              [helper.make_tensor_value_info("g_d", TensorProto.FLOAT, [1, 8, 1, 1])],
                              [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


@pytest.mark.parametrize("target, dtype", [("rk3588", "w8a8"), ("rk3566", "w8a8"), ("rv1106", "w8a8"), ("rk3588", "fp16")])
def test_quantized_model_needs_no_samples(target, dtype, openrknn, tmp_path):
    onnx.save(quantized_network(), tmp_path / "qat.onnx")
    openrknn("build", tmp_path / "qat.onnx", "-o", tmp_path / "qat.rknn", "--target", target, "--dtype", dtype, "--quiet")
    shown = json.loads(openrknn("inspect", tmp_path / "qat.rknn", "--json", "-").stdout)
    assert {task["engine"] for task in shown["tasks"]} == {"npu"}
    x = np.random.default_rng(4).uniform(-1, 1, (1, 3, 12, 12)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    outputs = []
    for model in ("qat.onnx", "qat.rknn"):
        openrknn("run", tmp_path / model, "--input", tmp_path / "x.npy", "--outdir", tmp_path / model[4:], "--quiet")
        outputs.append(load_outputs(tmp_path / model[4:])[0][1])
    golden, simulated = outputs
    # The NPU rounds where the model does, but not in the same steps: two steps of the result at most.
    assert np.abs(golden - simulated).max() <= 2 * 4 / 255 + 1e-6
    assert np.abs(golden).max() > 0.3
