#!/usr/bin/env python3
"""Writes tests/data/checkpoint/every_dtype.safetensors with Python's safetensors library: every element type, a scalar, an empty tensor and a
name that JSON has to escape. The C++ writer must make the same bytes from the same tensors.

    tools/make_writer_golden.py OUT.safetensors"""
import ctypes, sys
from safetensors import TensorSpec, serialize

BYTES = {"uint64": 8, "int64": 8, "float64": 8, "float32": 4, "uint32": 4, "int32": 4, "bfloat16": 2, "float16": 2, "uint16": 2, "int16": 2,
         "float8_e8m0fnu": 1, "float8_e4m3fn": 1, "float8_e5m2": 1, "int8": 1, "uint8": 1, "bool": 1}
kept = []


def spec(dtype, shape, data):
    buffer = ctypes.create_string_buffer(data, max(len(data), 1)); kept.append(buffer)
    return TensorSpec(dtype=dtype, shape=shape, data_ptr=ctypes.addressof(buffer), data_len=len(data))


tensors = {}
for i, (dtype, size) in enumerate(BYTES.items()):
    for name in ("z", "a"): tensors[f"{name}.{dtype}"] = spec(dtype, [1 + i % 3, 2], bytes((i * 7 + k) % 251 for k in range((1 + i % 3) * 2 * size)))
tensors["scalar"] = spec("float32", [], b"\0\0\x80?")
tensors["empty"] = spec("uint8", [0, 16], b"")
tensors["four"] = spec("float4_e2m1fn_x2", [2, 8], bytes(range(16)))
tensors['\xfcn\xefcode "quoted" \\ \x01 /'] = spec("uint8", [3], b"abc")
open(sys.argv[1], "wb").write(serialize(tensors, {"format": "pt"}))
