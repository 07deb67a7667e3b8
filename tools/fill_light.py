#!/usr/bin/env python3
"""Gives the "light" models of the ONNX test data real numbers for weights.

    fill_light.py light_resnet50.onnx resnet50_seeded.onnx [--seed N]

The light files make their weights by ConstantOfShape (0.02 everywhere, a few small ones aside), which says nothing about
accuracy or quantization. Here each becomes an initializer: weights He-initialised by their fan-in (gain 2 behind a Relu, else 1), scales near 1, biases and means near 0,
variances positive; a normalisation that ends a residual branch is scaled down, so that deep sums stay in range.
Needs numpy and onnx from PyPI.
"""
import argparse
import sys

try:
    import numpy as np
    import onnx
    from onnx import numpy_helper
except ImportError as missing:
    sys.exit(f"fill_light.py: {missing.name} is not installed; run: pip install numpy onnx")

BATCH_NORM_ROLES = {1: "scale", 2: "bias", 3: "mean", 4: "variance"}
RESIDUAL_GAIN = 0.3
PASSING = ("MaxPool", "AveragePool", "GlobalAveragePool", "Concat", "Reshape", "Transpose", "Dropout", "LRN")


def consumers_of(graph):
    consumers = {}
    for node in graph.node:
        for slot, name in enumerate(node.input):
            consumers.setdefault(name, []).append((node, slot))
    return consumers


def attribute(node, name, default):
    return next((onnx.helper.get_attribute_value(a) for a in node.attribute if a.name == name), default)


def role_of(name, consumers):
    """(role, node that gives the fan-in) of a weight, looking through Unsqueeze and Reshape."""
    for node, slot in consumers.get(name, []):
        if node.op_type == "BatchNormalization" and slot in BATCH_NORM_ROLES:
            ends_branch = slot == 1 and any(n.op_type in ("Sum", "Add") for n, _ in consumers.get(node.output[0], []))
            return ("residual scale" if ends_branch else BATCH_NORM_ROLES[slot]), node
        if node.op_type in ("Conv", "Gemm", "MatMul") and slot == 1:
            return "weight", node
        if node.op_type in ("Conv", "Gemm") and slot == 2:
            return "bias", node
        if node.op_type in ("Unsqueeze", "Reshape"):
            return role_of(node.output[0], consumers)
        if node.op_type == "Mul":
            return "scale", node
        if node.op_type in ("Add", "Sum"):
            return "bias", node
    return "bias", None


def fan_in(node, shape):
    if node.op_type == "Conv":
        return int(np.prod(shape[1:]))
    rows, columns = shape[-2], shape[-1]  # leading extents of 1 are dropped by a Reshape
    return int(columns if attribute(node, "transB", 0) else rows)


def follows_relu(node, producers):
    """Whether the operand of a product is half zeros: only then is the gain of 2 right."""
    seen = set()
    while node is not None and node.input and node.input[0] not in seen:
        seen.add(node.input[0])
        node = producers.get(node.input[0])
        if node is None or node.op_type not in PASSING:
            return node is not None and node.op_type == "Relu"
    return False


def values_of(role, node, shape, random, producers):
    if role == "weight":
        gain = 2.0 if follows_relu(node, producers) else 1.0
        return random.standard_normal(shape, dtype=np.float32) * np.float32(np.sqrt(gain / fan_in(node, shape)))
    if role == "variance":
        return random.uniform(0.5, 1.5, shape)
    if role == "scale":
        return random.uniform(0.8, 1.2, shape)
    if role == "residual scale":
        return random.uniform(0.8, 1.2, shape) * RESIDUAL_GAIN
    return random.standard_normal(shape) * 0.05


def fill(model, seed):
    graph = model.graph
    consumers = consumers_of(graph)
    producers = {name: node for node in graph.node for name in node.output}
    initializers = {t.name: t for t in graph.initializer}
    random = np.random.default_rng(seed)
    made, removed, kept = [], set(), []
    for node in graph.node:
        shape_tensor = initializers.get(node.input[0]) if node.op_type == "ConstantOfShape" else None
        if shape_tensor is None:
            kept.append(node)
            continue
        shape = tuple(int(d) for d in numpy_helper.to_array(shape_tensor))
        role, user = role_of(node.output[0], consumers)
        made.append(numpy_helper.from_array(np.asarray(values_of(role, user, shape, random, producers), np.float32), node.output[0]))
        removed.add(node.input[0])
    read = {name for node in kept for name in node.input}
    others = []
    for tensor in graph.initializer:
        role, user = role_of(tensor.name, consumers)
        if user is not None and tensor.data_type == onnx.TensorProto.FLOAT:  # a few small tensors kept their trained values: they do not fit the rest
            made.append(numpy_helper.from_array(np.asarray(values_of(role, user, tuple(tensor.dims), random, producers), np.float32), tensor.name))
        elif tensor.name in read or tensor.name not in removed:
            others.append(tensor)
    inputs = [i for i in graph.input if i.name not in removed]
    for field, items in (("node", kept), ("initializer", others + made), ("input", inputs)):
        del getattr(graph, field)[:]
        getattr(graph, field).extend(items)
    model.ir_version = max(model.ir_version, 4)  # from 4 on initializers need not be inputs
    return len(made)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    model = onnx.load(arguments.source)
    count = fill(model, arguments.seed)
    if count == 0:
        sys.exit(f"fill_light.py: {arguments.source} has no weights made by ConstantOfShape")
    onnx.save(model, arguments.target)
    print(f"{arguments.target}: {count} weights, seed {arguments.seed}")


if __name__ == "__main__":
    main()
