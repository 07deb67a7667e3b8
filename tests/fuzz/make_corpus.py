#!/usr/bin/env python3
"""Writes the seeds of the fuzz targets: small files of every kind, one or two operators each.

  build/venv/bin/python tests/fuzz/make_corpus.py build/release/bin/openrknn     (needs the package zstandard as well)
"""
import io
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import zstandard
from PIL import Image

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))
import random_onnx  # noqa: E402

MOST_BYTES = 6000


def folder(target):
    path = HERE / "corpus" / target
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    return path


def small_networks():
    """Networks of few nodes that together have every operator of the generator."""
    seen = set()
    for seed in range(5000, 5400):
        network = random_onnx.Network(seed)
        if len(network.nodes) > 12:
            continue
        ops = {node.op_type for node in network.nodes}
        data = network.model().SerializeToString()
        if ops - seen and len(data) <= MOST_BYTES:
            seen |= ops
            yield seed, data


def programs(openrknn, networks):
    with tempfile.TemporaryDirectory() as temporary:
        for (seed, data), dtype in zip(networks, ["fp16", "w8a8"] * len(networks)):
            model, program = f"{temporary}/m.onnx", f"{temporary}/m.rknn"
            pathlib.Path(model).write_bytes(data)
            if subprocess.run([openrknn, "build", model, "-o", program, "--target", "rk3588", "--dtype", dtype, "--quiet"],
                              capture_output=True, check=False).returncode == 0:
                yield f"{seed}_{dtype}", pathlib.Path(program).read_bytes()


def opened(container):
    """The form of read_rknn.cpp: description without checksums, then the weights."""
    _, _, at, size, plain, _ = struct.unpack_from("<IIQQQQ", container, 64)
    _, _, weights_at, weights_size, _, _ = struct.unpack_from("<IIQQQQ", container, 128)
    text = zstandard.ZstdDecompressor().decompress(container[at:at + size], max_output_size=plain)
    return struct.pack("<I", len(text)) + text + container[weights_at:weights_at + weights_size]


def main():
    openrknn = sys.argv[1]
    networks = list(small_networks())
    path = folder("import_onnx")
    for seed, data in networks:
        (path / f"{seed}.onnx").write_bytes(data)
    path = folder("read_rknn")
    for name, data in programs(openrknn, networks[:24]):
        form = opened(data)
        if len(form) <= 4 * MOST_BYTES:
            (path / name).write_bytes(form)
    (path / "container").write_bytes(struct.pack("<I", 1 << 31) + data)
    path = folder("read_npy")
    for dtype in ("f4", "f8", "f2", "i1", "u1", "i8", ">i4", "?"):
        stream = io.BytesIO()
        np.save(stream, np.arange(6).reshape(2, 3).astype(dtype))
        (path / dtype.replace(">", "big_").replace("?", "bool")).write_bytes(stream.getvalue())
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asfortranarray(np.ones((2, 3, 4), np.float32)), version=(3, 0))
    (path / "fortran").write_bytes(stream.getvalue())
    path = folder("read_image")
    pixels = np.random.default_rng(1).integers(0, 256, (7, 9, 4), np.uint8)
    for mode, suffixes in (("L", ("png", "jpeg", "bmp")), ("RGB", ("png", "jpeg", "bmp")), ("RGBA", ("png",)), ("P", ("png", "bmp")), ("1", ("png", "bmp")), ("CMYK", ("jpeg",))):
        for suffix in suffixes:
            stream = io.BytesIO()
            Image.fromarray(pixels).convert(mode).save(stream, suffix)
            (path / f"{mode}.{suffix}").write_bytes(stream.getvalue())
    path = folder("read_dataset")
    for name, text in (("plain", b"a.npy b.npy\nc.npy d.npy\n"), ("comment", b"# list\n\n  a.jpg\r\n"), ("strange", b"\0\xff\n\t a\\ b 'c d'\n")):
        (path / name).write_bytes(text)
    path = folder("run_passes")
    for seed in range(8):
        (path / str(seed)).write_bytes(struct.pack("<I", seed) + bytes(range(seed, 64, 3)))
    print({p.name: len(list(p.iterdir())) for p in (HERE / "corpus").iterdir()})


if __name__ == "__main__":
    main()
