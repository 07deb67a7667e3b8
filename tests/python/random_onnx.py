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

from random_templates import TEMPLATES, Rejected

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


def save(network, path):
    onnx.save(network.model(), path)
