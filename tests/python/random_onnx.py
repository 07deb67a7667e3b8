"""Seeded random ONNX networks over all operators, with onnxruntime's result of every node.

Each node is run alone in onnxruntime as it is added, in two tracks: exact fp32, and with every tensor rounded to
float16. A node whose two tracks drift apart (a division by almost nothing, a comparison of two rounded values) says
nothing about a float16 program and is not taken. So every network is well-conditioned by construction, and a float16
program that is far from the golden run is wrong.
"""
import dataclasses

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

OPSET = 20
LARGEST = 60.0  # of all values: far inside float16
ELEMENTS = 20000
NOISE = 5e-3  # of the largest value, between the two tracks


@dataclasses.dataclass
class Value:
    exact: np.ndarray  # fp32 (or integer, bool) track
    half: np.ndarray  # track rounded to float16
    constant: bool = False

    @property
    def shape(self):
        return self.exact.shape

    @property
    def certain(self):
        return np.array_equal(self.exact, self.half)


class Rejected(Exception):
    pass


def type_of(array):
    return helper.np_dtype_to_tensor_dtype(array.dtype)


def run_node(op, arrays, attributes, outputs):
    """The outputs of one node; an operand that is None is absent."""
    names = ["" if a is None else f"i{k}" for k, a in enumerate(arrays)]
    results = [f"o{k}" for k in range(outputs)]
    graph = helper.make_graph(
        [helper.make_node(op, names, results, **attributes)], "node",
        [helper.make_tensor_value_info(n, type_of(a), a.shape) for n, a in zip(names, arrays) if n],
        [helper.make_empty_tensor_value_info(r) for r in results])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(results, {n: a for n, a in zip(names, arrays) if n})


def rounded(array):
    if array.dtype != np.float32:
        return array
    with np.errstate(over="ignore"):
        return array.astype(np.float16).astype(np.float32)


class Network:
    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.seed = seed
        self.values = {}  # of graph inputs and results, not of constants
        self.inputs = []
        self.initializers = []
        self.nodes = []
        self.rejections = 0
        self.grow()

    # -- building blocks --

    def chance(self, p):
        return self.random.random() < p

    def pick(self, items):
        return items[self.random.integers(len(items))]

    def int(self, low, high):
        """Inclusive on both ends."""
        return int(self.random.integers(low, high + 1))

    def floats(self, *shape, low=-1.0, high=1.0):
        return self.random.uniform(low, high, shape).astype(np.float32)

    def add_input(self, shape):
        """Multiples of 1/8, which float16 holds, so that comparisons of them are certain."""
        array = (self.random.integers(-16, 17, shape) / 8).astype(np.float32)
        name = f"x{len(self.inputs)}"
        self.inputs.append((name, array))
        self.values[name] = Value(array, array)
        return name

    def choose(self, where=lambda v: True, rank=1):
        """A float tensor of at least this rank."""
        names = [n for n, v in self.values.items() if v.exact.dtype.kind == "f" and v.exact.ndim >= rank and where(v)]
        if not names:
            raise Rejected("no such operand")
        # Newer ones more often: depth instead of breadth.
        weights = np.arange(1, len(names) + 1, dtype=np.float64) ** 2
        return names[self.random.choice(len(names), p=weights / weights.sum())]

    def add(self, op, *operands, outputs=1, certain=False, **attributes):
        """Adds a node; operands are names, arrays (initializers) or None. Gives the name of the result (or a list)."""
        exact, half, names = [], [], []
        fresh = []
        for operand in operands:
            if operand is None:
                names.append("")
                exact.append(None)
                half.append(None)
            elif isinstance(operand, str):
                value = self.values[operand]
                if certain and not value.certain:
                    raise Rejected("operand is rounded")
                names.append(operand)
                exact.append(value.exact)
                half.append(value.half)
            else:
                operand = np.asarray(operand)
                name = f"c{len(self.initializers) + len(fresh)}"
                fresh.append(numpy_helper.from_array(operand, name))
                names.append(name)
                exact.append(operand)
                half.append(rounded(operand))
        try:
            results = run_node(op, exact, attributes, outputs)
            halves = [rounded(r) for r in run_node(op, half, attributes, outputs)]
        except Exception as error:  # what onnxruntime does not do is no test of ours
            raise Rejected(f"onnxruntime: {error}") from error
        for result, near in zip(results, halves):
            self.judge(result, near)
        while names and not names[-1]:
            names.pop()
        made = [f"t{len(self.nodes)}" + (f"_{k}" if outputs > 1 else "") for k in range(outputs)]
        self.nodes.append(helper.make_node(op, names, made, name=f"{op}_{len(self.nodes)}", **attributes))
        self.initializers += fresh
        for name, result, near in zip(made, results, halves):
            self.values[name] = Value(result, near)
        return made if outputs > 1 else made[0]

    @staticmethod
    def judge(result, near):
        if result.size == 0 or result.size > ELEMENTS or result.ndim > 6:
            raise Rejected("size")
        if result.dtype.kind != "f":
            if not np.array_equal(result, near):
                raise Rejected("not certain")
            return
        largest = np.abs(result).max()
        if not np.isfinite(result).all() or not np.isfinite(near).all() or not 1e-2 <= largest <= LARGEST:
            raise Rejected("range")
        if np.abs(result - near).max() > NOISE * largest:
            raise Rejected("noise")

    # -- the whole --

    def grow(self):
        count = self.int(5, 60)
        channels = self.pick([1, 2, 3, 4, 8, 13, 16])
        side = self.pick([4, 7, 8, 12, 14])
        shapes = [(1, channels, side, self.pick([side, side, side + 3]))] * 4
        shapes += [(1, self.int(2, 40)), (self.int(1, 4), self.int(2, 9), self.int(2, 12)), (self.int(2, 9),), (1, 2, 3, 4, 5)]
        self.add_input(shapes[0] if self.chance(0.7) else self.pick(shapes))
        for _ in range(self.int(0, 2)):
            self.add_input(self.pick(shapes))
        tries = 0
        while len(self.nodes) < count and tries < 40 * count:
            tries += 1
            mark = (len(self.nodes), len(self.initializers))
            kept = dict(self.values)
            try:
                self.pick(TEMPLATES)(self)
            except Rejected:
                self.rejections += 1
                del self.nodes[mark[0]:], self.initializers[mark[1]:]
                self.values = kept

    def outputs(self):
        """Results that nobody reads, and now and then one that somebody reads."""
        read = {name for node in self.nodes for name in node.input}
        made = [name for node in self.nodes for name in node.output]
        results = [name for name in made if name not in read]
        inner = [name for name in made if name in read]
        if inner and self.seed % 3 == 0:
            results.append(inner[self.seed % len(inner)])
        return results

    def model(self):
        describe = lambda n: helper.make_tensor_value_info(n, type_of(self.values[n].exact), self.values[n].shape)
        used = {name for node in self.nodes for name in node.input}
        graph = helper.make_graph(
            self.nodes, f"random_{self.seed}",
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, a.shape) for n, a in self.inputs],
            [describe(n) for n in self.outputs()], [i for i in self.initializers if i.name in used])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)


# -- templates: each adds one operator, sometimes with what keeps its operand in its domain --

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


def save(network, path):
    onnx.save(network.model(), path)
