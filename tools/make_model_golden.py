#!/usr/bin/env python3
"""Copies of the reference data for tests/golden, small enough to stand in the repository.

  make_model_golden.py ../shared/reference tests/data

models/<name>: the checkpoint and its expected results as they are, for one model of each kind (experts, dense with llama3 RoPE, FP8 blocks).
demo: the first 25 problems with their greedy answers, the problem documents with their perplexities, and the last rows of the stored logits.
"""
import json, pathlib, shutil, struct, sys

MODELS = ("qwen3_moe", "llama", "qwen3_moe-fp8-block")
FILES = ("config.json", "generation_config.json", "model.safetensors", "expected.safetensors", "expected_nvfp4.safetensors", "nvfp4_sha256.json")
LOGIT_ROWS = 12


def read(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    return {name: (t["dtype"], t["shape"], data[8 + size + t["data_offsets"][0]:8 + size + t["data_offsets"][1]]) for name, t in header.items()}


def write(path, tensors):
    header, offset = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values()))


def main(reference, out):
    for model in MODELS:
        (out / "models" / model).mkdir(parents=True, exist_ok=True)
        for name in FILES:
            if (reference / "models" / model / name).exists():
                shutil.copyfile(reference / "models" / model / name, out / "models" / model / name)
    demo = out / "demo"
    demo.mkdir(parents=True, exist_ok=True)
    (demo / "problems.jsonl").write_text("".join((reference / "demo/problems.jsonl").read_text().splitlines(True)[:25]))
    shutil.copyfile(reference / "demo/problem-documents.jsonl", demo / "problem-documents.jsonl")
    for name in ("perplexity.json", "modes.json"):
        figures = json.loads((reference / "demo" / name).read_text())["problem-documents.jsonl"]
        (demo / name).write_text(json.dumps(figures) + "\n")
    expected = read(reference / "demo/expected.safetensors")
    dtype, (rows, vocab), data = expected["logits"]
    write(demo / "expected.safetensors", {"input_ids": expected["input_ids"], "last_logits": (dtype, [LOGIT_ROWS, vocab], data[-LOGIT_ROWS * vocab * 4:])})


main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
