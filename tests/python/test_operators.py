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
        options.intra_op_num_threads = 1
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


def uniform(random, *shape, low=-1.0, high=1.0):
    return random.uniform(low, high, shape).astype(np.float32)


def test_grid_sample(folder):
    random = np.random.default_rng(21)
    picture, volume = uniform(random, 2, 3, 5, 7), uniform(random, 1, 2, 3, 4, 5)
    grid, deep = uniform(random, 2, 4, 6, 2, low=-2.2, high=2.2), uniform(random, 1, 3, 3, 4, 3, low=-2.2, high=2.2)
    for padding, align in itertools.product(("zeros", "border", "reflection"), (0, 1)):
        attributes = {"padding_mode": padding, "align_corners": align}
        for old, new in (("bilinear", "linear"), ("nearest", "nearest"), ("bicubic", "cubic")):
            folder.write(f"old_{old}_{padding}_{align}", "GridSample", {"X": picture, "grid": grid}, ["Y"],
                         {"mode": old} | attributes, opset=16)
            folder.write(f"new_{new}_{padding}_{align}", "GridSample", {"X": picture, "grid": grid}, ["Y"],
                         {"mode": new} | attributes, opset=20)
            if new != "cubic":  # onnxruntime has none over three axes
                folder.write(f"deep_{new}_{padding}_{align}", "GridSample", {"X": volume, "grid": deep}, ["Y"],
                             {"mode": new} | attributes, opset=20)
    for align in (0, 1):
        folder.write(f"affine_{align}", "AffineGrid", {"theta": uniform(random, 2, 2, 3), "size": np.array([2, 1, 4, 5])},
                     ["grid"], {"align_corners": align}, opset=20)
        folder.write(f"affine_deep_{align}", "AffineGrid",
                     {"theta": uniform(random, 2, 3, 4), "size": np.array([2, 1, 3, 4, 5])}, ["grid"],
                     {"align_corners": align}, opset=20)
    folder.check()


def test_regions(folder):
    random = np.random.default_rng(22)
    picture = uniform(random, 2, 3, 9, 11)
    corners = random.uniform(-2, 18, (6, 4)).astype(np.float32)
    corners[:, 2:] = corners[:, :2] + random.uniform(0.1, 12, (6, 2)).astype(np.float32)
    samples = np.array([0, 1, 1, 0, 1, 0])
    operands = {"X": picture, "rois": corners, "batch": samples}
    for mode, ratio in itertools.product(("avg", "max"), (0, 1, 2)):
        attributes = {"mode": mode, "sampling_ratio": ratio, "output_height": 3, "output_width": 2, "spatial_scale": 0.6}
        folder.write(f"old_{mode}_{ratio}", "RoiAlign", operands, ["Y"], attributes, opset=10)
        for coordinates in ("half_pixel", "output_half_pixel"):
            folder.write(f"{coordinates}_{mode}_{ratio}", "RoiAlign", operands, ["Y"],
                         attributes | {"coordinate_transformation_mode": coordinates}, opset=16)
    boxes = np.concatenate([samples[:, None].astype(np.float32), corners], 1)
    for scale in (1.0, 0.5):
        folder.write(f"max_{scale}", "MaxRoiPool", {"X": picture, "rois": boxes}, ["Y"],
                     {"pooled_shape": [3, 2], "spatial_scale": scale})
    folder.check()


def test_windows_put_back(folder):
    random = np.random.default_rng(23)
    places = np.stack([random.permutation(36)[:9] for _ in range(2)]).reshape(1, 2, 3, 3) + np.array([0, 36]).reshape(1, 2, 1, 1)
    window = {"kernel_shape": [2, 2], "strides": [2, 2]}
    folder.write("unpool", "MaxUnpool", {"X": uniform(random, 1, 2, 3, 3), "I": places}, ["Y"], window)
    for name, image, block, extra in (("plain", [5, 6], [2, 3], {}), ("pads", [5, 5], [3, 3], {"pads": [1, 0, 1, 2]}),
                                      ("steps", [7, 6], [2, 2], {"strides": [2, 3], "dilations": [2, 1]})):
        strides, dilations = extra.get("strides", [1, 1]), extra.get("dilations", [1, 1])
        pads = extra.get("pads", [0] * 4)
        columns = int(np.prod([(image[i] + pads[i] + pads[i + 2] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1
                               for i in range(2)]))
        folder.write(f"col2im_{name}", "Col2Im",
                     {"X": uniform(random, 2, 3 * int(np.prod(block)), columns), "image": np.array(image),
                      "block": np.array(block)}, ["Y"], extra, opset=18)
    for name, shape, axes in (("all", [3, 9, 4], []), ("some", [7, 2], [-1, 0])):
        folder.write(f"center_{name}", "CenterCropPad", {"X": uniform(random, 4, 6, 5), "shape": np.array(shape)}, ["Y"],
                     {"axes": axes}, opset=18)
    folder.check()


def test_deformed_convolutions(folder):
    random = np.random.default_rng(24)
    for group, offset_group, masked in itertools.product((1, 2), (1, 2), (False, True)):
        operands = {"X": uniform(random, 2, 4, 7, 6), "W": uniform(random, 6, 4 // group, 3, 2),
                    "offset": uniform(random, 2, offset_group * 12, 4, 6, low=-2, high=2), "B": uniform(random, 6),
                    "mask": uniform(random, 2, offset_group * 6, 4, 6) if masked else None}
        folder.write(f"{group}_{offset_group}_{masked}", "DeformConv", operands, ["Y"],
                     {"group": group, "offset_group": offset_group, "pads": [1, 0, 1, 1], "strides": [2, 1]}, opset=19)
    folder.check()


def test_norms_and_powers(folder):
    random = np.random.default_rng(25)
    x = uniform(random, 2, 3, 6, 5, low=0.2, high=2)
    for p in (1, 2):
        for axis in (0, 1, -1):
            folder.write(f"lp_{p}_{axis}", "LpNormalization", {"X": x}, ["Y"], {"p": p, "axis": axis})
    for p in (1, 2, 3):
        folder.write(f"global_{p}", "GlobalLpPool", {"X": x}, ["Y"], {"p": p})
        folder.write(f"pool_{p}", "LpPool", {"X": x}, ["Y"],
                     {"p": p, "kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]})
    folder.write("pool_wide", "LpPool", {"X": x}, ["Y"],
                 {"kernel_shape": [2, 2], "strides": [2, 2], "dilations": [2, 1], "ceil_mode": 1}, opset=18)
    for axes in ([0, 2, 3], [1], [2, 3]):
        folder.write(f"mean_variance_{axes}", "MeanVarianceNormalization", {"X": x}, ["Y"], {"axes": axes})
    for axis in (1, -1):
        folder.write(f"rms_{axis}", "RMSNormalization", {"X": x, "scale": uniform(random, *x.shape[axis:])}, ["Y"],
                     {"axis": axis, "epsilon": 1e-3}, opset=23)
    for k, dtype in ((0, 1), (2, 7), (-1, 6)):
        folder.write(f"eye_{k}", "EyeLike", {"X": uniform(random, 4, 5)}, ["Y"], {"k": k, "dtype": dtype})
    folder.write("shrink", "Shrink", {"X": uniform(random, 50)}, ["Y"], {"lambd": 0.3, "bias": 0.1})
    folder.write("det", "Det", {"X": uniform(random, 3, 2, 4, 4)}, ["Y"], {})
    folder.check()


def test_einsum(folder):
    random = np.random.default_rng(26)
    for i, (equation, shapes) in enumerate((
            ("ij,jk", [(3, 4), (4, 5)]), ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]), ("ij->ji", [(3, 4)]), ("ij->", [(3, 4)]),
            ("...ij,...jk->...ik", [(2, 1, 3, 4), (1, 5, 4, 6)]), ("ii->i", [(4, 4)]), ("i,j->ij", [(3,), (4,)]),
            ("bhqd,bhkd->bhqk", [(2, 3, 4, 5), (2, 3, 6, 5)]), ("bchw,cd->bdhw", [(2, 3, 4, 5), (3, 6)]),
            ("ab,bc,cd->ad", [(2, 3), (3, 4), (4, 5)]), ("abc,adc,be->de", [(2, 3, 4), (2, 5, 4), (3, 6)]),
            ("bmchw,bnmc->bmhwn", [(1, 2, 3, 4, 5), (1, 6, 2, 3)]), ("...,...->...", [(3, 4), (3, 4)]),
            ("ijk,ijk->k", [(2, 3, 4), (2, 3, 4)]), ("ij,ij->ij", [(3, 4), (3, 4)]))):
        operands = {f"x{k}": uniform(random, *shape, low=0.1) for k, shape in enumerate(shapes)}
        folder.write(f"{i}", "Einsum", operands, ["Y"], {"equation": equation})
    folder.check()


def test_results_that_depend_on_data(folder):
    random = np.random.default_rng(27)
    low = random.uniform(0, 10, (2, 30, 2))
    corners = np.concatenate([low, low + random.uniform(0.5, 5, (2, 30, 2))], 2).astype(np.float32)
    scores = np.round(random.uniform(0, 1, (2, 3, 30)), 1).astype(np.float32)  # with equal ones
    for most, overlap, least in itertools.product((3, 100), (0.0, 0.4), (None, 0.5)):
        for centre in (0, 1):
            operands = {"boxes": corners, "scores": scores, "most": np.array([most]), "overlap": np.float32([overlap]),
                        "least": None if least is None else np.float32([least])}
            folder.write(f"boxes_{most}_{overlap}_{least}_{centre}", "NonMaxSuppression", operands, ["Y"],
                         {"center_point_box": centre}, opset=11)
    values = random.integers(0, 4, (6, 3)).astype(np.float32)
    for axis, order in itertools.product(([], 0, 1), (0, 1)):
        folder.write(f"unique_{axis}_{order}", "Unique", {"X": values}, ["Y", "first", "inverse", "counts"],
                     {"axis": axis, "sorted": order}, opset=11)
    flags = np.array([True, False, True])
    for axis in ([], 0, 1):
        folder.write(f"compress_{axis}", "Compress", {"X": values, "condition": flags}, ["Y"], {"axis": axis})
    folder.check()


@pytest.mark.parametrize("heads", ((4, 4), (4, 2), (6, 1)))
def test_attention(folder, heads):
    random = np.random.default_rng(28)
    queries, shared = heads
    q, k, v = uniform(random, 2, queries, 3, 8), uniform(random, 2, shared, 5, 8), uniform(random, 2, shared, 5, 6)
    past = {"past_key": uniform(random, 2, shared, 4, 8), "past_value": uniform(random, 2, shared, 4, 6)}
    masks = {"none": None, "float": uniform(random, 3, 5), "bool": random.uniform(0, 1, (2, 1, 3, 5)) > 0.3}
    masks["bool"][..., 0] = True
    for (name, mask), causal, cap in itertools.product(masks.items(), (0, 1), (0.0, 2.0)):
        folder.write(f"{name}_{causal}_{cap}", "Attention", {"Q": q, "K": k, "V": v, "mask": mask}, ["Y"],
                     {"is_causal": causal, "softcap": cap, "scale": 0.7}, opset=23)
        if name != "bool":
            wide = None if mask is None else uniform(random, 3, 9)
            folder.write(f"past_{name}_{causal}_{cap}", "Attention", {"Q": q, "K": k, "V": v, "mask": wide} | past,
                         ["Y", "present_key", "present_value"], {"is_causal": causal, "softcap": cap}, opset=23)
    flat = {name: x.transpose(0, 2, 1, 3).reshape(2, x.shape[2], -1) for name, x in (("Q", q), ("K", k), ("V", v))}
    folder.write("flat", "Attention", flat, ["Y"], {"q_num_heads": queries, "kv_num_heads": shared}, opset=23)
    folder.check()


def test_rotary_embedding(folder):
    random = np.random.default_rng(29)
    angles = uniform(random, 10, 4, high=3)
    positions = random.integers(0, 10, (2, 5))
    for interleaved, part in itertools.product((0, 1), (0, 4)):
        half = part // 2 if part else 4
        caches = {"cos": np.cos(angles[:, :half]), "sin": np.sin(angles[:, :half]), "positions": positions}
        attributes = {"interleaved": interleaved, "rotary_embedding_dim": part}
        folder.write(f"heads_{interleaved}_{part}", "RotaryEmbedding", {"X": uniform(random, 2, 3, 5, 8)} | caches, ["Y"],
                     attributes | ({"num_heads": 3} if part else {}), opset=23)
        folder.write(f"flat_{interleaved}_{part}", "RotaryEmbedding", {"X": uniform(random, 2, 5, 24)} | caches, ["Y"],
                     attributes | {"num_heads": 3}, opset=23)
    folder.check()


# onnxruntime's DFT and STFT have the noise of float32 sums; tests/ops/signal_test.cpp has the definition instead.
def test_weights_of_signals(folder):
    for name, periodic in itertools.product(("HannWindow", "HammingWindow", "BlackmanWindow"), (0, 1)):
        folder.write(f"{name}_{periodic}", name, {"size": np.int64(11)}, ["Y"], {"periodic": periodic}, opset=17)
    mel = {"bins": np.int64(8), "length": np.int64(64), "rate": np.int64(8000), "low": np.float32(50), "high": np.float32(3800)}
    folder.write("mel", "MelWeightMatrix", mel, ["Y"], {}, opset=17)
    folder.check()


def test_losses(folder):
    random = np.random.default_rng(31)
    scores, weights = uniform(random, 4, 5, 3), uniform(random, 5, low=0.1)
    targets = random.integers(0, 5, (4, 3))
    for op, reduction, weighted, ignored in itertools.product(("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"),
                                                              ("none", "sum", "mean"), (False, True), ([], 2)):
        folder.write(f"{op}_{reduction}_{weighted}_{ignored}", op,
                     {"X": scores, "targets": targets, "weights": weights if weighted else None}, ["Y"],
                     {"reduction": reduction, "ignore_index": ignored}, opset=13)
    folder.check()
