"""What users of NPU converters reported as refused, crashing or wrong, as the smallest models that show it.

Each is compared with onnxruntime (the golden run) and with the golden run (the programs of several SoCs); where the
report names the right value, with that value.
"""
import itertools

import numpy as np
import pytest
from onnx import TensorProto

from small_model import Model, cosine, golden, program

NPUS = ("rk3588", "rk3568", "rk3576")
CASES = {}


def i64(*values):
    return np.array(values, np.int64)


def case(name=None, targets=NPUS, int8=None, **parameters):
    """Registers a function that fills a Model, once per combination of the parameters' values.

    int8: the least cosine of the w8a8 program on RK3588 and RV1106; None: no such build."""
    def register(function):
        for values in itertools.product(*parameters.values()):
            title = "-".join([name or function.__name__, *("x".join(map(str, v)) if isinstance(v, tuple) else str(v) for v in values)])
            CASES[title] = (function, dict(zip(parameters, values)), targets, int8)
        return function
    return register


def attention(m, q, k, v, scale):
    scores = m("Mul", m("MatMul", q, m("Transpose", k, perm=[0, 1, 3, 2])), np.float32(scale))
    m.output(m("MatMul", m("Softmax", scores, axis=-1), v))


# -- attention --

@case(shapes=[((1, 8, 64, 64), (1, 8, 64, 64)), ((1, 8, 1, 64), (1, 8, 576, 64)), ((1, 4, 17, 64), (1, 4, 33, 64)), ((1, 3, 20, 13), (1, 3, 20, 13))])
def attention_of(m, shapes):
    q, kv = shapes
    attention(m, m.input(q), m.input(kv), m.input(kv), 0.125)


@case()
def matmul_of_one_input(m):
    x = m.input((1, 4, 16, 16))
    m.output(m("MatMul", x, m("Relu", x)), m("MatMul", x, x))


# -- graphs that rewrites trip over --

@case(int8=0.99)
def sigmoid_with_two_consumers(m):
    x = m("Conv", m.input((1, 3, 16, 16)), m.weights(8, 3, 3, 3), pads=[1, 1, 1, 1])
    gate = m("Sigmoid", x)
    m.output(m("Mul", x, gate), m("Conv", gate, m.weights(4, 8, 1, 1)))


@case(int8=0.99)
def same_tensor_twice_in_concat(m):
    x = m("Relu", m.input((1, 5, 8, 8)))
    y = m("Concat", x, x, axis=1)
    m.output(m("Conv", y, m.weights(8, 10, 1, 1)), y)


@case(int8=0.99)
def identity_as_output(m):
    x = m("Reshape", m.input((1, 64, 800)), i64(1, 64, 20, 40))
    m.output(m("Identity", m("Slice", x, i64(0), i64(64), i64(1))))


@case(int8=0.99)
def concat_of_three_constants(m):
    x = m("Transpose", m.input((1, 8, 8, 4)), perm=[0, 3, 1, 2])
    m.output(m("Concat", m.floats(1, 4, 8, 8), x, m.floats(1, 2, 8, 8), m.floats(1, 3, 8, 8), axis=1))


@case(op=["MatMul", "Conv"], int8=0.99)
def constant_times_convolution(m, op):
    x = m("Conv", m.input((1, 6, 12, 12)), m.weights(12, 6, 1, 1))
    m.output(m("Mul", x, m.floats(1, 12, 12, 12)) if op == "Conv" else m("MatMul", x, m.weights(12, 12)))


# -- large extents --

@case(op=["Mul", "Div"], int8=0.99)
def scalar_on_a_long_batch(m, op):
    m.output(m(op, m.input((3840, 1, 9, 1)), np.float32(48 if op == "Div" else 2)))


@case(shape=[((8190, 16), (1, 0)), ((256, 2560), (1, 0)), ((2, 8400), (1, 0)), ((64, 1376), (1, 0)), ((1, 32, 128, 2048), (0, 2, 1, 3)), ((1, 16, 4, 8400), (0, 2, 1, 3))],
      targets=("rk3588", "rk3576"))
def transpose(m, shape):
    shape, perm = shape
    m.output(m("Relu", m("Transpose", m("Neg", m.input(shape)), perm=list(perm))))


@case(int8=0.98)
def distribution_focal_head(m):
    x = m("Reshape", m.input((1, 64, 8400)), i64(1, 4, 16, 8400))
    x = m("Softmax", m("Transpose", x, perm=[0, 2, 1, 3]), axis=1)
    m.output(m("Reshape", m("Conv", x, np.arange(16, dtype=np.float32).reshape(1, 16, 1, 1)), i64(1, 4, 8400)))


@case()
def short_time_fourier_front(m):
    x = m("Pad", m.input((1, 1498, 1, 400)), i64(0, 0, 0, 1, 0, 0, 0, 0), mode="edge")
    now = m("Slice", x, i64(1), i64(401), i64(3))
    before = m("Slice", x, i64(0), i64(400), i64(3))
    x = m("Mul", m("Sub", now, m("Mul", before, np.float32(0.97))), m.floats(1, 1, 1, 400))
    x = m("Pad", x, i64(0, 0, 0, 0, 0, 0, 0, 112))
    m.output(m("Transpose", x, perm=[0, 3, 2, 1]))


@case(int8=0.99)
def reduce_max_of_pillars(m):
    m.output(m("ReduceMax", m("Conv", m.input((1, 10, 32, 1000)), m.weights(64, 10, 1, 1)), axes=[2], keepdims=1))


# -- reductions --

REDUCES = ("ReduceMean", "ReduceSum", "ReduceL2", "ReduceL1", "ReduceMax", "ReduceMin", "ReduceSumSquare", "ReduceLogSumExp")


@case(op=list(REDUCES), keep=[0, 1], targets=("rk3588",))
def reduce_attribute(m, op, keep):
    """Axes as an attribute, all ranks; ReduceSum has had them as an input since opset 13."""
    for rank in range(1, 6):
        x = m.input(tuple(range(3, 3 + rank)))
        for axes in {(rank - 1,), tuple(range(rank)), (0,), (-1,)}:
            m.output(m(op, x, i64(*axes), keepdims=keep) if op == "ReduceSum" else m(op, x, axes=list(axes), keepdims=keep))


@case(op=list(REDUCES), keep=[0, 1], targets=("rk3588",))
def reduce_input(m, op, keep):
    m.opset = 18
    for rank in range(1, 6):
        x = m.input(tuple(range(3, 3 + rank)))
        m.output(m(op, x, i64(rank - 1), keepdims=keep), m(op, x, keepdims=keep), m(op, x, i64(-1, *range(rank - 1)), keepdims=keep))


@case(targets=NPUS)
def squares_beyond_half(m):
    """300 * 300 leaves float16; the norm does not."""
    x = m.input((1, 16, 8, 8), np.full(1024, 300.0))
    m.output(m("ReduceL2", x, axes=[1], keepdims=1), m("Sqrt", m("ReduceSum", m("Mul", x, x), i64(1))))


@case()
def layer_norm_channels_first(m):
    x = m.input((1, 6, 64, 64))
    centred = m("Sub", x, m("ReduceMean", x, axes=[1]))
    variance = m("ReduceMean", m("Pow", centred, np.float32(2)), axes=[1])
    y = m("Div", centred, m("Sqrt", m("Add", variance, np.float32(1e-6))))
    m.output(m("Add", m("Mul", y, m.floats(6, 1, 1)), m.floats(6, 1, 1)))


@case(int8=0.98)
def reduce_without_keepdims_in_attention(m):
    x = m("Relu", m("Conv", m.input((1, 3, 16, 16)), m.weights(8, 3, 3, 3), pads=[1, 1, 1, 1]))
    gate = m("Sigmoid", m("Gemm", m("ReduceMean", x, axes=[2, 3], keepdims=0), m.weights(8, 8), transB=1))
    m.output(m("Mul", x, m("Reshape", gate, i64(1, 8, 1, 1))))


# -- single nodes --

@case(int8=0.99)
def one_convolution(m):
    m.output(m("Conv", m.input((1, 120, 30, 20)), m.weights(480, 120, 3, 3), pads=[1, 1, 1, 1]))


@case(width=[256, 257], int8=0.99)
def wide_pointwise(m, width):
    m.output(m("Conv", m.input((1, 512, 28, 28)), m.weights(width, 512, 1, 1)))


@case(batch=[1, 2], int8=0.99)
def transposed_convolution(m, batch):
    m.output(m("ConvTranspose", m.input((batch, 8, 10, 10)), m.weights(8, 6, 4, 4), kernel_shape=[4, 4], strides=[2, 2], pads=[1, 1, 1, 1]))


@case(targets=("rk3588",))
def convolution_3d(m):
    m.output(m("Conv", m.input((1, 3, 2, 36, 48)), m.weights(64, 3, 2, 3, 3), strides=[1, 2, 2], pads=[0, 1, 1, 0, 1, 1]))


@case()
def long_kernel_1d(m):
    m.output(m("Conv", m.input((1, 1, 1000)), m.weights(16, 1, 50), kernel_shape=[50], strides=[50]))


@case(op=["LSTM", "GRU", "RNN"], batch=[1, 40], targets=("rk3588",))
def recurrent(m, op, batch):
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    x = m.input((3, batch, 128))
    outputs = m(op, x, m.weights(1, gates * 128, 128), m.weights(1, gates * 128, 128), outputs=2, hidden_size=128)
    m.output(*outputs)


@case()
def top_k(m):
    m.output(*m("TopK", m("Softmax", m.input((1, 5, 40)), axis=-1), i64(3), axis=-1, outputs=2)[:1])


@case(include=[0, 1], int8=0.99)
def average_pool(m, include):
    m.output(m("AveragePool", m.input((1, 8, 15, 15)), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], count_include_pad=include))


@case(side=[129, 160], int8=0.98)
def global_average_pool(m, side):
    m.output(m("GlobalAveragePool", m.input((1, 96, side, side), m.random.uniform(0, 1, 96 * side * side))))


@case(mode=["nearest", "linear"], transform=["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "tf_half_pixel_for_nn"],
      factor=[2, 3], targets=("rk3588",))
def resize_then_convolution(m, mode, transform, factor):
    if transform == "tf_half_pixel_for_nn":
        m.opset = 11
    x = m("Resize", m.input((1, 4, 9, 7)), np.zeros(0, np.float32), np.array([1, 1, factor, factor], np.float32), mode=mode,
          coordinate_transformation_mode=transform)
    m.output(m("Conv", x, m.weights(6, 4, 3, 3), pads=[1, 1, 1, 1]))


@case(rank=[3, 5], targets=("rk3588",))
def resize_of_rank(m, rank):
    m.output(m("Resize", m.input((1, 4, *[6] * (rank - 2))), None, np.array([1, 1] + [2] * (rank - 2), np.float32), mode="nearest"))


@case(op=["Atan", "Min", "Selu", "Sign", "Ceil", "Reciprocal", "ReduceSumSquare", "ArgMax"], targets=("rk3588",))
def often_refused(m, op):
    x = m.input((1, 4, 6, 6), np.round(m.random.uniform(1, 9, 144)) / 4)
    m.output(m(op, x, np.float32(1.5)) if op == "Min" else m(op, x, axis=1) if op == "ArgMax" else m(op, x))


@case(targets=("rk3588",))
def grid_sample(m):
    m.opset = 16
    m.output(m("GridSample", m.input((1, 3, 12, 12)), m.input((1, 8, 8, 2)), mode="bilinear", align_corners=1))


# -- files of today's exporters --

@case(targets=("rk3588",))
def contrib_nodes(m):
    m.domains = ("com.microsoft",)
    x = m.input((1, 6, 32))
    y = m("SkipLayerNormalization", x, m.input((1, 6, 32)), m.floats(32), m.floats(32), names=["ln", "", "", "sum"], domain="com.microsoft",
          epsilon=1e-5)
    z = m("BiasGelu", m("MatMul", y[0], m.weights(32, 64)), m.floats(64), domain="com.microsoft")
    m.output(m("MatMul", z, m.weights(64, 32)), y[1])


@case(opset=[21, 22], int8=0.98)
def new_opset(m, opset):
    m.opset = opset
    x = m("Relu", m("Conv", m.input((1, 3, 16, 16)), m.weights(8, 3, 3, 3), pads=[1, 1, 1, 1]))
    x = m("Flatten", m("GlobalAveragePool", x))
    m.output(m("Softmax", m("Gemm", x, m.weights(5, 8), m.floats(5), transB=1), axis=-1))


@case()
def half_inputs(m):
    x = m.input((1, 3, 16, 16), dtype=np.float16)
    x = m("Conv", x, m.weights(8, 3, 3, 3).astype(np.float16))
    m.output(m("Cast", m("Relu", x), to=TensorProto.FLOAT))


@case(int8=0.98)
def nhwc_input(m):
    x = m("Transpose", m.input((1, 24, 32, 1)), perm=[0, 3, 1, 2])
    m.output(m("Transpose", m("Conv", x, m.weights(4, 1, 3, 3)), perm=[0, 2, 3, 1]))


@case(targets=("rk3588",))
def stateful_audio(m):
    """The shapes of a streaming enhancer: states of rank 4 and 5 in and out."""
    spectrum = m.input((1, 257, 1, 2))
    conv_state, recurrent_state = m.input((2, 1, 16, 16, 33)), m.input((2, 3, 1, 1, 16))
    x = m("Transpose", spectrum, perm=[0, 3, 2, 1])
    x = m("Conv", x, m.weights(16, 2, 1, 5), strides=[1, 8], pads=[0, 2, 0, 2])
    first = m("Squeeze", m("Slice", conv_state, i64(0), i64(1), i64(0)), i64(0))
    joined = m("Concat", first, x, axis=2)
    y = m("Conv", joined, m.weights(16, 1, 17, 1), group=16)
    shifted = m("Unsqueeze", m("Slice", joined, i64(1), i64(17), i64(2)), i64(0))
    m.output(y, m("Concat", shifted, m("Slice", conv_state, i64(1), i64(2), i64(0)), axis=0),
             m("Mul", recurrent_state, np.float32(0.5)))


@case(targets=("rk3588",))
def length_input(m):
    """A mask from a length that only the run knows."""
    x, length = m.input((1, 30, 8)), m.input((1,), [17], np.int64)
    steps = m("Range", np.int64(0), np.int64(30), np.int64(1))
    mask = m("Cast", m("Less", steps, length), to=TensorProto.FLOAT)
    m.output(m("Mul", x, m("Reshape", mask, i64(1, 30, 1))))


@case(targets=("rk3588",))
def quantized_onnx(m):
    """QuantizeLinear and DequantizeLinear around everything, as quantization tools leave it."""
    def qdq(x, scale, zero=0, dtype=np.int8):
        q = m("QuantizeLinear", x, np.float32(scale), dtype(zero))
        return m("DequantizeLinear", q, np.float32(scale), dtype(zero))
    x = qdq(m.input((1, 3, 16, 16)), 1 / 128)
    w = np.clip(np.round(m.weights(8, 3, 3, 3) * 100), -127, 127).astype(np.int8)
    w = m("DequantizeLinear", w, np.full(8, 0.01, np.float32), np.zeros(8, np.int8), axis=0)
    m.output(qdq(m("Relu", m("Conv", x, w, pads=[1, 1, 1, 1])), 1 / 64, -128))


@pytest.mark.parametrize("name", CASES)
def test_report(name, tmp_path):
    function, parameters, targets, int8 = CASES[name]
    model = Model()
    function(model, **parameters)
    wanted = model.oracle()
    got = golden(model, tmp_path)
    for output in model.outputs:
        assert got[output].shape == wanted[output].shape and got[output].dtype == wanted[output].dtype, output
        largest = np.abs(wanted[output]).max()
        assert np.abs(got[output].astype(np.float64) - wanted[output]).max() <= 1e-3 * largest, output
        assert cosine(got[output], wanted[output]) >= 0.99999, output
    for target in targets:
        run, _ = program(model, tmp_path, target, "fp16")
        for output in model.outputs:
            assert run[output].shape == wanted[output].shape, (target, output)
            assert cosine(run[output], got[output]) >= 0.9995, (target, output, cosine(run[output], got[output]))
    for target in ("rk3588", "rv1106") if int8 else ():
        run, _ = program(model, tmp_path, target, "w8a8")
        for output in model.outputs:
            assert cosine(run[output], got[output]) >= int8, (target, output, cosine(run[output], got[output]))


@pytest.mark.parametrize("queries", [64, 1])
def test_attention_of_zeros_is_the_mean_of_the_values(queries, tmp_path):
    model = Model()
    q, kv = (1, 8, queries, 64), (1, 8, 64, 64)
    attention(model, model.input(q, np.zeros(q)), model.input(kv, np.zeros(kv)), model.input(kv, np.full(kv, 0.3)), 0.125)
    for target in NPUS:
        run, _ = program(model, tmp_path, target, "fp16")
        assert np.abs(run[model.outputs[0]] - 0.3).max() <= 0.3 * 2**-10


@pytest.mark.parametrize("k,wanted", [(128, 12.80), (256, 25.59), (4096, 409.50)])
def test_long_half_products(k, wanted, tmp_path):
    """0.1 as a half is 0.09998: the whole difference, whatever the length of the sum."""
    model = Model()
    model.output(model("MatMul", model.input((1, k), np.full(k, 0.1)), np.ones((k, 16), np.float32)))
    run, _ = program(model, tmp_path, "rk3588", "fp16")
    assert np.abs(run[model.outputs[0]] - wanted).max() <= 0.3 if k == 4096 else np.abs(run[model.outputs[0]] - wanted).max() <= 0.02


def test_scores_beside_boxes_keep_their_levels_or_are_warned_of(tmp_path):
    """Boxes of 0..640 and scores of 0..1 in one int8 tensor: the scores lose all their levels."""
    model = Model(opset=17)
    boxes = model.input((1, 4, 8400), model.random.uniform(0, 640, 4 * 8400))
    scores = model.input((1, 80, 8400), model.random.uniform(-4, 4, 80 * 8400))
    model.output(model("Concat", boxes, model("Sigmoid", scores), axis=1))
    run, log = program(model, tmp_path, "rk3588", "w8a8")
    levels = len(np.unique(run[model.outputs[0]][:, 4:]))
    assert levels >= 200 or "leaves operand" in log, (levels, log)
