"""The NPU's arithmetic in numpy, written from the description in docs/ARITHMETIC.md and not from the kernels: whole
numbers in int64, one formula a function. Tasks come from the tasks.json of `openrknn run --dump`."""
import json
import pathlib

import numpy as np


def rne(p, shift):
    """p / 2^shift, ties to even."""
    p = np.asarray(p, np.int64)
    shift = np.asarray(shift, np.int64)
    half = np.where(shift > 0, np.int64(1) << np.maximum(shift - 1, 0), 0)
    q = (p + half) >> shift
    tie = (shift > 0) & ((p & ((np.int64(1) << shift) - 1)) == half)
    return np.where(tie & (q & 1 == 1), q - 1, q)


def saturate(v, bits):
    return np.clip(v, -(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def windows(x, attributes, kernel, pad_value):
    """[N, C, OH, OW, KH, KW] views of the padded input."""
    top, left, bottom, right = attributes["pad"]
    x = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=pad_value)
    dh, dw = attributes["dilation"]
    sh, sw = attributes["stride"]
    reach = ((kernel[0] - 1) * dh + 1, (kernel[1] - 1) * dw + 1)
    view = np.lib.stride_tricks.sliding_window_view(x, reach, axis=(2, 3))
    return view[:, :, ::sh, ::sw, ::dh, ::dw]


def as_4d(x):
    """[N, C] and [N, C, L] as cubes (N, C, 1, 1) and (N, C, 1, L)."""
    if x.ndim == 4:
        return x
    return x.reshape(x.shape + (1, 1)) if x.ndim == 2 else x.reshape(x.shape[0], x.shape[1], 1, -1)


def output_stage(v, requant):
    """v in int64 to int8."""
    product = v * requant["multiplier"]
    if requant["zero_point_before_rounding"]:
        y = rne(product + (requant["zero_point"] << requant["shift"]), requant["shift"])
    else:
        y = rne(product, requant["shift"]) + requant["zero_point"]
    return saturate(y, 8).astype(np.int8)


def table_lookup(v, table, values):
    x = np.clip(rne(v * table["index_scale"], table["index_shift"]), -16384, 16384)
    negative = x < 0
    d = np.where(negative, x + 16384, x)
    i, f = d >> 5, d & 31
    half = values.astype(np.int64)
    low = np.where(negative, half[0][i], half[1][i])
    high = np.where(negative, half[0][np.minimum(i + 1, 512)], half[1][np.minimum(i + 1, 512)])
    return low + ((high - low) * f >> 5)


class Dump:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        data = json.loads((self.folder / "tasks.json").read_text())
        self.tensors, self.tasks, self.profile = data["tensors"], data["tasks"], data["profile"]

    def array(self, entry):
        return np.load(self.folder / entry["file"])

    def tensor(self, name):
        return self.array(self.tensors[name])

    # ------------------------------------------------------------------------------------------------ convolutions

    def accumulators(self, task, x):
        """Exact sums of x * (w - zero point of w) plus the folded bias, int64 [N, OC, OH, OW]."""
        weights = task["weights"]
        w = self.array(weights).astype(np.int64)
        zero = np.broadcast_to(np.asarray(weights.get("zero_point", 0), np.int64).reshape(-1), (w.shape[0],))
        view = windows(x.astype(np.int64), task["attributes"], w.shape[2:], task["attributes"]["pad_value"])
        group = task["attributes"].get("group", 1)
        ocs, ics = w.shape[0] // group, w.shape[1]
        parts = []
        for g in range(group):
            part = view[:, g * ics:(g + 1) * ics]
            taps = w[g * ocs:(g + 1) * ocs] - zero[g * ocs:(g + 1) * ocs, None, None, None]
            parts.append(np.einsum("nchwij,ocij->nohw", part, taps))
        bias = self.array(task["bias_folded"]).astype(np.int64)
        return np.concatenate(parts, 1) + bias[None, :, None, None]

    def first_stage(self, acc, requant):
        multiplier = requant.get("channel_multiplier")
        if not multiplier:
            return saturate(acc, 32)
        p = acc * np.asarray(multiplier, np.int64)[None, :, None, None]
        shift = np.where(p >= 0, requant["channel_shift"], requant["channel_shift_negative"])
        return saturate(rne(p, shift), 32)

    def operand(self, x, entry):
        return rne((x.astype(np.int64) + entry["offset"]) * entry["multiplier"], entry["shift"])

    def activate(self, v, activation):
        kind = activation.get("kind", "linear") if activation else "linear"
        if kind == "clamp":
            return np.clip(v, activation["min"], activation["max"])
        if kind == "table":
            return table_lookup(v, activation["table"], self.array(activation["table"]))
        if kind == "linear":
            return v
        raise NotImplementedError(kind)

    def conv_int8(self, task):
        x = as_4d(self.tensor(task["inputs"][0]))
        v = self.first_stage(self.accumulators(task, x), task["requant"])
        if len(task["inputs"]) > 1:
            v = v + self.operand(as_4d(self.tensor(task["inputs"][1])), as_list(task["operand"])[0])
        return output_stage(self.activate(v, task.get("activation")), task["requant"])

    def conv_half(self, task):
        """Groups of products summed exactly, one rounding to fp32 each, added in fp32 in the order slice, kh, kw."""
        x = as_4d(self.tensor(task["inputs"][0])).astype(np.float64)
        w = self.array(task["weights"]).astype(np.float64)
        view = windows(x, task["attributes"], w.shape[2:], 0.0)
        group = task["attributes"].get("group", 1)
        ocs, ics = w.shape[0] // group, w.shape[1]
        depthwise = ics == 1 and group > 1
        slice_size = 1 if depthwise else self.profile["fp16_group"]
        out = []
        for g in range(group):
            acc = np.zeros((view.shape[0], ocs) + view.shape[2:4], np.float32)
            for begin in range(0, ics, slice_size):
                part = view[:, g * ics + begin:g * ics + min(begin + slice_size, ics)]
                taps = w[g * ocs:(g + 1) * ocs, begin:begin + slice_size]
                for kh in range(w.shape[2]):
                    for kw in range(w.shape[3]):
                        exact = np.einsum("nchw,oc->nohw", part[..., kh, kw], taps[:, :, kh, kw])
                        acc = acc + exact.astype(np.float32)
            out.append(acc)
        v = np.concatenate(out, 1)
        if "bias" in task:
            v = v + self.array(task["bias"]).astype(np.float32)[None, :, None, None]
        if len(task["inputs"]) > 1:
            v = v + as_4d(self.tensor(task["inputs"][1])).astype(np.float32)
        return self.activate_half(v, task.get("activation")).astype(np.float16)

    def activate_half(self, v, activation):
        kind = activation.get("kind", "linear") if activation else "linear"
        if kind == "clamp":
            return np.clip(v, np.float32(activation["min"]), np.float32(activation["max"]))
        if kind == "table":
            return self.table_half(v, activation["table"])
        if kind == "linear":
            return v
        raise NotImplementedError(kind)

    def table_half(self, v, table):
        """The index by one fp32 product, rounded to even; the table's number times its scale; then the table's form."""
        index = np.rint(v * np.float32(table["index_scale"]))
        steps = {"index_scale": 1, "index_shift": 0}
        t = table_lookup(np.clip(index, -16384, 16384).astype(np.int64), steps, self.array(table))
        t = t.astype(np.float32) * np.float32(table["output_scale"])
        forms = {"value": lambda: t, "gate": lambda: v * t, "plus": lambda: np.maximum(v, np.float32(0)) + t}
        return forms[table["form"]]()

    # ---------------------------------------------------------------------------------------------------- the rest

    def pool_windows(self, task, pad_value):
        x = as_4d(self.tensor(task["inputs"][0]))
        attributes = {"dilation": [1, 1], **task["attributes"]}
        return windows(x, attributes, attributes["kernel"], pad_value)

    def max_pool(self, task):
        dtype = self.tensor(task["inputs"][0]).dtype
        return self.pool_windows(task, np.iinfo(dtype).min if dtype.kind == "i" else -np.inf).max(axis=(4, 5))

    def average_pool_int8(self, task):
        """The quotient half away from zero; at exact halves of an even count it steps back in the cases measured."""
        kh, kw = task["attributes"]["kernel"]
        n = kh * kw
        total = self.pool_windows(task, task["attributes"]["pad_value"]).astype(np.int64).sum(axis=(4, 5))
        sign = np.where(total < 0, -1, 1)
        magnitude = np.abs(total)
        q = (magnitude + n // 2) // n
        tie = (n % 2 == 0) & (np.abs(magnitude - q * n) == n // 2)
        inexact = 65536 % kw != 0 or 65536 % kh != 0
        q = np.where(tie & (inexact | (q % 2 == 1)), q - 1, q)
        return (sign * q).astype(np.int8)

    def average_pool_half(self, task):
        """fp32 sums over rows, then columns; one factor an axis; one rounding at the end."""
        view = self.pool_windows(task, 0).astype(np.float32)
        kh, kw = task["attributes"]["kernel"]
        total = np.zeros(view.shape[:4], np.float32)
        for h in range(kh):
            for w in range(kw):
                total = total + view[..., h, w]
        return (total * np.float32(np.float16(1 / kw)) * np.float32(np.float16(1 / kh))).astype(np.float16)

    def elementwise_int8(self, task):
        """Each operand brought to a common scale (Mul: only its zero point taken off), then one output stage."""
        entries = as_list(task["operand"])
        a, b = (self.operand(self.tensor(name), entry) for name, entry in zip(task["inputs"], entries))
        v = {"Add": a + b, "Sub": a - b, "Mul": a * b}[task["op"]]
        return output_stage(self.activate(v, task.get("activation")), task["requant"])

    def elementwise_half(self, task):
        a, b = (self.tensor(name).astype(np.float32) for name in task["inputs"])
        v = {"Add": a + b, "Sub": a - b, "Mul": a * b}[task["op"]]
        return self.activate_half(v, task.get("activation")).astype(np.float16)

    def recompute(self, task):
        """The first output of a task, or NotImplementedError."""
        if task["engine"].lower() != "npu":
            raise NotImplementedError("CPU task")
        dtype = self.tensors[task["outputs"][0]]["dtype"]
        if dtype not in ("int8", "float16"):
            raise NotImplementedError(dtype)
        op, half = task["op"], dtype == "float16"
        if op == "Conv":
            return self.conv_half(task) if half else self.conv_int8(task)
        if op == "MaxPool":
            return self.max_pool(task)
        if op == "AveragePool":
            return self.average_pool_half(task) if half else self.average_pool_int8(task)
        if op in ("Add", "Sub", "Mul"):
            return self.elementwise_half(task) if half else self.elementwise_int8(task)
        if op in ("Reshape", "Flatten", "Squeeze", "Unsqueeze"):
            return self.tensor(task["inputs"][0])
        raise NotImplementedError(task["op"])


def as_list(entry):
    return entry if isinstance(entry, list) else [entry]
