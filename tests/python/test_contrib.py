"""Operators of onnxruntime's own domain: what the import makes of them against onnxruntime itself."""
import numpy as np
import pytest

from conftest import run_openrknn
from small_model import Model, golden

B, S, T, N, H = 2, 4, 6, 3, 8
D = N * H


def add(m, op, *operands, outputs=("y",), domain="com.microsoft", **attributes):
    m(op, *operands, names=list(outputs), domain=domain, **attributes)
    m.output(*[name for name in outputs if name])


def mask(*shape):
    return (np.arange(int(np.prod(shape))) % 3 != 1).astype(np.int32).reshape(shape)


def gamma(m, size=D):
    return 1 + m.floats(size, scale=0.2)


def attention(m, mask_index=None, past=False, bias=None, **attributes):
    operands = [m.input((B, S, D)), m.weights(D, 3 * D), m.floats(3 * D)]
    operands += [mask_index, m.input((2, B, N, 2, H)) if past else None, bias]
    while operands[-1] is None:
        operands.pop()
    add(m, "Attention", *operands, outputs=("y", "present") if past else ("y",), num_heads=N, **attributes)


def heads(m, query=True, bias=False, mask_=None, extra=None, past=False, **attributes):
    operands = [m.input((B, S, D)), m.input((B, T, D)), m.input((B, T, D))]
    operands += [m.floats(3 * D) if bias else None, mask_, extra]
    if past:
        operands += [m.input((B, N, 2, H)), m.input((B, N, 2, H))]
    while operands[-1] is None:
        operands.pop()
    add(m, "MultiHeadAttention", *operands, outputs=("y", "k", "v") if past else ("y",), num_heads=N, **attributes)


def integers(m, shape, dtype):
    info = np.iinfo(dtype)
    return m.input(shape, m.random.integers(info.min, info.max + 1, shape), dtype)


def quantized(scale, zero, dtype):
    return [np.float32(scale), np.asarray(zero, dtype)]


CASES = {
    "gelu": lambda m: add(m, "Gelu", m.input((2, 5))),
    "bias_gelu": lambda m: add(m, "BiasGelu", m.input((2, 5)), m.floats(5)),
    "fast_gelu": lambda m: add(m, "FastGelu", m.input((2, 5))),
    "fast_gelu_bias": lambda m: add(m, "FastGelu", m.input((2, 5)), m.floats(5)),
    "quick_gelu": lambda m: add(m, "QuickGelu", m.input((2, 5))),
    "quick_gelu_alpha": lambda m: add(m, "QuickGelu", m.input((2, 5)), alpha=1.3),
    "skip_norm": lambda m: add(m, "SkipLayerNormalization", m.input((B, S, D)), m.input((B, S, D)), gamma(m), m.floats(D)),
    "skip_norm_all": lambda m: add(m, "SkipLayerNormalization", m.input((B, S, D)), m.input((B, S, D)), gamma(m), m.floats(D),
                                   m.floats(D), outputs=("y", "", "", "sum"), epsilon=1e-3),
    "skip_norm_no_beta": lambda m: add(m, "SkipLayerNormalization", m.input((B, S, D)), m.input((B, S, D)), gamma(m)),
    "simplified_norm": lambda m: add(m, "SimplifiedLayerNormalization", m.input((B, S, D)), gamma(m), domain="", axis=-1, epsilon=1e-3),
    "skip_simplified_norm": lambda m: add(m, "SkipSimplifiedLayerNormalization", m.input((B, S, D)), m.input((B, S, D)), gamma(m),
                                          m.floats(D), outputs=("y", "", "", "sum"), epsilon=1e-3),
    "embed_norm": lambda m: add(m, "EmbedLayerNormalization", m.input((B, S), mask(B, S) * 3, np.int32), m.input((B, S), mask(B, S), np.int32),
                                m.floats(7, D), m.floats(9, D), m.floats(2, D), gamma(m), m.floats(D),
                                m.input((B, S), mask(B, S), np.int32), outputs=("y", "length")),
    "embed_norm_least": lambda m: add(m, "EmbedLayerNormalization", m.input((B, S), mask(B, S) * 3, np.int32), None,
                                      m.floats(7, D), m.floats(9, D), None, gamma(m), m.floats(D), outputs=("y", "length")),
    "matmul": lambda m: add(m, "FusedMatMul", m.input((2, 3, 4)), m.input((2, 4, 5)), alpha=0.5),
    "matmul_transposed": lambda m: add(m, "FusedMatMul", m.input((2, 4, 3)), m.input((2, 5, 4)), transA=1, transB=1),
    "gemm_leaky": lambda m: add(m, "FusedGemm", m.input((3, 4)), m.weights(4, 5), m.floats(5), activation="LeakyRelu", activation_alpha=0.2),
    "gemm_relu": lambda m: add(m, "FusedGemm", m.input((3, 4)), m.weights(5, 4), m.floats(5), activation="Relu", transB=1, alpha=0.5),
    "conv_relu": lambda m: add(m, "FusedConv", m.input((1, 3, 8, 8)), m.weights(4, 3, 3, 3), m.floats(4), activation="Relu", pads=[1, 1, 1, 1]),
    "conv_clip": lambda m: add(m, "FusedConv", m.input((1, 3, 8, 8)), m.weights(4, 3, 3, 3), m.floats(4), activation="Clip",
                               activation_params=[-0.2, 0.3]),
    "conv_sum": lambda m: add(m, "FusedConv", m.input((1, 3, 8, 8)), m.weights(4, 3, 1, 1), m.floats(4), m.input((1, 4, 8, 8)), activation="Relu"),
    "attention": attention,
    "attention_mask": lambda m: attention(m, m.input((B, S), mask(B, S), np.int32)),
    "attention_lengths": lambda m: attention(m, m.input((B,), [4, 2], np.int32)),
    "attention_mask_3d": lambda m: attention(m, m.input((B, S, S), mask(B, S, S), np.int32)),
    "attention_causal": lambda m: attention(m, unidirectional=1, scale=0.4),
    "attention_past": lambda m: attention(m, past=True, unidirectional=1),
    "attention_bias": lambda m: attention(m, bias=m.floats(B, N, S, S)),
    "heads": heads,
    "heads_bias": lambda m: heads(m, bias=True),
    "heads_mask": lambda m: heads(m, mask_=m.input((B, T), mask(B, T), np.int32)),
    "heads_attention_bias": lambda m: heads(m, extra=m.floats(1, N, S, T), scale=0.3),
    "heads_past": lambda m: heads(m, past=True),
    "heads_whole_keys": lambda m: add(m, "MultiHeadAttention", m.input((B, S, D)), m.input((B, N, T, H)), m.input((B, N, T, H)), num_heads=N),
    "qlinear_add": lambda m: add(m, "QLinearAdd", integers(m, (2, 9), np.uint8), *quantized(0.02, 120, np.uint8), integers(m, (2, 9), np.uint8),
                                 *quantized(0.03, 3, np.uint8), *quantized(0.05, 60, np.uint8)),
    "qlinear_mul": lambda m: add(m, "QLinearMul", integers(m, (2, 9), np.int8), *quantized(0.02, 4, np.int8), integers(m, (1, 9), np.int8),
                                 *quantized(0.03, -3, np.int8), *quantized(0.05, 6, np.int8)),
    "qlinear_sigmoid": lambda m: add(m, "QLinearSigmoid", integers(m, (2, 9), np.uint8), *quantized(0.05, 128, np.uint8),
                                     *quantized(1 / 256, 0, np.uint8)),
    "qlinear_leaky": lambda m: add(m, "QLinearLeakyRelu", integers(m, (2, 9), np.uint8), *quantized(0.05, 128, np.uint8),
                                   *quantized(0.04, 50, np.uint8), alpha=0.1),
    "qlinear_pool": lambda m: add(m, "QLinearGlobalAveragePool", integers(m, (1, 4, 5, 5), np.uint8), *quantized(0.05, 128, np.uint8),
                                  *quantized(0.02, 120, np.uint8)),
    "qlinear_softmax": lambda m: add(m, "QLinearSoftmax", integers(m, (2, 9), np.uint8), *quantized(0.05, 128, np.uint8),
                                     *quantized(1 / 256, 0, np.uint8), axis=-1, opset=13),
    "qgemm": lambda m: add(m, "QGemm", integers(m, (3, 8), np.uint8), *quantized(0.02, 120, np.uint8), m.random.integers(-90, 90, (5, 8)).astype(np.int8),
                           np.array([0.01, 0.02, 0.015, 0.01, 0.03], np.float32), np.zeros(5, np.int8), m.random.integers(-900, 900, 5).astype(np.int32),
                           *quantized(0.25, 128, np.uint8), transB=1, alpha=1.0),
    "qgemm_float": lambda m: add(m, "QGemm", integers(m, (3, 8), np.uint8), *quantized(0.02, 120, np.uint8), m.random.integers(-90, 90, (8, 5)).astype(np.int8),
                                 *quantized(0.02, 3, np.int8), alpha=1.0),
    "qlinear_concat": lambda m: add(m, "QLinearConcat", *quantized(0.06, 100, np.uint8), integers(m, (2, 3), np.uint8), *quantized(0.05, 128, np.uint8),
                                    integers(m, (2, 4), np.uint8), *quantized(0.02, 10, np.uint8), axis=1),
}


@pytest.mark.parametrize("name", CASES)
def test_contrib_operator(name, tmp_path):
    model = Model(domains=("com.microsoft",))
    CASES[name](model)
    expected, got = model.oracle(), golden(model, tmp_path)
    for output, wanted in expected.items():
        assert got[output].shape == wanted.shape and got[output].dtype == wanted.dtype, output
        if np.issubdtype(wanted.dtype, np.integer):  # onnxruntime rounds products of integers in its own order
            worst = np.abs(got[output].astype(int) - wanted.astype(int)).max()
            assert worst <= (0 if wanted.dtype == np.int32 else 1), output
        else:
            np.testing.assert_allclose(got[output], wanted, rtol=2e-4, atol=2e-5, err_msg=output)


OPERATORS = ("Attention BiasGelu DequantizeLinear EmbedLayerNormalization FastGelu FusedConv FusedGemm FusedMatMul Gelu MultiHeadAttention QGemm "
             "QLinearAdd QLinearAveragePool QLinearConcat QLinearGlobalAveragePool QLinearLeakyRelu QLinearMul QLinearSigmoid QLinearSoftmax "
             "QuantizeLinear QuickGelu SimplifiedLayerNormalization SkipLayerNormalization SkipSimplifiedLayerNormalization").split()


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("given", [(), (1,), (0, 3)], ids=str)
def test_absent_operands_are_refused_by_name(op, given, tmp_path):
    """A node whose first operands are absent names the file and the node."""
    model = Model(domains=("com.microsoft",))
    operands = [model.input((2, 4)) if slot in given else "" for slot in range(max(given, default=-1) + 1)]
    add(model, op, *operands)
    done = run_openrknn("run", model.save(tmp_path), *model.arguments(tmp_path), "--outdir", tmp_path / "out", check=False)
    if done.returncode:
        assert "model.onnx" in done.stderr and op in done.stderr, done.stderr
