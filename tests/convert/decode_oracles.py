"""What `halfbyte quantize` writes, read by the packages it is written for.

  decode_oracles.py PROGRAM [MODEL...]      default: demo

ModelOpt:           its dequantizer gives code * (block scale * weight_scale_2); its quantizer makes the same bytes from the source's weights (--ws2 cpu).
compressed-tensors: parses the configuration, finds a scheme for every module by its own matching, and its decompressors give the values of ModelOpt's form.
transformers:       the decoded weights in an FP32 run give the logits that the program has from the packed ones.
"""
import json, os, subprocess, sys, tempfile
import torch
from safetensors.torch import load_file, save_file
from compressed_tensors.compressors import BaseCompressor
from compressed_tensors.quantization import QuantizationConfig
from compressed_tensors.utils.match import is_match, match_targets
from modelopt.torch.quantization.qtensor import NVFP4QTensor

PROGRAM, MODELS = sys.argv[1], sys.argv[2:] or ["demo"]
LINEAR = torch.nn.Linear(1, 1)
E2M1 = torch.tensor([0, .5, 1, 1.5, 2, 3, 4, 6, -0., -.5, -1, -1.5, -2, -3, -4, -6])
checked = 0


def run(*args): subprocess.run([PROGRAM, *map(str, args), "-q"], check=True, capture_output=True, text=True)


def folder_of(model): return os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../models/demo") if model == "demo" else model


def read(folder):
    tensors = {}
    for f in sorted(os.listdir(folder)):
        if f.endswith(".safetensors") and f.startswith("model"): tensors.update(load_file(f"{folder}/{f}"))
    return tensors


def want(ok, what):
    global checked
    checked += 1
    if not ok: sys.exit(f"decode_oracles: {what}")


def codes_of(packed): return torch.stack((packed & 15, packed >> 4), -1).reshape(packed.shape[0], -1).long()


def by_hand(packed, scale, ws2):
    """The definition, in FP32."""
    return E2M1[codes_of(packed)] * (scale.float() * ws2).repeat_interleave(16, 1)


def modelopt(folder):
    """All weights in FP32; NVFP4 ones by ModelOpt's dequantizer."""
    t, out = read(folder), {}
    for name in sorted(t):
        if name.endswith((".weight_scale", ".weight_scale_2", ".weight_scale_inv", ".input_scale")): continue
        stem = name.removesuffix(".weight")
        if stem + ".weight_scale_2" in t:
            packed, scale, ws2 = t[name], t[stem + ".weight_scale"], t[stem + ".weight_scale_2"]
            shape = torch.Size((packed.shape[0], packed.shape[1] * 2))
            out[name] = NVFP4QTensor(shape, torch.float32, packed).dequantize(scale=scale, double_scale=ws2, block_sizes={-1: 16})
            want(torch.equal(out[name], by_hand(packed, scale, ws2)), f"{name}: ModelOpt decodes other values")
        elif t[name].dtype != torch.float8_e4m3fn: out[name] = t[name].float()
    return out


def requantized(source, folder):
    """ModelOpt's quantizer on the source's weights: the bytes that were written with --ws2 cpu."""
    t = read(folder)
    for stem in (n.removesuffix(".weight_scale_2") for n in t if n.endswith(".weight_scale_2")):
        w, ws2 = source[stem + ".weight"], t[stem + ".weight_scale_2"]
        if w.dtype != torch.bfloat16 or not w.any(): continue  # a matrix of zeros has NaN scales there
        q, scale, _ = NVFP4QTensor.quantize(w, 16, weights_scaling_factor_2=ws2)
        want(torch.equal(q._quantized_data, t[stem + ".weight"]) and torch.equal(scale.view(torch.uint8), t[stem + ".weight_scale"].view(torch.uint8)), f"{stem}: ModelOpt makes other bytes")
        pair = [w] + [source[stem.replace(a, b) + ".weight"] for a, b in (("gate_proj", "up_proj"), ("up_proj", "gate_proj"), ("w1", "w3"), ("w3", "w1")) if stem.endswith(a)]
        want(torch.equal(torch.stack([NVFP4QTensor.get_weights_scaling_factor_2(x) for x in pair]).max(), ws2), f"{stem}: another weight_scale_2")


def compressed(folder, source):
    """All weights as compressed-tensors decompresses them."""
    t, out, groups = read(folder), {}, {}
    section = json.load(open(f"{folder}/config.json"))["quantization_config"]
    config = QuantizationConfig.model_validate({k: v for k, v in section.items() if k != "producer"})
    schemes = {target: scheme for scheme in config.config_groups.values() for target in scheme.targets}
    for name in sorted(t):
        stem, _, part = name.rpartition(".")
        if part not in ("weight", "weight_packed") or t[name].dim() != 2 or "embed" in stem: 
            if part == "weight": out[name] = t[name].float()
            continue
        matched = [] if is_match(stem, LINEAR, config.ignore) else match_targets(stem, LINEAR, schemes)
        kind = "plain" if not matched else schemes[matched[0]].format
        have = "nvfp4-pack-quantized" if part == "weight_packed" else "float-quantized" if t[name].dtype == torch.float8_e4m3fn else "plain"
        if have == "float-quantized" and t[stem + ".weight_scale"].dtype == torch.uint8: have = "mxfp8-quantized"
        want(str(getattr(kind, "value", kind)) == have, f"{stem}: stored as {have}, described as {kind}")
        groups[have] = groups.get(have, 0) + 1
        if have == "plain": out[name] = t[name].float(); continue
        scheme, compressor = schemes[matched[0]], BaseCompressor.get_value_from_registry(have)
        state = {n.removeprefix(stem + "."): v for n, v in t.items() if n.startswith(stem + ".")}
        missing = [p for p in compressor.compression_param_names(scheme) if p not in state]
        want(not missing, f"{stem}: no {missing}")
        if have == "nvfp4-pack-quantized": want(state["weight_global_scale"].shape == (1,) and ("input_global_scale" in state) == (scheme.input_activations is not None), f"{stem}: shapes of scalars")
        out[stem + ".weight"] = compressor.decompress(state, scheme)["weight"].float()
        if have == "float-quantized":
            scale, (rows, cols) = state["weight_scale"].float(), state["weight"].shape
            if scheme.weights.block_structure:
                bn, bk = scheme.weights.block_structure
                scale = scale.repeat_interleave(bn, 0)[:rows].repeat_interleave(bk, 1)[:, :cols]
            want(torch.allclose(out[stem + ".weight"], state["weight"].float() * scale, rtol=2 ** -8, atol=0), f"{stem}: other FP8 values")
    print(f"  compressed-tensors: {', '.join(f'{n} modules {k}' for k, n in sorted(groups.items()))}")
    return out


def run_in_transformers(model, folder, weights):
    """Logits of FP32 weights in transformers against the program's from the packed file."""
    from transformers import AutoModelForCausalLM
    ids = [[(7 * i * i + 3 * i + 5) % 200 + 20 for i in range(40)]]
    with tempfile.TemporaryDirectory() as d:
        config = json.load(open(f"{folder_of(model)}/config.json"))
        config.pop("quantization_config", None)
        json.dump(config, open(f"{d}/config.json", "w"))
        save_file({k: v.contiguous() for k, v in weights.items()}, f"{d}/model.safetensors", metadata={"format": "pt"})
        reference = AutoModelForCausalLM.from_pretrained(d, dtype=torch.float32).eval()
        with torch.no_grad(): expected = reference(torch.tensor(ids)).logits[0]
        json.dump(ids, open(f"{d}/t.json", "w"))
        run("eval", "logits", "--model", folder, "--tokens", f"{d}/t.json", "--out", f"{d}/o.safetensors", "--quantization", "w4a16", "--device", "reference", "--exact")
        got = load_file(f"{d}/o.safetensors")["logits.0"]
    error = float((got - expected).abs().max() / expected.abs().max())
    want(error < 1e-4, f"logits differ from transformers' by {error:.1e} of the largest")
    print(f"  transformers: logits within {error:.1e} of the largest")


for model in MODELS:
    print(f"decode_oracles: {model}")
    source = read(folder_of(model))
    fp8 = any(v.dtype == torch.float8_e4m3fn for v in source.values())
    with tempfile.TemporaryDirectory() as d:
        for args in (["--ws2", "cpu"], ["--ws2", "cuda"], ["--scale-search", "4over6"], ["--scale-search", "sweep"], ["--contract", "online"]):
            name = "-".join(args).strip("-")
            run("quantize", "--model", model, "--out", f"{d}/m-{name}", *args)
            run("quantize", "--model", model, "--out", f"{d}/c-{name}", "--format", "compressed-tensors", *args)
            theirs, ours = modelopt(f"{d}/m-{name}"), compressed(f"{d}/c-{name}", source)
            written = read(f"{d}/m-{name}")
            packed = [k for k in theirs if k.removesuffix(".weight") + ".weight_scale_2" in written]
            for k in packed:
                # Their decompressor rounds to BF16, and 1 / (1 / weight_scale_2) rounds twice.
                want(torch.allclose(ours[k], theirs[k], rtol=2 ** -8 + 1e-6, atol=0), f"{k}: compressed-tensors decodes other values")
            if args == ["--ws2", "cpu"] and not fp8: requantized(source, f"{d}/m-{name}")
            print(f"  {' '.join(args)}: {len(packed)} NVFP4 matrices decode to the same values")
            if args[0] == "--contract" and not fp8: run_in_transformers(model, f"{d}/m-{name}", theirs)
print(f"decode_oracles: {checked} checks passed")
