#!/usr/bin/env python3
"""Writes tests/data/checkpoint/*.listing: what Python's safetensors library sees in a model's files, one tensor a line
(name, dtype, shape, FNV-1a-64 of the data), by file and then by offset. The C++ reader is compared with it.

    tools/make_listings.py OUT FOLDER...      FOLDER: a model folder; the listing is named after its last component"""
import glob, json, os, struct, sys
from safetensors import safe_open


def fnv(data):
    h = 0xCBF29CE484222325
    for b in data: h = (h ^ b) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{h:016x}"


def listing(folder):
    index = os.path.join(folder, "model.safetensors.index.json")
    files = sorted(set(json.load(open(index))["weight_map"].values())) if os.path.exists(index) else ["model.safetensors"]
    for name in files:
        path = os.path.join(folder, name)
        raw = open(path, "rb").read(); n = struct.unpack("<Q", raw[:8])[0]; header = json.loads(raw[8:8 + n])
        with safe_open(path, "np") as f:  # the library checks the file; its view of shapes and dtypes is what is written
            order = sorted(f.keys(), key=lambda k: (*header[k]["data_offsets"], k))
            for k in order:
                s = f.get_slice(k); begin, end = header[k]["data_offsets"]
                yield f"{k} {s.get_dtype()} {list(s.get_shape())} {fnv(raw[8 + n + begin:8 + n + end])}".replace(", ", ",")


out = sys.argv[1]
for folder in sys.argv[2:]:
    with open(os.path.join(out, os.path.basename(folder.rstrip("/")) + ".listing"), "w") as f: f.write("\n".join(listing(folder)) + "\n")
