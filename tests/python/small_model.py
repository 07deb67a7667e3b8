"""Small ONNX models in a line per node, onnxruntime's answer to them, and our golden run and program of them."""
import json

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from conftest import run_openrknn


class Model:
    """m = Model(); x = m.input((1, 3, 8, 8)); m.output(m("Relu", x)). Arrays become initializers."""

    def __init__(self, opset=17, domains=()):
        self.opset, self.domains = opset, domains
        self.nodes, self.initializers, self.inputs, self.outputs, self.feeds = [], [], [], [], {}
        self.random = np.random.default_rng(7)

    def input(self, shape, data=None, dtype=np.float32, name=None, dims=None):
        name = name or f"x{len(self.inputs)}"
        data = self.random.uniform(-1, 1, shape).astype(dtype) if data is None else np.asarray(data, dtype).reshape(shape)
        self.inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(data.dtype), dims or shape))
        self.feeds[name] = data
        return name

    def floats(self, *shape, scale=1.0):
        return (self.random.uniform(-1, 1, shape) * scale).astype(np.float32)

    def weights(self, *shape):
        return self.floats(*shape, scale=1.7 / np.sqrt(max(1, int(np.prod(shape[1:])))))

    def constant(self, array):
        name = f"c{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def __call__(self, op, *operands, outputs=1, names=None, domain="", **attributes):
        inputs = ["" if o is None else o if isinstance(o, str) else self.constant(o) for o in operands]
        results = list(names) if names else [f"t{len(self.nodes)}" + (f"_{k}" if outputs > 1 else "") for k in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, results, name=f"{op}_{len(self.nodes)}", domain=domain, **attributes))
        made = [r for r in results if r]
        return made[0] if len(made) == 1 else made

    def output(self, *names):
        self.outputs += names

    def proto(self):
        graph = helper.make_graph(self.nodes, "small", self.inputs, [helper.make_empty_tensor_value_info(o) for o in self.outputs], self.initializers)
        imports = [helper.make_opsetid("", self.opset)] + [helper.make_opsetid(d, 1) for d in self.domains]
        return helper.make_model(graph, opset_imports=imports, ir_version=10 if self.opset >= 21 else 8)

    def save(self, folder):
        path = folder / "model.onnx"
        onnx.save(self.proto(), path)
        return path

    def oracle(self):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        # The operators as they are written, not fused: QDQ pairs become integer kernels otherwise.
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(self.proto().SerializeToString(), options, providers=["CPUExecutionProvider"])
        return dict(zip(self.outputs, session.run(self.outputs, self.feeds)))

    def arguments(self, folder):
        arguments = []
        for name, data in self.feeds.items():
            np.save(folder / f"{name}.npy", data)
            arguments += ["--input", f"{name}={folder / name}.npy"]
        return arguments


def load(folder):
    return {o["name"]: np.load(folder / o["file"]) for o in json.loads((folder / "outputs.json").read_text())}


def golden(model, folder):
    run_openrknn("run", model.save(folder), *model.arguments(folder), "--outdir", folder / "golden", "--quiet")
    return load(folder / "golden")


def program(model, folder, target, dtype, *options):
    """Outputs of the built model, and what the build wrote to stderr. For w8a8 the feeds are the only sample."""
    path, built = model.save(folder), folder / f"{target}_{dtype}.rknn"
    arguments = model.arguments(folder)
    if dtype == "w8a8":
        (folder / "dataset.txt").write_text(" ".join(f"{name}.npy" for name in model.feeds) + "\n")
        options = (*options, "--dataset", folder / "dataset.txt")
    done = run_openrknn("build", path, "-o", built, "--target", target, "--dtype", dtype, *options)
    out = folder / f"{target}_{dtype}"
    run_openrknn("run", built, *arguments, "--outdir", out, "--quiet")
    return load(out), done.stderr


def cosine(a, b):
    a, b = a.astype(np.float64).ravel(), b.astype(np.float64).ravel()
    scale = np.linalg.norm(a) * np.linalg.norm(b)
    return float(a @ b / scale) if scale else float(np.array_equal(a, b))
