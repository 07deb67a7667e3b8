"""ONNX's own backend tests, as the onnx package ships them, run by build/release/bin/openrknn_onnx_nodes.

    python tests/python/onnx_backend.py            prints what does not pass
    python tests/python/onnx_backend.py --write    writes docs/ONNX_COVERAGE.md
"""
import collections
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import onnx
import onnx.backend.test

ROOT = pathlib.Path(__file__).resolve().parents[2]
DRIVER = pathlib.Path(os.environ.get("OPENRKNN_ONNX_NODES", ROOT / "build/release/bin/openrknn_onnx_nodes"))
DOCUMENT = ROOT / "docs/ONNX_COVERAGE.md"
DATA = pathlib.Path(onnx.backend.test.__file__).parent / "data"
FOLDERS = ("node", "simple", "pytorch-operator", "pytorch-converted")

# sdk.md C.2: what the vendor's converter accepts.
VENDOR_OPERATORS = frozenset("""
    Add And ArgMax ArgMin AveragePool BatchNormalization Cast Clip Concat Constant ConstantOfShape Identity Dropout Shape
    Size Conv ConvTranspose Cos Sin DepthToSpace QuantizeLinear DequantizeLinear Div Elu Equal Erf Exp Expand EyeLike
    Flatten Squeeze Unsqueeze Floor Gather GatherElements Gemm GlobalAveragePool GlobalMaxPool Greater GreaterOrEqual Less
    LessOrEqual GRU HardSigmoid HardSwish If InstanceNormalization LayerNormalization LeakyRelu Log LogSoftmax
    LpNormalization LRN LSTM MatMul Max MaxPool MaxRoiPool MaxUnpool MeanVarianceNormalization Min Mish Mod Mul Pad Pow
    PRelu ReduceMax ReduceMean ReduceMin ReduceSum Relu Reshape Resize ReverseSequence RoiAlign ScatterND Sigmoid Slice
    Softmax Softplus SpaceToDepth Split Sqrt Sub Tanh Tile Transpose Where""".split())

# What the project leaves out on purpose: domains of training, previews and classical models, results that no two runs
# share, and values that are no numbers.
FOREIGN_DOMAINS = ("ai.onnx.preview.", "ai.onnx.ml.")
RANDOM_OPERATORS = frozenset(("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
                              "RandomUniformLike"))
CONTAINER_OPERATORS = {"sequence": ("Sequence", "SplitToSequence", "ConcatFromSequence"), "optional": ("Optional",)}
FOREIGN_TYPES = frozenset(onnx.TensorProto.DataType.Value(name) for name in onnx.TensorProto.DataType.keys()
                          if name.startswith(("STRING", "COMPLEX", "FLOAT8", "FLOAT4", "INT4", "UINT4", "INT2", "UINT2")))


@dataclasses.dataclass(frozen=True)
class Outcome:
    name: str
    result: str  # pass, wrong, refused, crash
    operators: tuple
    detail: str
    foreign: str  # why the test is left out of the counts; empty: it counts


def folders():
    return sorted(path.parent for group in FOLDERS for path in (DATA / group).glob("*/model.onnx"))


def foreign(model, operators):
    """What of a model is outside the project: a domain, a container, an element type."""
    for name in operators:
        if name.startswith(FOREIGN_DOMAINS):
            return name.rsplit(".", 1)[0]
    if RANDOM_OPERATORS.intersection(operators):
        return "random"
    for kind, prefixes in CONTAINER_OPERATORS.items():
        if any(name.startswith(prefixes) for name in operators):
            return kind
    infos = [*model.graph.input, *model.graph.output, *model.graph.value_info]
    types = {info.type.tensor_type.elem_type for info in infos if info.type.WhichOneof("value") == "tensor_type"}
    types |= {tensor.data_type for tensor in model.graph.initializer}
    types |= {attribute.t.data_type for node in model.graph.node for attribute in node.attribute if attribute.HasField("t")}
    for kind in sorted({info.type.WhichOneof("value") for info in infos} - {"tensor_type", None}):
        return kind.replace("_type", "")
    for number in sorted(types & FOREIGN_TYPES):
        return onnx.TensorProto.DataType.Name(number).lower()
    return ""


def drive(tests):
    """What the driver says of test folders, in order."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as listing:
        listing.write("".join(f"{test}\n" for test in tests))
        listing.flush()
        done = subprocess.run([DRIVER, listing.name], capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["name"] for line in lines] == [test.name for test in tests]
    return lines


def run():
    """The outcome of every test."""
    tests = folders()
    outcomes = []
    for test, line in zip(tests, drive(tests)):
        why = foreign(onnx.load(test / "model.onnx"), line["operators"])
        detail = line["detail"].replace(f"{test}/", "")
        outcomes.append(Outcome(line["name"], line["result"], tuple(line["operators"]), detail, why))
    return outcomes


def passed(outcomes):
    return sum(outcome.result == "pass" for outcome in outcomes)


def share(outcomes):
    return passed(outcomes) / len(outcomes) if outcomes else 1.0


def by_operator(outcomes):
    table = collections.defaultdict(list)
    for outcome in outcomes:
        for operator in outcome.operators:
            table[operator].append(outcome)
    return dict(sorted(table.items()))


def document(outcomes):
    """The text of docs/ONNX_COVERAGE.md."""
    counted = [outcome for outcome in outcomes if not outcome.foreign]
    left_out = collections.Counter(outcome.foreign for outcome in outcomes if outcome.foreign)
    lines = ["# ONNX's backend tests",
             "",
             f"What the golden run makes of the tests that onnx {onnx.__version__} ships (`onnx.backend.test`: node tests with",
             "their expanded forms, simple models, the tests converted from PyTorch). Written by",
             "`python tests/python/onnx_backend.py --write`; `tests/python/test_onnx_backend.py` holds the floors.",
             "",
             f"{passed(counted)} of {len(counted)} pass. Left out, with the reason: "
             + ", ".join(f"{count} {why}" for why, count in sorted(left_out.items())) + ".",
             "",
             "A test counts for every operator in it; the expanded form of an operator counts for those it is made of.",
             "",
             "| operator | passed | of |",
             "|---|---|---|"]
    for operator, tests in by_operator(counted).items():
        lines.append(f"| {operator} | {passed(tests)} | {len(tests)} |")
    lines += ["", "## What does not pass", "", "| test | result | reason |", "|---|---|---|"]
    for outcome in counted:
        if outcome.result != "pass":
            detail = " ".join(outcome.detail.split()).replace("|", "\\|")
            reason = detail if len(detail) <= 160 else detail[:157] + "..."
            lines.append(f"| {outcome.name} | {outcome.result} | {reason} |")
    return "\n".join(lines) + "\n"


def main():
    outcomes = run()
    if sys.argv[1:] == ["--write"]:
        DOCUMENT.write_text(document(outcomes))
        return
    for outcome in outcomes:
        if outcome.result != "pass" and not outcome.foreign:
            print(outcome.name, outcome.result, outcome.detail, sep="\t")
    counted = [outcome for outcome in outcomes if not outcome.foreign]
    print(f"{passed(counted)} of {len(counted)}")


if __name__ == "__main__":
    main()
