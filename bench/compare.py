#!/usr/bin/env python3
"""Speed beside onnxruntime: the simulator in int8 and fp16 and the golden run, against onnxruntime with uint8 QDQ and
with fp32, on the networks of tests/python/networks.py.

    build/venv/bin/python bench/compare.py [--binary build/release/bin/openrknn] [--threads 1 2] [NETWORK...]

Everything takes and gives floats. The contestants take turns, `--rounds` times, and the least time of each counts:
a machine that others use slows all of them alike. onnxruntime quantizes with quantize_static: uint8 activations, int8
weights per channel, the form that it runs fastest on x86. Models and programs are kept in `--cache`."""
import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import time

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/python"))

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnx.version_converter  # noqa: E402
import onnxruntime  # noqa: E402
import pytest  # noqa: E402

from networks import NETWORKS, bind, only_input  # noqa: E402

SAMPLES = 4  # for both calibrations
ENGINES = ("int8", "fp16", "golden", "ort_u8", "ort_fp32")
RATIOS = (("int8", "ort_u8"), ("golden", "ort_fp32"), ("fp16", "golden"))  # the first one's speed in the second's


def command(*arguments):
    done = subprocess.run(list(map(str, arguments)), capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, arguments[:4]))}: {done.stderr[-400:].strip()}")
    return done.stdout


def session(path, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.add_session_config_entry("session.intra_op.allow_spinning", "1" if threads > 1 else "0")
    options.add_session_config_entry("session.force_spinning_stop", "1")  # idle while others run
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def quantized_by_onnxruntime(network, path, folder):
    from onnxruntime import quantization
    from onnxruntime.quantization.shape_inference import quant_pre_process
    target = folder / f"{network.name}.u8.onnx"
    if target.is_file():
        return target
    name = only_input(session(path, 1))

    class Reader(quantization.CalibrationDataReader):
        def __init__(self):
            self.left = [{name: network.sample(i)} for i in range(SAMPLES)]

        def get_next(self):
            return self.left.pop() if self.left else None

    prepared = folder / f"{network.name}.prepared.onnx"
    model = onnx.load(str(path))
    if next(o.version for o in model.opset_import if o.domain in ("", "ai.onnx")) < 13:  # no scales per channel there
        model = onnx.version_converter.convert_version(model, 13)
    for value in model.graph.input:
        if value.name == name:
            value.CopyFrom(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, network.shape))
    onnx.save(model, str(prepared))
    quant_pre_process(str(prepared), str(prepared), skip_symbolic_shape=True)

    def quantize(**extra_options):
        quantization.quantize_static(str(prepared), str(target), Reader(), per_channel=True,
                                     quant_format=quantization.QuantFormat.QDQ,
                                     activation_type=quantization.QuantType.QUInt8,
                                     weight_type=quantization.QuantType.QInt8, extra_options=extra_options)

    try:
        quantize()
    except ValueError:  # it adjusts weights to their biases, but not those of a Gemm that are scaled by channel
        quantize(QDQDisableWeightAdjustForInt32Bias=True)
    return target


class Network:
    """The files of one network and its contestants."""

    def __init__(self, network, options):
        self.network, self.options = network, options
        folder = options.cache
        self.model = network.file(folder)
        self.sample = network.sample(0)
        self.sample_file = folder / f"{network.name}.npy"
        np.save(self.sample_file, self.sample)
        names = []
        for i in range(SAMPLES):
            np.save(folder / f"{network.name}.{i}.npy", network.sample(i))
            names.append(f"{network.name}.{i}.npy\n")
        (folder / f"{network.name}.txt").write_text("".join(names))
        self.programs = {}
        for label, dtype in (("int8", "w8a8"), ("fp16", "fp16")):
            program = folder / f"{network.name}.{label}.rknn"
            if options.rebuild or not program.is_file():
                command(options.binary, "build", self.model, "-o", program, "--target", "rk3588", "--dtype", dtype,
                        "--dataset", folder / f"{network.name}.txt", *bind(network, self.model), "--quiet")
            self.programs[label] = program
        self.sessions, self.failures, self.repeats = {}, {}, {}
        self.sources = {"ort_fp32": self.model}
        try:
            self.sources["ort_u8"] = quantized_by_onnxruntime(network, self.model, folder)
            session(self.sources["ort_u8"], 1)
        except Exception as error:  # its quantizer refuses some models
            self.failures["ort_u8"] = str(error)[:200]

    def once(self, engine, threads):
        """The least time of a run within one turn, in ms."""
        if engine.startswith("ort"):
            return self.onnxruntime_turn(engine, threads)
        file = self.model if engine == "golden" else self.programs[engine]
        repeat = self.repeats.get(engine, 3)
        text = command(*self.options.prefix, self.options.binary, "bench", file, "--input", self.sample_file,
                       "--repeat", repeat, "--threads", threads, "--json", "-", "--quiet")
        report = json.loads(text)
        best = report["min_ms"] + report.get("input_ms", 0) + report.get("output_ms", 0)
        self.repeats[engine] = max(3, min(1000, int(self.options.turn_ms / best)))
        return best

    def onnxruntime_turn(self, engine, threads):
        if engine not in self.sources:
            return math.inf
        key = engine, threads
        if key not in self.sessions:
            self.sessions[key] = session(self.sources[engine], threads)
        run, feeds = self.sessions[key], {only_input(self.sessions[key]): self.sample}
        best, start, runs = math.inf, time.perf_counter(), 0
        while runs < 3 or time.perf_counter() - start < self.options.turn_ms / 1000:
            before = time.perf_counter()
            run.run(None, feeds)
            best = min(best, time.perf_counter() - before)
            runs += 1
        return best * 1000


def measure(network, options):
    contest = Network(network, options)
    result = {"network": network.name, "trained": network.trained, "failures": contest.failures, "threads": {}}
    for threads in options.threads:
        best = {engine: math.inf for engine in options.engines}
        for _ in range(options.rounds):
            for engine in options.engines:
                best[engine] = min(best[engine], contest.once(engine, threads))
        result["threads"][threads] = best
    return result


def ratio(times, ours, theirs):
    if ours not in times or theirs not in times or not math.isfinite(times[theirs]):
        return None
    return times[theirs] / times[ours]


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def table(results, threads, engines):
    pairs = [(a, b) for a, b in RATIOS if a in engines and b in engines]
    heads = [f"{a}:{b}" for a, b in pairs]
    lines = [f"{threads} thread(s), ms; ratios are speeds",
             f"{'network':22}" + "".join(f"{e:>10}" for e in engines) + "".join(f"{h:>17}" for h in heads)]

    def row(name, cells, ratios):
        return f"{name:22}" + "".join(f"{c:10.3f}" if c is not None else f"{'':10}" for c in cells) + \
            "".join(f"{r:17.2f}" if r is not None else f"{'-':>17}" for r in ratios)

    for result in results:
        times = result["threads"][threads]
        lines.append(row(result["network"], [times[e] for e in engines], [ratio(times, *p) for p in pairs]))
    for title, chosen in (("mean, trained", [r for r in results if r["trained"]]), ("mean, all", results)):
        means = [geometric_mean([v for r in chosen if (v := ratio(r["threads"][threads], *p))]) for p in pairs]
        lines.append(row(title, [None] * len(engines), means))
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network", nargs="*", help="default: all")
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "build/release/bin/openrknn")
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--turn-ms", type=int, default=150, help="how long a contestant repeats its run in one turn")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--cache", type=pathlib.Path, default=ROOT / "build/bench")
    parser.add_argument("--rebuild", action="store_true", help="build the programs again")
    parser.add_argument("--trained", action="store_true", help="only networks with trained weights")
    parser.add_argument("--json", type=pathlib.Path, help="write the figures there too")
    parser.add_argument("--prefix", nargs="+", default=[], help="before our command, for example nice -n -5")
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    known = {network.name: network for network in NETWORKS}
    if unknown := set(options.network) - set(known):
        parser.error(f"unknown networks {sorted(unknown)}; known are {', '.join(known)}")
    results = []
    for name in options.network or known:
        if options.trained and not known[name].trained:
            continue
        try:
            results.append(measure(known[name], options))
        except pytest.skip.Exception as skipped:
            print(f"{name}: skipped: {skipped}", file=sys.stderr)
        except RuntimeError as error:
            print(f"{name}: {error}", file=sys.stderr)
    for threads in options.threads:
        print(table(results, threads, options.engines) + "\n")
    for result in results:
        for engine, why in result["failures"].items():
            print(f"{result['network']}: no {engine}: {why}")
    if options.json:
        versions = {"onnxruntime": onnxruntime.__version__, "numpy": np.__version__}
        machine = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if "model name" in line), "")
        options.json.write_text(json.dumps({"machine": machine, "versions": versions, "results": results}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
