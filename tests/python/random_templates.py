"""Templates of random_onnx.py: each adds one operator to a network, sometimes with what keeps its operand in its domain."""
import numpy as np
from onnx import TensorProto


class Rejected(Exception):
    """What a template cannot make a node of."""


TEMPLATES = []


def template(weight=1):
    def register(function):
        TEMPLATES.extend([function] * weight)
        return function
    return register


def image(v):
    return len(v.shape) == 4


def spatial(v):
    return 3 <= len(v.shape) <= 5


def i64(*values):
    return np.array(values, np.int64)


@template(6)
def convolution(net):
    x = net.choose(lambda v: spatial(v) and v.shape[1] <= 32 and min(v.shape[2:]) >= 1)
    shape = net.values[x].shape
    space = len(shape) - 2
    kernel = [net.pick([1, 1, 2, 3, 3, 5, 7]) for _ in range(space)]
    stride = [net.pick([1, 1, 2, 3]) for _ in range(space)]
    dilation = [net.pick([1, 1, 1, 2]) for _ in range(space)]
    pads = [net.int(0, k // 2) for k in kernel] + [net.int(0, k // 2) for k in kernel]
    divisors = [g for g in range(1, shape[1] + 1) if shape[1] % g == 0]
    group = net.pick([1, 1, shape[1], net.pick(divisors)])
    out = group * net.int(1, max(1, 24 // group))
    fan = shape[1] // group * int(np.prod(kernel))
    weights = net.floats(out, shape[1] // group, *kernel) * np.float32(2 / np.sqrt(fan))
    bias = net.floats(out) if net.chance(0.7) else None
    y = net.add("Conv", x, weights, bias, kernel_shape=kernel, strides=stride, dilations=dilation, pads=pads, group=group)
    if net.chance(0.5):
        activation(net, y)


@template(2)
def transposed(net):
    x = net.choose(lambda v: 3 <= len(v.shape) <= 4 and v.shape[1] <= 16 and max(v.shape[2:]) <= 16)
    shape = net.values[x].shape
    space = len(shape) - 2
    kernel = [net.pick([1, 2, 3, 4]) for _ in range(space)]
    stride = [net.pick([1, 2, 2, 3]) for _ in range(space)]
    pads = [net.int(0, (k - 1) // 2) for k in kernel] * 2
    group = net.pick([1, 1, shape[1]])
    out = net.int(1, 8) if group == 1 else 1
    weights = net.floats(shape[1], out, *kernel) * np.float32(2 / np.sqrt(shape[1] // group * 2))
    extra = [net.int(0, s - 1) for s in stride]
    net.add("ConvTranspose", x, weights, net.floats(out * group) if net.chance(0.5) else None, kernel_shape=kernel,
            strides=stride, pads=pads, group=group, output_padding=extra)


@template(3)
def pool(net):
    op = net.pick(["MaxPool", "AveragePool"])
    x = net.choose(lambda v: spatial(v) and min(v.shape[2:]) >= 3)
    space = len(net.values[x].shape) - 2
    kernel = [net.int(1, 3) for _ in range(space)]
    stride = [net.int(1, 3) for _ in range(space)]
    pads = [net.int(0, k // 2) for k in kernel] * 2
    more = {"count_include_pad": net.int(0, 1)} if op == "AveragePool" else {}
    net.add(op, x, kernel_shape=kernel, strides=stride, pads=pads, ceil_mode=net.int(0, 1), **more)


@template()
def global_pool(net):
    net.add(net.pick(["GlobalAveragePool", "GlobalMaxPool"]), net.choose(spatial))


ACTIVATIONS = [("Relu", {}), ("Sigmoid", {}), ("Tanh", {}), ("LeakyRelu", {"alpha": 0.1}), ("Elu", {"alpha": 1.0}), ("HardSigmoid", {}),
               ("HardSwish", {}), ("Softplus", {}), ("Softsign", {}), ("Selu", {}), ("Celu", {"alpha": 0.7}), ("Mish", {}), ("Gelu", {}),
               ("ThresholdedRelu", {"alpha": 0.25}), ("Gelu", {"approximate": "tanh"})]


@template(4)
def activation(net, x=None):
    x = x or net.choose(rank=0)
    op, attributes = net.pick(ACTIVATIONS)
    net.add(op, x, certain=op == "ThresholdedRelu", **attributes)


@template()
def swish(net):
    x = net.choose()
    net.add("Mul", x, net.add("Sigmoid", x))


@template()
def clip(net):
    low, high = net.pick([(0.0, 6.0), (-1.0, 1.0), (None, 0.5), (0.0, None)])
    net.add("Clip", net.choose(), None if low is None else np.float32(low), None if high is None else np.float32(high))


@template()
def prelu(net):
    x = net.choose(lambda v: len(v.shape) >= 3)
    shape = net.values[x].shape
    slope = net.floats(shape[1], *[1] * (len(shape) - 2)) if net.chance(0.7) else net.floats(1)
    net.add("PRelu", x, slope)


@template(3)
def unary(net):
    net.add(net.pick(["Abs", "Neg", "Exp", "Erf", "Sin", "Cos", "Atan", "Asinh", "Sinh", "Cosh", "Identity"]), net.choose(rank=0))


@template(2)
def positive(net):
    x = net.add("Add", net.add("Abs", net.choose()), np.float32(net.pick([0.5, 1.0, 1.5])))
    op = net.pick(["Log", "Sqrt", "Reciprocal", "Acosh", "Pow", "Div"])
    if op == "Pow":
        net.add("Pow", x, np.float32(net.pick([2.0, 3.0, 0.5, -0.5, 1.0, 1.7])))
    elif op == "Div":
        net.add("Div", net.choose(lambda v: v.shape == net.values[x].shape), x)
    else:
        net.add(op, net.add("Add", x, np.float32(0.75)) if op == "Acosh" else x)


@template()
def bounded(net):
    x = net.add("Clip", net.choose(), np.float32(-0.75), np.float32(0.75))
    net.add(net.pick(["Acos", "Asin", "Atanh", "Tan"]), x)


@template(2)
def certain_unary(net):
    op = net.pick(["Ceil", "Floor", "Round", "Sign", "IsNaN", "IsInf"])
    x = net.choose(lambda v: v.certain)
    y = net.add(op, x, certain=True)
    if op.startswith("Is"):
        net.add("Cast", net.add("Not", y), to=TensorProto.FLOAT)


@template(5)
def binary(net):
    op = net.pick(["Add", "Add", "Sub", "Mul", "Mul", "Max", "Min"])
    x = net.choose()
    shape = net.values[x].shape
    kind = net.int(0, 5)
    if kind == 0:  # scalar
        y = np.float32(net.random.uniform(-2, 2))
    elif kind == 1 and len(shape) >= 3:  # one per channel
        y = net.floats(shape[1], *[1] * (len(shape) - 2))
    elif kind == 2:  # any axis broadcast
        y = net.floats(*[s if net.chance(0.6) else 1 for s in shape])
    elif kind == 3:
        y = net.choose()  # two tensors, if they broadcast
    else:
        y = net.choose(lambda v: v.shape == shape)
    net.add(op, *((x, y) if net.chance(0.8) else (y, x)))


@template()
def many(net):
    x = net.choose()
    others = [net.choose(lambda v: v.shape == net.values[x].shape) for _ in range(net.int(0, 2))]
    net.add(net.pick(["Sum", "Mean", "Max", "Min"]), x, *others)


@template(2)
def compare(net):
    x = net.choose(lambda v: v.certain)
    shape = net.values[x].shape
    y = net.pick([np.float32(0.5), (net.random.integers(-8, 8, shape) / 8).astype(np.float32)])
    op = net.pick(["Greater", "Less", "Equal", "GreaterOrEqual", "LessOrEqual"])
    mask = net.add(op, x, y, certain=True)
    kind = net.int(0, 3)
    if kind == 0:
        other = net.add("Less", x, np.float32(net.random.uniform(-1, 1)), certain=True)
        mask = net.add(net.pick(["And", "Or", "Xor"]), mask, other)
    if kind == 1:
        net.add("Cast", mask, to=TensorProto.FLOAT)
    else:
        net.add("Where", mask, net.choose(lambda v: v.shape == shape), net.pick([np.float32(-1.5), net.floats(*shape)]))


@template(2)
def reduce(net):
    x = net.choose()
    rank = len(net.values[x].shape)
    op = net.pick(["ReduceMean", "ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceLogSumExp",
                   "ReduceSumSquare", "ReduceProd"])
    axes = sorted(net.random.choice(rank, net.int(1, rank), replace=False).tolist())
    axes = [a - rank if net.chance(0.3) else a for a in axes]
    net.add(op, x, i64(*axes) if net.chance(0.9) else None, keepdims=net.int(0, 1))


@template(2)
def normalise(net):
    op = net.pick(["BatchNormalization", "InstanceNormalization", "LayerNormalization", "LRN", "MeanVarianceNormalization", "LpNormalization"])
    x = net.choose(lambda v: len(v.shape) >= 3 if op != "LRN" else image(v))
    shape = net.values[x].shape
    c = shape[1]
    if op == "BatchNormalization":
        net.add(op, x, net.floats(c, low=0.5, high=1.5), net.floats(c), net.floats(c), net.floats(c, low=0.5, high=2))
    elif op == "InstanceNormalization":
        net.add(op, x, net.floats(c, low=0.5, high=1.5), net.floats(c), epsilon=1e-3)
    elif op == "LayerNormalization":
        axis = net.int(1, len(shape) - 1)
        net.add(op, x, net.floats(*shape[axis:]), net.pick([None, net.floats(*shape[axis:])]), axis=axis, epsilon=1e-3)
    elif op == "LRN":
        net.add(op, x, size=net.pick([3, 5]), alpha=0.1)
    elif op == "LpNormalization":
        net.add(op, x, axis=net.int(0, len(shape) - 1), p=net.int(1, 2))
    else:
        net.add(op, x, axes=[0, *range(2, len(shape))])


@template(2)
def softmax(net):
    x = net.choose()
    rank = len(net.values[x].shape)
    op = net.pick(["Softmax", "Softmax", "LogSoftmax", "Hardmax"])
    net.add(op, x, axis=net.int(-rank, rank - 1), certain=op == "Hardmax")


@template(2)
def matmul(net):
    x = net.choose(lambda v: len(v.shape) >= 2)
    shape = net.values[x].shape
    kind = net.int(0, 3)
    if kind == 0:
        k = shape[-1]
        net.add("MatMul", x, net.floats(k, net.int(1, 12)) * np.float32(2 / np.sqrt(k)))
    elif kind == 1 and len(shape) == 2:
        k, n = shape[1], net.int(1, 12)
        w = net.floats(n, k) * np.float32(2 / np.sqrt(k))
        trans = net.int(0, 1)
        net.add("Gemm", x, w if trans else np.ascontiguousarray(w.T), net.pick([None, net.floats(n)]), transB=trans, alpha=0.5)
    elif kind == 2 and len(shape) >= 2:  # x * x^T, scaled as in attention
        perm = list(range(len(shape) - 2)) + [len(shape) - 1, len(shape) - 2]
        scaled = net.add("Mul", x, np.float32(1 / shape[-1]))
        net.add("MatMul", scaled, net.add("Transpose", x, perm=perm))
    else:
        k = shape[-1]
        y = net.choose(lambda v: len(v.shape) >= 2 and v.shape[-2] == k)
        net.add("MatMul", net.add("Mul", x, np.float32(1 / k)), y)


@template()
def einsum(net):
    x = net.choose(lambda v: len(v.shape) == 3)
    k = net.values[x].shape[2]
    net.add("Einsum", x, net.floats(k, net.int(1, 8)) * np.float32(2 / np.sqrt(k)), equation=net.pick(["abc,cd->abd", "abc,cd->adb", "abc,cd"]))


@template()
def attention(net):
    x = net.choose(lambda v: len(v.shape) == 3 and v.shape[1] <= 32 and v.shape[2] % 2 == 0)
    batch, length, width = net.values[x].shape
    heads = 2

    def project():
        y = net.add("MatMul", x, net.floats(width, width) * np.float32(2 / np.sqrt(width)))
        y = net.add("Reshape", y, i64(batch, length, heads, width // heads))
        return net.add("Transpose", y, perm=[0, 2, 1, 3])
    q, k, v = project(), project(), project()
    scores = net.add("MatMul", q, net.add("Transpose", k, perm=[0, 1, 3, 2]))
    scores = net.add("Softmax", net.add("Mul", scores, np.float32(1 / np.sqrt(width // heads))), axis=-1)
    y = net.add("Transpose", net.add("MatMul", scores, v), perm=[0, 2, 1, 3])
    net.add("Reshape", y, i64(batch, length, width))


@template(2)
def recurrent(net):
    x = net.choose(lambda v: len(v.shape) == 3 and v.shape[0] <= 12 and v.shape[1] <= 8)
    _, _, width = net.values[x].shape
    op = net.pick(["LSTM", "GRU", "RNN"])
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    hidden = net.int(2, 8)
    directions = net.int(1, 2)
    direction = "bidirectional" if directions == 2 else net.pick(["forward", "reverse"])
    y = net.add(op, x, net.floats(directions, gates * hidden, width) * np.float32(1 / np.sqrt(width)),
                net.floats(directions, gates * hidden, hidden) * np.float32(1 / np.sqrt(hidden)),
                net.pick([None, net.floats(directions, 2 * gates * hidden)]), hidden_size=hidden, direction=direction)
    net.add("Transpose", y, perm=[0, 2, 1, 3])


@template(3)
def concat(net):
    x = net.choose()
    shape = net.values[x].shape
    axis = net.int(0, len(shape) - 1)
    same = lambda v: len(v.shape) == len(shape) and all(a == b for i, (a, b) in enumerate(zip(v.shape, shape)) if i != axis)
    parts = [x] + [net.choose(same) for _ in range(net.int(0, 3))]
    if net.chance(0.2):
        parts.append(net.floats(*shape))
    net.add("Concat", *parts, axis=axis if net.chance(0.7) else axis - len(shape))


@template(2)
def slice_(net):
    x = net.choose()
    shape = net.values[x].shape
    axes = sorted(net.random.choice(len(shape), net.int(1, min(2, len(shape))), replace=False).tolist())
    starts, ends, steps = [], [], []
    for a in axes:
        first = net.int(0, shape[a] - 1)
        last = net.int(first + 1, shape[a])
        step = net.pick([1, 1, 1, 2, -1])
        starts.append(first if step > 0 else last - 1)
        ends.append((last if net.chance(0.7) else 2**40 if last == shape[a] else last) if step > 0 else first - 1 - shape[a] * (first == 0))
        steps.append(step)
    net.add("Slice", x, i64(*starts), i64(*ends), i64(*axes), i64(*steps))


@template()
def split(net):
    x = net.choose(lambda v: max(v.shape, default=1) >= 2)
    shape = net.values[x].shape
    axis = int(np.argmax(shape))
    first = net.int(1, shape[axis] - 1)
    net.add("Split", x, i64(first, shape[axis] - first), axis=axis, outputs=2)


@template(2)
def transpose(net):
    x = net.choose(lambda v: len(v.shape) >= 2)
    net.add("Transpose", x, perm=net.random.permutation(len(net.values[x].shape)).tolist())


@template(2)
def reshape(net):
    x = net.choose(lambda v: len(v.shape) >= 1)
    shape = net.values[x].shape
    size = int(np.prod(shape))
    kind = net.int(0, 4)
    if kind == 0:
        net.add("Flatten", x, axis=net.int(0, len(shape)))
    elif kind == 1:
        at = net.int(0, len(shape))
        net.add("Unsqueeze", x, i64(at))
    elif kind == 2 and 1 in shape and len(shape) > 1:
        net.add("Squeeze", x, i64(shape.index(1)))
    else:
        target = []
        for _ in range(net.int(0, 3)):
            divisors = [d for d in range(1, min(size, 64) + 1) if size % d == 0]
            target.append(net.pick(divisors))
            size //= target[-1]
        target.insert(net.int(0, len(target)), -1 if net.chance(0.5) else size)
        net.add("Reshape", x, i64(*target))


@template()
def pad(net):
    x = net.choose(lambda v: len(v.shape) >= 2)
    shape = net.values[x].shape
    mode = net.pick(["constant", "constant", "reflect", "edge"])
    widths = [0] * (2 * len(shape))
    for a in range(max(0, len(shape) - 2), len(shape)):
        most = 2 if mode != "reflect" else min(2, shape[a] - 1)
        widths[a], widths[a + len(shape)] = net.int(0, most), net.int(0, most)
    net.add("Pad", x, i64(*widths), np.float32(net.random.uniform(-1, 1)) if mode == "constant" and net.chance(0.5) else None, mode=mode)


@template()
def tile(net):
    x = net.choose(lambda v: v.exact.size <= 2000 and len(v.shape) >= 1)
    shape = net.values[x].shape
    if net.chance(0.5):
        net.add("Tile", x, i64(*[net.int(1, 2) for _ in shape]))
    else:
        net.add("Expand", x, i64(*[net.int(1, 3) if s == 1 else s for s in shape]))


@template()
def space(net):
    x = net.choose(image)
    shape = net.values[x].shape
    if shape[1] % 4 == 0 and net.chance(0.6):
        net.add("DepthToSpace", x, blocksize=2, mode=net.pick(["DCR", "CRD"]))
    else:
        net.add("SpaceToDepth", x, blocksize=2)


@template(2)
def resize(net):
    x = net.choose(lambda v: image(v) and max(v.shape[2:]) <= 24)
    shape = net.values[x].shape
    mode = net.pick(["nearest", "nearest", "linear", "cubic"])
    transform = net.pick(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])
    attributes = {"mode": mode, "coordinate_transformation_mode": transform}
    if mode == "nearest":
        attributes["nearest_mode"] = net.pick(["floor", "round_prefer_floor", "round_prefer_ceil", "ceil"])
    if net.chance(0.6):
        net.add("Resize", x, None, np.array([1, 1, net.int(1, 4), net.int(1, 4)], np.float32), **attributes)
    else:
        net.add("Resize", x, None, None, i64(*shape[:2], net.int(1, 2 * shape[2]), net.int(1, 2 * shape[3])), **attributes)


@template(2)
def gather(net):
    x = net.choose(lambda v: len(v.shape) >= 1)
    shape = net.values[x].shape
    axis = net.int(0, len(shape) - 1)
    kind = net.int(0, 4)
    if kind <= 1:
        indices = net.random.integers(-shape[axis], shape[axis], [net.int(1, 4) for _ in range(net.int(0, 2))])
        net.add("Gather", x, np.asarray(indices, np.int64), axis=axis)
    elif kind == 2:
        wanted = list(shape)
        wanted[axis] = net.int(1, 4)
        net.add("GatherElements", x, net.random.integers(0, shape[axis], wanted), axis=axis)
    elif kind == 3:
        depth = net.int(1, len(shape))
        indices = np.stack([net.random.integers(0, s, (3,)) for s in shape[:depth]], -1)
        net.add("GatherND", x, indices)
    else:
        indices = net.random.permutation(shape[axis])[: net.int(1, shape[axis])]
        wide = np.broadcast_to(indices.reshape([-1 if a == axis else 1 for a in range(len(shape))]),
                               [len(indices) if a == axis else s for a, s in enumerate(shape)])
        net.add("ScatterElements", x, np.ascontiguousarray(wide, np.int64), net.floats(*wide.shape), axis=axis,
                reduction=net.pick(["none", "add", "mul"]))


@template()
def scatter_nd(net):
    x = net.choose(lambda v: len(v.shape) >= 2)
    shape = net.values[x].shape
    rows = net.random.permutation(shape[0])[: net.int(1, shape[0])].reshape(-1, 1)
    net.add("ScatterND", x, rows.astype(np.int64), net.floats(len(rows), *shape[1:]))


@template(2)
def positions(net):
    x = net.choose(lambda v: v.certain and len(v.shape) >= 1)
    shape = net.values[x].shape
    axis = net.int(0, len(shape) - 1)
    kind = net.int(0, 2)
    if kind == 0:
        y = net.add(net.pick(["ArgMax", "ArgMin"]), x, axis=axis, keepdims=net.int(0, 1), certain=True)
        y = net.add("Cast", y, to=TensorProto.FLOAT)
        net.add("Mul", y, np.float32(0.125))
    elif kind == 1:
        values, where = net.add("TopK", x, i64(net.int(1, shape[axis])), axis=axis, largest=net.int(0, 1), outputs=2, certain=True)
        net.add("Mul", net.add("Cast", where, to=TensorProto.FLOAT), np.float32(0.125))
    else:
        mask = net.add("Cast", net.add("Greater", x, np.float32(0.3), certain=True), to=TensorProto.INT32)
        y = net.add("OneHot", mask, i64(3), np.array([0.25, 1.5], np.float32), axis=-1)
        net.add("Mul", y, np.float32(0.5))


@template()
def running(net):
    x = net.choose(lambda v: len(v.shape) >= 1 and max(v.shape) <= 16)
    rank = len(net.values[x].shape)
    kind = net.int(0, 2)
    if kind == 0:
        net.add("CumSum", x, np.array(net.int(0, rank - 1), np.int64), reverse=net.int(0, 1), exclusive=net.int(0, 1))
    elif kind == 1 and rank >= 2:
        net.add("Trilu", x, np.array(net.int(-1, 1), np.int64), upper=net.int(0, 1))
    elif rank >= 2:
        shape = net.values[x].shape
        lengths = net.random.integers(1, shape[0] + 1, shape[1])
        net.add("ReverseSequence", x, lengths.astype(np.int64), time_axis=0, batch_axis=1)


@template()
def grid_sample(net):
    x = net.choose(lambda v: image(v) and min(v.shape[2:]) >= 2)
    grid = net.floats(net.values[x].shape[0], net.int(2, 6), net.int(2, 6), 2)
    net.add("GridSample", x, grid, mode=net.pick(["linear", "linear", "cubic"]), padding_mode=net.pick(["zeros", "border"]),
            align_corners=net.int(0, 1))


@template()
def roi_align(net):
    x = net.choose(lambda v: image(v) and v.shape[0] == 1 and min(v.shape[2:]) >= 4)
    boxes = np.sort(net.floats(2, 2, 2, low=0, high=1), axis=1).transpose(0, 1, 2).reshape(2, 4) * np.float32(net.values[x].shape[2] - 1)
    net.add("RoiAlign", x, boxes, np.zeros(2, np.int64), output_height=net.int(1, 3), output_width=net.int(1, 3), sampling_ratio=2)


@template()
def other_pools(net):
    x = net.choose(lambda v: image(v) and min(v.shape[2:]) >= 3)
    if net.chance(0.5):
        net.add("GlobalLpPool", x, p=net.int(1, 2))
    else:
        net.add("LpPool", x, kernel_shape=[net.int(1, 3), net.int(1, 3)], strides=[net.int(1, 2), net.int(1, 2)], p=2)


@template()
def cut_to_size(net):
    x = net.choose(lambda v: len(v.shape) >= 2)
    shape = net.values[x].shape
    net.add("CenterCropPad", x, i64(*[net.int(max(1, s - 2), s + 2) for s in shape]))


@template()
def columns_to_image(net):
    """Windows that overlap, put back."""
    x = net.choose(lambda v: v.exact.size >= 36)
    flat = net.add("Slice", net.add("Reshape", x, i64(-1)), i64(0), i64(36), i64(0))
    net.add("Col2Im", net.add("Reshape", flat, i64(1, 4, 9)), i64(4, 4), i64(2, 2))


@template()
def unpool(net):
    x = net.choose(lambda v: image(v) and v.certain and min(v.shape[2:]) >= 4 and v.shape[2] % 2 == 0 and v.shape[3] % 2 == 0)
    values, places = net.add("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2], outputs=2, certain=True)
    net.add("MaxUnpool", values, places, kernel_shape=[2, 2], strides=[2, 2])


@template()
def quantized(net):
    """Through integers and back; a rounded operand could fall to either side of a step. One scale per index of an axis:
    a build takes pairs of a single scale as the ranges of an int8 network and computes without their rounding."""
    x = net.choose(lambda v: v.certain and len(v.shape) >= 1)
    shape = net.values[x].shape
    axis = net.int(0, len(shape) - 1)
    if shape[axis] < 2:
        raise Rejected("one scale")
    scale = np.array([net.pick([0.25, 0.125, 0.0625]) for _ in range(shape[axis])], np.float32)
    zero = np.full(shape[axis], net.pick([-3, 0]), np.int8) if net.chance(0.5) else np.full(shape[axis], 128, np.uint8)
    net.add("DequantizeLinear", net.add("QuantizeLinear", x, scale, zero, axis=axis, certain=True), scale, zero, axis=axis)


@template()
def integers(net):
    x = net.choose(lambda v: v.certain and len(v.shape) >= 1)
    y = net.add("Cast", net.add("Mul", x, np.float32(8), certain=True), to=TensorProto.INT32)
    op = net.pick(["Add", "Mul", "Sub", "Max", "Min", "Mod", "Abs", "Sign"])
    y = net.add(op, y) if op in ("Abs", "Sign") else net.add(op, y, np.int32(net.int(2, 9)))
    net.add("Mul", net.add("Cast", y, to=TensorProto.FLOAT), np.float32(0.0625))


@template()
def spectrum(net):
    x = net.choose(lambda v: len(v.shape) == 3 and v.shape[2] == 1 and v.shape[1] >= 2)
    net.add("DFT", x, None, np.array(1, np.int64), onesided=net.int(0, 1))


@template()
def shape_arithmetic(net):
    """A shape that is computed in the graph, as exporters write it."""
    x = net.choose(lambda v: len(v.shape) >= 2)
    shape = net.add("Shape", x)
    first = net.add("Slice", shape, i64(0), i64(1), i64(0))
    net.add("Reshape", x, net.add("Concat", first, i64(-1), axis=0))
