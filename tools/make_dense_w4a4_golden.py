#!/usr/bin/env python3
"""Logits of the producers' checkpoint modelopt-nvfp4-all with static W4A4 everywhere (modelopt_fp4), by transformers in FP32 and the reference's activation quantizer.

  make_dense_w4a4_golden.py SHARED/reference OUT.safetensors

Dense layers: each matrix quantizes its own input with its own input_scale. Experts: x with the largest input_scale of the layer's gate and up matrices, h (FP32, not rounded)
with the largest of its down matrices. Products in FP32, then times weight_scale_2 and input_scale.
"""
import os, sys
import numpy as np
import torch
from safetensors.torch import load_file, save_file

reference, out = sys.argv[1:]
sys.path.insert(0, os.path.join(reference, "tools"))
import make_models as mm  # noqa: E402
import nvfp4_ref as nv  # noqa: E402

f32 = np.float32
where = os.path.join(reference, "producers", "modelopt-nvfp4-all")
tensors = load_file(os.path.join(where, "model.safetensors"))
model = mm.load(os.path.join(reference, "producers", "source-bf16"))
ids = load_file(os.path.join(where, "expected.safetensors"))["input_ids"]


def weight(name):
    """E2M1 x E4M3 [N, K] without weight_scale_2, and that."""
    codes, scales = tensors[name + ".weight"].numpy(), tensors[name + ".weight_scale"].view(torch.uint8).numpy()
    return nv.decode(codes, scales), f32(tensors[name + ".weight_scale_2"].item())


def static(x, scale):
    codes, scales, _ = nv.act_tensor(np.ascontiguousarray(x, f32), f32(scale))
    return nv.decode(codes, scales)


def product(x, scale, name):
    w, ws2 = weight(name)
    return (static(x, scale) @ w.T) * (ws2 * f32(scale))


def dense(name):
    scale = tensors[name + ".input_scale"].item()
    def forward(x):
        y = product(x.reshape(-1, x.shape[-1]).numpy(), scale, name)
        return torch.from_numpy(y.astype(f32)).reshape(*x.shape[:-1], -1)
    return forward


def experts(layer, count):
    base = f"model.layers.{layer}.mlp.experts."
    of = lambda e, p: f"{base}{e}.{p}_proj"
    largest = lambda parts: max(tensors[of(e, p) + ".input_scale"].item() for e in range(count) for p in parts)
    x_scale, h_scale = largest(("gate", "up")), largest(("down",))
    def forward(hidden, index, weights):
        x = hidden.reshape(-1, hidden.shape[-1]).numpy()
        y = np.zeros(x.shape, f32)
        for e in range(count):
            t, slot = np.nonzero(index.numpy() == e)
            if not len(t): continue
            gate, up = product(x[t], x_scale, of(e, "gate")), product(x[t], x_scale, of(e, "up"))
            h = (gate / (1 + np.exp(-gate)) * up).astype(f32)
            np.add.at(y, t, product(h, h_scale, of(e, "down")) * weights.numpy()[t, slot].astype(f32)[:, None])
        return torch.from_numpy(y).reshape(hidden.shape)
    return forward


for name, module in model.named_modules():
    if name + ".weight_scale" in tensors: module.forward = dense(name)
for i, layer in enumerate(mm.backbone(model)[1]):
    for module in layer.modules():
        if isinstance(getattr(module, "gate_up_proj", None), torch.nn.Parameter): module.forward = experts(i, module.gate_up_proj.shape[0])
with torch.no_grad():
    logits = model(input_ids=ids[None], use_cache=False).logits[0]
save_file({"input_ids": ids.contiguous(), "logits.w4a4_static": logits.float().contiguous()}, out)
print(logits.std().item(), tensors["model.layers.0.self_attn.q_proj.input_scale"])
