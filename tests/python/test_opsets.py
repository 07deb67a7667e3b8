"""Every form that an operator has had since opset 7: one small model per schema, compared with onnxruntime."""
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import onnx_backend
import onnxruntime

OLDEST, NEWEST = 7, 26
RANDOM = np.random.default_rng(3)


def floats(*shape):
    return RANDOM.uniform(-1, 1, shape).astype(np.float32)


X = floats(2, 3, 4)
IMAGE = floats(1, 4, 6, 6)
POSITIVE = np.abs(X) + np.float32(0.1)
FLAGS = np.array([[True, False], [True, True]])
ROWS = np.array([[1, 0], [2, 1]], np.int64)


def i64(*values):
    return np.array(values, np.int64)


def plain(*operands, **attributes):
    """The same operands in all opsets."""
    return lambda version: (operands, attributes, 1)


def since(first, older, newer):
    """`newer` from opset `first` on."""
    return lambda version: (newer if version >= first else older)(version)


def reduction(first):
    return since(first, plain(X, axes=[1], keepdims=0), plain(X, i64(1), keepdims=0))


def outputs(count, *operands, **attributes):
    return lambda version: (operands, attributes, count)


def resize(version):
    scales = np.array([1, 1, 2, 2], np.float32)
    if version < 11:
        return (IMAGE, scales), {"mode": "nearest"}, 1
    return (IMAGE, None if version > 12 else np.array([], np.float32), scales), {"mode": "linear"}, 1


def group_norm(version):
    size = 2 if version < 21 else 4
    return (IMAGE, floats(size), floats(size)), {"num_groups": 2}, 1


UNARY = ("Abs Neg Ceil Floor Relu Sigmoid Tanh Exp Elu Selu LeakyRelu HardSigmoid Softplus Softsign Sin Cos Tan Asin Acos "
         "Atan Sinh Cosh Asinh Atanh Erf Sign Round ThresholdedRelu HardSwish Celu Gelu Mish Identity Shape Size NonZero "
         "IsNaN IsInf Flatten GlobalAveragePool GlobalMaxPool Swish").split()
BINARY = "Add Sub Mul Div Max Min Sum Mean Greater Less GreaterOrEqual LessOrEqual Equal".split()
CASES = {
    **{op: plain(IMAGE if op.startswith("Global") else X) for op in UNARY},
    **{op: plain(X, X[:1] + np.float32(3)) for op in BINARY},
    **{op: plain(POSITIVE) for op in ("Log", "Sqrt", "Reciprocal")},
    **{op: plain(FLAGS, ~FLAGS) for op in ("And", "Or", "Xor")},
    **{op: reduction(18) for op in ("ReduceL1 ReduceL2 ReduceMax ReduceMean ReduceMin ReduceProd ReduceSumSquare "
                                    "ReduceLogSumExp").split()},
    "ReduceSum": reduction(13),
    "ReduceLogSum": since(18, plain(POSITIVE, axes=[1]), plain(POSITIVE, i64(1))),
    "Acosh": plain(POSITIVE + 1),
    "Not": plain(FLAGS),
    "Pow": plain(POSITIVE, np.array([2], np.float32)),
    "PRelu": plain(IMAGE, floats(4, 1, 1)),
    "Mod": plain(np.array([5, -7], np.int32), np.array([3, 3], np.int32)),
    "BitShift": plain(np.array([1, 8], np.uint8), np.array([1, 2], np.uint8), direction="LEFT"),
    "ArgMax": plain(X, axis=1),
    "ArgMin": plain(X, axis=1),
    "AveragePool": plain(IMAGE, kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
    "MaxPool": plain(IMAGE, kernel_shape=[3, 3], strides=[2, 2]),
    "LpPool": plain(IMAGE, kernel_shape=[2, 2]),
    "GlobalLpPool": plain(IMAGE),
    "BatchNormalization": plain(IMAGE, floats(4), floats(4), floats(4), np.abs(floats(4)) + 1),
    "InstanceNormalization": plain(IMAGE, floats(4), floats(4)),
    "GroupNormalization": group_norm,
    "LayerNormalization": plain(X, floats(4), floats(4)),
    "RMSNormalization": plain(X, floats(4)),
    "LRN": plain(IMAGE, size=3),
    "LpNormalization": plain(X, axis=1, p=2),
    "MeanVarianceNormalization": plain(IMAGE),
    "Cast": plain(X, to=6),
    "Clip": since(11, plain(X, min=-0.5, max=0.5), plain(X, np.float32(-0.5), np.float32(0.5))),
    "Concat": plain(X, X, axis=1),
    "Compress": plain(X, np.array([True, False, True]), axis=1),
    "ConstantOfShape": plain(i64(2, 3)),
    "Conv": plain(IMAGE, floats(2, 4, 3, 3), floats(2)),
    "ConvTranspose": plain(IMAGE, floats(4, 2, 3, 3), strides=[2, 2]),
    "CumSum": plain(X, np.int32(1)),
    "DepthToSpace": plain(IMAGE, blocksize=2),
    "SpaceToDepth": plain(IMAGE, blocksize=2),
    "Det": plain(floats(2, 3, 3)),
    "Dropout": plain(X),
    "Einsum": plain(X, floats(4, 5), equation="abc,cd->abd"),
    "Expand": plain(X[:1], i64(2, 3, 4)),
    "EyeLike": plain(ROWS),
    "Gather": plain(X, i64(1, 0), axis=1),
    "GatherElements": plain(X[0], ROWS, axis=1),
    "GatherND": plain(X, i64(1, 2)),
    "Gemm": plain(floats(2, 3), floats(3, 4), floats(4), alpha=0.5),
    "GridSample": since(20, plain(IMAGE, floats(1, 3, 3, 2), mode="bilinear"), plain(IMAGE, floats(1, 3, 3, 2), mode="linear")),
    "Hardmax": plain(X),
    "LogSoftmax": plain(X),
    "Softmax": plain(X),
    "MatMul": plain(X, floats(4, 5)),
    "OneHot": plain(i64(1, 0, 2), np.int64(3), floats(2)),
    "Pad": since(11, plain(X, pads=[0, 1, 0, 0, 1, 2]), plain(X, i64(0, 1, 0, 0, 1, 2), np.float32(2))),
    "Range": plain(np.int64(1), np.int64(9), np.int64(3)),
    "Reshape": plain(X, i64(0, -1)),
    "Resize": resize,
    "ReverseSequence": plain(X, i64(2, 1, 2), time_axis=0, batch_axis=1),
    "RoiAlign": plain(IMAGE, np.array([[0, 0, 4, 4]], np.float32), i64(0), output_height=2, output_width=2),
    "Scatter": plain(X[0], ROWS[:, :1], floats(2, 1), axis=0),
    "ScatterElements": plain(X[0], ROWS[:, :1], floats(2, 1), axis=0),
    "ScatterND": plain(X, np.array([[0], [1]], np.int64), floats(2, 3, 4)),
    "Slice": since(10, plain(X, starts=[1], ends=[3], axes=[1]), plain(X, i64(1), i64(3), i64(1))),
    "Split": since(13, outputs(2, X, axis=2, split=[1, 3]), outputs(2, X, i64(1, 3), axis=2)),
    "Squeeze": since(13, plain(X[:, :1], axes=[1]), plain(X[:, :1], i64(1))),
    "Unsqueeze": since(13, plain(X, axes=[1]), plain(X, i64(1))),
    "Tile": plain(X, i64(1, 2, 1)),
    "TopK": since(10, outputs(2, X, k=2), outputs(2, X, i64(2))),
    "Transpose": plain(X, perm=[2, 0, 1]),
    "Trilu": plain(X, upper=0),
    "Upsample": since(9, plain(IMAGE, scales=[1.0, 1.0, 2.0, 2.0]), plain(IMAGE, np.array([1, 1, 2, 2], np.float32))),
    "Where": plain(np.array([True, False, True, True]), X, -X),
    "QuantizeLinear": plain(X, np.float32(0.01), np.uint8(120)),
    "DequantizeLinear": plain(np.arange(6, dtype=np.uint8), np.float32(0.1), np.uint8(3)),
    "DynamicQuantizeLinear": outputs(3, X),
    "MatMulInteger": plain(np.arange(6, dtype=np.uint8).reshape(2, 3), np.arange(6, dtype=np.uint8).reshape(3, 2), np.uint8(1)),
    "LSTM": plain(floats(3, 1, 2), floats(1, 16, 2), floats(1, 16, 4), hidden_size=4),
    "GRU": plain(floats(3, 1, 2), floats(1, 12, 2), floats(1, 12, 4), hidden_size=4),
    "RNN": plain(floats(3, 1, 2), floats(1, 4, 2), floats(1, 4, 4), hidden_size=4),
    "NonMaxSuppression": plain(np.array([[[0, 0, 1, 1], [0, 0, 1, 1.1], [2, 2, 3, 3]]], np.float32),
                               np.array([[[0.9, 0.8, 0.7]]], np.float32), np.int64(3), np.float32(0.5), np.float32(0.1)),
    "Unique": plain(np.array([2, 1, 1, 3], np.float32)),
    "Shrink": plain(X, lambd=0.2),
    "MaxUnpool": plain(np.ones((1, 1, 1, 2), np.float32), np.array([[[[0, 5]]]], np.int64), kernel_shape=[2, 2], strides=[2, 2]),
}


def versions(op):
    """The opsets at which the schema of an operator changed, from the oldest supported one on."""
    found = sorted({s.since_version for s in onnx.defs.get_all_schemas_with_history()
                    if s.name == op and s.domain == "" and not s.deprecated and s.since_version <= NEWEST})
    first = max((v for v in found if v <= OLDEST), default=None)
    return ([OLDEST] if first is not None else []) + [v for v in found if v > OLDEST]


def write(folder, op, version):
    """False when onnxruntime cannot run the model."""
    operands, attributes, count = CASES[op](version)
    names = [f"i{k}" if o is not None else "" for k, o in enumerate(operands)]
    tensors = {n: np.asarray(o) for n, o in zip(names, operands) if n}
    results = [f"y{k}" for k in range(count)]
    node = helper.make_node(op, names, results, **attributes)
    infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in tensors.items()][:1]
    constants = [numpy_helper.from_array(a, n) for n, a in list(tensors.items())[1:]]
    graph = helper.make_graph([node], op, infos, [helper.make_empty_tensor_value_info(r) for r in results], constants)
    model = onnx.shape_inference.infer_shapes(
        helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", version)]))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    first = next(iter(tensors.items()))
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        expected = session.run(None, dict([first]))
    except Exception:  # onnxruntime has no public base class of its own
        return False
    data = folder / f"{op}_{version}" / "test_data_set_0"
    data.mkdir(parents=True)
    for result, array in zip(model.graph.output, expected):
        result.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(array.dtype)
    onnx.save(model, data.parent / "model.onnx")
    (data / "input_0.pb").write_bytes(numpy_helper.from_array(first[1]).SerializeToString())
    for k, array in enumerate(expected):
        (data / f"output_{k}.pb").write_bytes(numpy_helper.from_array(np.asarray(array)).SerializeToString())
    return True


# Schemas that onnxruntime has no kernel for on this machine.
WITHOUT_ORACLE = 40


def test_every_form_of_every_operator(tmp_path):
    if not onnx_backend.DRIVER.is_file():
        pytest.fail(f"{onnx_backend.DRIVER} is not there: build the target openrknn_onnx_nodes (tools/test.sh does)")
    pairs = [(op, version) for op in CASES for version in versions(op)]
    assert len(pairs) > 250
    skipped = [f"{op} {version}" for op, version in pairs if not write(tmp_path, op, version)]
    print("without oracle:", ", ".join(skipped))
    bad = [line for line in onnx_backend.drive(sorted(tmp_path.iterdir())) if line["result"] != "pass"]
    assert not bad, "\n".join(f"{line['name']}: {line['result']}: {line['detail']}" for line in bad)
    assert len(skipped) <= WITHOUT_ORACLE, skipped
