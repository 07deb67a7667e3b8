"""Single operators in the golden run against onnxruntime: what ONNX's backend tests leave out."""
import itertools

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import onnx_backend


class Folder:
    """Makes a test in ONNX's layout whose results are onnxruntime's."""

    def __init__(self, root):
        self.root = root

    def write(self, name, op, inputs, outputs, attributes, opset=14, domain=""):
        """`inputs` by operand name, None for an absent one. `outputs` are names, "" for an absent one."""
        operands = [key if value is not None else "" for key, value in inputs.items()]
        given = {key: np.asarray(value) for key, value in inputs.items() if value is not None}
        attributes = {key: value for key, value in attributes.items() if value != []}
        node = helper.make_node(op, operands, outputs, domain=domain, **attributes)
        typed = [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for k, v in given.items()]
        results = [helper.make_empty_tensor_value_info(name) for name in outputs if name]
        model = helper.make_model(helper.make_graph([node], op, typed, results), ir_version=8,
                                  opset_imports=[helper.make_opsetid("", opset)])
        model = onnx.shape_inference.infer_shapes(model)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        expected = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                                providers=["CPUExecutionProvider"]).run(None, given)
        data = self.root / name / "test_data_set_0"
        data.mkdir(parents=True)
        onnx.save(model, self.root / name / "model.onnx")
        for stem, arrays in (("input", given.values()), ("output", expected)):
            for i, array in enumerate(arrays):
                (data / f"{stem}_{i}.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())

    def check(self):
        bad = [line for line in onnx_backend.drive(sorted(self.root.iterdir())) if line["result"] != "pass"]
        assert not bad, "\n".join(f"{line['name']}: {line['result']}: {line['detail']}" for line in bad)


@pytest.fixture
def folder(tmp_path):
    if not onnx_backend.DRIVER.is_file():
        pytest.fail(f"{onnx_backend.DRIVER} is not there: build the target openrknn_onnx_nodes (tools/test.sh does)")
    return Folder(tmp_path)


GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def recurrent_operands(random, op, directions, steps=5, batch=3, inputs=4, hidden=6):
    def values(*shape):
        return random.uniform(-1, 1, shape).astype(np.float32)

    rows = GATES[op] * hidden
    operands = {"X": values(steps, batch, inputs), "W": values(directions, rows, inputs), "R": values(directions, rows, hidden),
                "B": values(directions, 2 * rows), "lengths": np.int32([steps, 2, 4][:batch]),
                "h0": values(directions, batch, hidden)}
    if op == "LSTM":
        operands |= {"c0": values(directions, batch, hidden), "P": values(directions, 3 * hidden)}
    return operands


@pytest.mark.parametrize("op", GATES)
def test_recurrent(op, folder):
    random = np.random.default_rng(5)
    outputs = ["Y", "Yh", "Yc"] if op == "LSTM" else ["Y", "Yh"]
    optional = ["B", "lengths", "h0"] + (["c0", "P"] if op == "LSTM" else [])
    own = {"LSTM": ({}, {"input_forget": 1}), "GRU": ({}, {"linear_before_reset": 1}), "RNN": ({},)}[op]
    for direction, attributes in itertools.product(("forward", "reverse", "bidirectional"), own):
        directions = 2 if direction == "bidirectional" else 1
        for absent in ([], *([name] for name in optional), optional):
            operands = recurrent_operands(random, op, directions)
            operands |= {name: None for name in absent}
            name = "_".join([direction, *attributes, "without", *absent])
            folder.write(name, op, operands, outputs, {"hidden_size": 6, "direction": direction, **attributes})
        folder.write("_".join([direction, *attributes, "clip"]), op, recurrent_operands(random, op, directions), outputs,
                     {"hidden_size": 6, "direction": direction, "clip": 0.5, **attributes})
        # One step, one entry, as streaming networks have it; a sequence with no step; results not asked for.
        folder.write("_".join([direction, *attributes, "streaming"]), op,
                     recurrent_operands(random, op, directions, steps=1, batch=1), outputs,
                     {"hidden_size": 6, "direction": direction, **attributes})
        operands = recurrent_operands(random, op, directions) | {"lengths": np.int32([0, 5, 1])}
        folder.write("_".join([direction, *attributes, "empty"]), op, operands, outputs,
                     {"hidden_size": 6, "direction": direction, **attributes})
        folder.write("_".join([direction, *attributes, "last"]), op, recurrent_operands(random, op, directions),
                     ["", *outputs[1:]], {"hidden_size": 6, "direction": direction, **attributes})
    folder.check()


def test_recurrent_functions(folder):
    random = np.random.default_rng(6)
    cases = {"LeakyRelu": ([0.1], []), "ThresholdedRelu": ([0.3], []), "Elu": ([0.7], []), "HardSigmoid": ([0.3], [0.4]),
             "Affine": ([0.5], [0.1]), "ScaledTanh": ([0.9], [0.6]), "Softsign": ([], []), "Softplus": ([], []),
             "Relu": ([], []), "Sigmoid": ([], [])}
    for name, (alpha, beta) in cases.items():
        operands = recurrent_operands(random, "RNN", 1)
        folder.write("rnn_" + name, "RNN", operands, ["Y", "Yh"],
                     {"hidden_size": 6, "activations": [name], "activation_alpha": alpha, "activation_beta": beta})
        operands = recurrent_operands(random, "GRU", 2)
        folder.write("gru_" + name, "GRU", operands, ["Y", "Yh"],
                     {"hidden_size": 6, "direction": "bidirectional", "activations": ["Sigmoid", name, "HardSigmoid", name],
                      "activation_alpha": alpha + [0.25] + alpha, "activation_beta": beta + [0.5] + beta})
    folder.check()


def test_quantize(folder):
    random = np.random.default_rng(7)
    x = random.uniform(-40, 40, (2, 6, 5)).astype(np.float32)
    x[0, 0, :4] = (0.25, 0.75, -0.25, 1e30)  # ties with a scale of 0.5, and what the type cannot hold
    for dtype in (np.int8, np.uint8, np.int16, np.uint16):
        info = np.iinfo(dtype)
        zero = dtype(random.integers(info.min, info.max))
        folder.write(f"tensor_{dtype.__name__}", "QuantizeLinear", {"x": x, "s": np.float32(0.5), "z": zero}, ["y"], {}, 21)
        zeros = random.integers(info.min, info.max, 6, dtype=dtype)
        scales = random.uniform(0.01, 1, 6).astype(np.float32)
        folder.write(f"axis_{dtype.__name__}", "QuantizeLinear", {"x": x, "s": scales, "z": zeros}, ["y"], {"axis": -2}, 21)
        q = random.integers(info.min, info.max, x.shape, dtype=dtype)
        folder.write(f"back_{dtype.__name__}", "DequantizeLinear", {"x": q, "s": scales, "z": zeros}, ["y"], {"axis": 1}, 21)
        blocks = random.uniform(0.01, 1, (2, 3, 5)).astype(np.float32)
        folder.write(f"blocks_{dtype.__name__}", "DequantizeLinear", {"x": q, "s": blocks}, ["y"],
                     {"axis": 1, "block_size": 2}, 21)
    wide = random.integers(-2**31, 2**31, (4, 3)).astype(np.int32)
    folder.write("int32", "DequantizeLinear", {"x": wide, "s": np.float32([0.1])}, ["y"], {})
    folder.write("int32_axis", "DequantizeLinear", {"x": wide, "s": np.float32([0.1, 0.2, 0.3])}, ["y"], {})
    folder.write("default", "QuantizeLinear", {"x": x, "s": np.float32(0.3), "z": None}, ["y"], {})
    for name, values in {"dynamic": x / 1e29, "positive": np.abs(x[1]), "negative": -np.abs(x[1]), "zeros": x * 0}.items():
        folder.write(name, "DynamicQuantizeLinear", {"x": values}, ["y", "s", "z"], {})
    folder.check()


def integers(random, dtype, shape):
    info = np.iinfo(dtype)
    return random.integers(info.min, info.max + 1, shape, dtype=dtype)


@pytest.mark.parametrize("group", (1, 2, 8))
def test_integer_convolutions(folder, group):
    random = np.random.default_rng(8)
    attributes = {"group": group, "pads": [1, 0, 2, 1], "strides": [2, 1], "dilations": [1, 2]}
    # 8 channels of 9 x 5 taps: more terms than a float adds up exactly.
    x = integers(random, np.uint8, (2, 8, 20, 20))
    zero = np.uint8(77)
    for w_type in (np.int8, np.uint8):
        w = integers(random, w_type, (8, 8 // group, 9, 5))
        one = w_type(3)
        name = w_type.__name__
        folder.write(f"plain_{name}", "ConvInteger", {"x": x, "w": w, "zx": zero, "zw": one}, ["y"], attributes)
        folder.write(f"no_zeros_{name}", "ConvInteger", {"x": x, "w": w}, ["y"], attributes)
        linear = {"x": x, "sx": np.float32(0.02), "zx": zero, "w": w, "sw": np.float32(0.01), "zw": one,
                  "sy": np.float32(3.1), "zy": np.uint8(120)}
        bias = random.integers(-20000, 20000, 8).astype(np.int32)
        folder.write(f"linear_{name}", "QLinearConv", linear, ["y"], attributes)
        folder.write(f"bias_{name}", "QLinearConv", linear | {"b": bias}, ["y"], attributes)
        channels = {"sw": random.uniform(0.005, 0.02, 8).astype(np.float32), "zw": np.full(8, one)}
        folder.write(f"channels_{name}", "QLinearConv", linear | channels | {"b": bias}, ["y"], attributes)
    folder.check()


def test_integer_products(folder):
    random = np.random.default_rng(9)
    shapes = {"matrices": ((7, 600), (600, 5)), "batches": ((2, 3, 4, 6), (2, 3, 6, 5)), "vector": ((6,), (6, 5))}
    for name, (a_shape, b_shape) in shapes.items():
        for b_type in (np.int8, np.uint8):
            a, b = integers(random, np.uint8, a_shape), integers(random, b_type, b_shape)
            zeros = {"za": np.uint8(130), "zb": b_type(5)}
            label = f"{name}_{b_type.__name__}"
            folder.write(f"integer_{label}", "MatMulInteger", {"a": a, "b": b, **zeros}, ["y"], {})
            folder.write(f"no_zeros_{label}", "MatMulInteger", {"a": a, "b": b}, ["y"], {})
            if name == "vector":
                continue
            folder.write(f"linear_{label}", "QLinearMatMul",
                         {"a": a, "sa": np.float32(0.02), "za": np.uint8(130), "b": b, "sb": np.float32(0.01), "zb": b_type(5),
                          "sy": np.float32(0.3), "zy": np.uint8(100)}, ["y"], {}, 21)
            columns = b_shape[-1]
            if name == "matrices":
                folder.write(f"columns_{label}", "QLinearMatMul",
                             {"a": a, "sa": np.float32(0.02), "za": np.uint8(130), "b": b,
                              "sb": random.uniform(0.01, 0.02, columns).astype(np.float32),
                              "zb": integers(random, b_type, columns), "sy": np.float32(0.3), "zy": np.uint8(100)}, ["y"], {}, 21)
    folder.check()
