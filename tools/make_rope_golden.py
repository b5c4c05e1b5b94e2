#!/usr/bin/env python3
"""Writes tests/data/model/rope.json: rotary frequencies and attention factors from transformers' own modeling_rope_utils.py.

  make_rope_golden.py .../transformers/modeling_rope_utils.py tests/data/model/rope.json

The file is run as it is over numpy instead of torch (it needs arange, where and clamp in FP32), so that no torch has to be installed.
"""
import json, pathlib, sys, types
import numpy as np


class Tensor(np.ndarray):
    def to(self, device=None, dtype=None):
        return self if dtype is None else self.astype(dtype)


torch = types.ModuleType("torch")
torch.float = torch.float32 = np.float32
torch.int64 = np.int64
torch.arange = lambda *a, dtype=np.int64, **k: np.arange(*a, dtype=dtype).view(Tensor)
torch.where = lambda c, a, b: np.where(c, a, b).view(Tensor)
torch.clamp = lambda x, a, b: np.clip(x, a, b)


def rope_functions(path):
    module = types.ModuleType("modeling_rope_utils")
    source = pathlib.Path(path).read_text()
    source = source.replace("from .utils import is_torch_available, logging", "is_torch_available = lambda: True\nimport logging; logging.get_logger = logging.getLogger")
    sys.modules["torch"] = torch
    exec(compile(source, path, "exec"), module.__dict__)
    return module


class Config:
    """What the functions read of a configuration."""
    def __init__(self, fields):
        self.__dict__.update(fields)
        self.rope_parameters = dict(fields["rope_parameters"])
    def standardize_rope_params(self): pass


def case(name, kind, head_dim, theta, max_positions, **parameters):
    rope = {"rope_type": kind, "rope_theta": theta, **parameters}
    return {"name": name, "config": {"hidden_size": head_dim * 4, "num_attention_heads": 4, "head_dim": head_dim, "max_position_embeddings": max_positions, "rope_parameters": rope}}


CASES = [
    case("Llama 3.1", "llama3", 128, 500000.0, 131072, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=8192),
    case("Llama 3.2", "llama3", 64, 500000.0, 131072, factor=32.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=8192),
    case("Qwen3 with YaRN", "yarn", 128, 1000000.0, 131072, factor=4.0, original_max_position_embeddings=32768),
    case("DeepSeek-V3", "yarn", 64, 10000.0, 163840, factor=40.0, beta_fast=32, beta_slow=1, mscale=1.0, mscale_all_dim=1.0, original_max_position_embeddings=4096),
    case("DeepSeek-V2-Lite, other mscale", "yarn", 64, 10000.0, 163840, factor=40.0, beta_fast=32, beta_slow=1, mscale=1.0, mscale_all_dim=0.707, original_max_position_embeddings=4096),
    case("gpt-oss", "yarn", 64, 150000.0, 131072, factor=32.0, beta_fast=32.0, beta_slow=1.0, truncate=False, original_max_position_embeddings=4096),
    case("YaRN with a factor of its own", "yarn", 32, 10000.0, 8192, factor=16.0, attention_factor=1.25, original_max_position_embeddings=512),
    case("YaRN over half a head", "yarn", 128, 1000000.0, 65536, factor=2.0, partial_rotary_factor=0.5, original_max_position_embeddings=32768),
    case("linear", "linear", 128, 10000.0, 16384, factor=4.0),
]

functions = rope_functions(sys.argv[1]).ROPE_INIT_FUNCTIONS
out = []
for c in CASES:
    frequencies, factor = functions[c["config"]["rope_parameters"]["rope_type"]](Config(c["config"]))
    assert frequencies.dtype == np.float32
    out.append({**c, "inv_freq": [float(f) for f in frequencies], "attention_factor": float(factor)})
pathlib.Path(sys.argv[2]).write_text("[\n" + ",\n".join(json.dumps(c) for c in out) + "\n]\n")
