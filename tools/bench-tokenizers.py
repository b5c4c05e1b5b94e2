#!/usr/bin/env python3
"""Speed of Hugging Face's tokenizers library on one core, in the form that bench/tokenizer_bench prints for ours.

  pip install tokenizers==0.23.3; TOKENIZERS_PARALLELISM=false python3 tools/bench-tokenizers.py FOLDER TEXTFILE [REPEAT]
"""
import json, os, statistics, sys, time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
from tokenizers import Tokenizer  # noqa: E402  the variable must be set before


def median(repeat, run):
    seconds = []
    for _ in range(repeat):
        start = time.process_time(); run(); seconds.append(time.process_time() - start)
    return statistics.median(seconds)


folder, name = sys.argv[1], sys.argv[2]
repeat = int(sys.argv[3]) if len(sys.argv) > 3 else 5
path, text = os.path.join(folder, "tokenizer.json"), open(name, encoding="utf-8", newline="").read()
size = len(text.encode()) / 1e6
tokenizer = Tokenizer.from_file(path)
ids = tokenizer.encode(text, add_special_tokens=False).ids
lines = text.split("\n")
print(json.dumps({
    "load_seconds": round(median(repeat, lambda: Tokenizer.from_file(path)), 4), "text_mb": round(size, 2), "tokens": len(ids),
    "encode_document_mb_per_second": round(size / median(repeat, lambda: tokenizer.encode(text, add_special_tokens=False)), 1),
    "encode_lines_mb_per_second": round(size / median(repeat, lambda: [tokenizer.encode(l, add_special_tokens=False) for l in lines]), 1),
    "decode_mb_per_second": round(size / median(repeat, lambda: tokenizer.decode(ids, skip_special_tokens=False)), 1)}))
