#!/usr/bin/env python3
"""Writes what Hugging Face's tokenizers makes of small texts with one component at a time, and with small whole tokenizers.

  pip install tokenizers==0.23.3; python3 tools/make-text-golden.py tests/data/text

components.jsonl: the first line lists what goes in, "texts" for normalizers and pre-tokenizers and "tokens" for decoders; every other line
holds "kind", "json" (the component) and "out", what came out for each of them in order. small_tokenizers.jsonl: "json" (the whole file)
and "cases": text, add_special_tokens, ids, decoded, decoded without special tokens. tests/unit/text/components_test.cc reads both.
"""
import itertools, json, os, random, sys
from tokenizers import Tokenizer

TEXTS = [
    "", " ", "a", "Hello, world!", "  two  blanks ", "tabs\tand\nlines\r\n\r\n end\n", "don't can't I'LL we've 'tis ''s", "1234567 12,345.67 x9y",
    "a.b..c!?,;: (x) [y] {z}", "caf\u00e9 cafe\u0301 na\u00efve \u00c5ngstr\u00f6m \ufb01 \u212b", "\u4f60\u597d\uff0c\u4e16\u754c 123 \u3042\u30a2\u4e00",
    "\u0928\u092e\u0938\u094d\u0924\u0947 \u0645\u064e\u0631\u062d\u064e\u0628\u0627", "\U0001f600\U0001f469\u200d\U0001f4bb \u2028\u2029\u00a0\u3000x", "\u0130I\u0131 \u1e9e\u00df \u03a3\u03c2 \u01c5",
    "_snake_case __x__ camelCase HTTPServer", "x\u0000y\u200b\ufeffz\u00ad \ufffd", "\u00b2\u00b3\u00bd \u0663\u0664 \u2167 \u2460 \u0be7", "\u2581a\u2581\u2581b \u0120c",
    "<|end|> a<|end|>b <|end|>\n\n<|end|>", "aaa bbb aaab", "-- \u2014 \u00ab\u00bb \u20ac$ +=<> \u2e43\u2e52", "A\u0301\u0323\u0327 q\u0307\u0323 \u1100\u1161\u11a8 \uac00\u11a7",
    "\ua7cb\u1c89\U00010d50 \U000105d2\u0307 \U00011938", "end with space ", "\n\n\n", "foo123bar foo_bar-baz",
]
REGEXES = [
    r"\d", r"\d+", r"\w+", r"\W+", r"\s+", r"\S+", r"\b", r"\bfoo", r"\h+", r"\R", r"[[:alpha:]]+", r"[[:punct:]]", r"[[:^space:]]+", r"[^[:alnum:]]+", r"[\w&&[^a-f]]+",
    r"[a-z&&[^aeiou]]+", r"[a[bc]]+", r"[^\p{L}\p{N}]+", r"\p{Han}+", r"\p{^L}+", r"\P{L}+", r"\p{Lu}\p{Ll}*", r"[\p{Hiragana}\p{Katakana}]", r"(?i)hello|is", r"(?i:THE|i'll)", r"(?<=a)b",
    r"(?<!a)a", r"a{2}", r"a{,2}b", r"a{1,2}?", r"x*", r"", r"^.", r".$", r"(?m).+", r"(a)\1", r"(?:a|b)++b", r"\x41|\u00e9|\x{4f60}", r"[\x00-\x1f]", r"[^\r\n]+", r"[-a]|[a-]|[]x]", r"\.|\-|\#",
    r"\p{Alphabetic}+", r"\p{Uppercase}+", r"\p{Lowercase}+", r"\p{Punct}+", r"[\d\s]+", r"[\D]+", r"(?>a+)b", r"a(?=\.)|\.(?!\.)", r"\A\S", r"\S\z", r"\p{M}", r"\p{Sc}|\p{Sm}", r"\p{C}", r"[^a-z\u4e00-\u9fff]", r"[\w]+", r"\p{Any}", r"\p{Zs}",
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
]
# As published, beside those that split_pattern.cc knows.
U, W, C = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}", r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
UH, WH, TAIL = f"[{U}&&[^\\p{{Han}}]]", f"[{W}&&[^\\p{{Han}}]]", r"\s*[\r\n]+|\s+(?!\S)|\s+"
REGEXES += [
    rf"[\p{{Han}}]+|[^\r\n\p{{L}}\p{{N}}]?{UH}*{WH}+{C}?|[^\r\n\p{{L}}\p{{N}}]?{UH}+{WH}*{C}?|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{TAIL}",  # Kimi K2
    rf"{C}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{TAIL}",  # Qwen3-Next
    rf"[^\r\n\p{{L}}\p{{N}}]?[{U}]*[{W}]+|[^\r\n\p{{L}}\p{{N}}]?[{U}]+[{W}]*|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{TAIL}",  # Mistral Tekken
    r" ?[^(\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+",  # BLOOM
    r"(\d+(?:_\d+)*|(?<![a-zA-Z])[a-zA-Z]+|\s?[^\sa-zA-Z\d]+)",
]
BEHAVIORS = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]


def split(pattern, behavior, invert=False): return {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}
def byte_level(prefix, regex): return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": regex}
def replace(pattern, content): return {"type": "Replace", "pattern": pattern, "content": content}


NORMALIZERS = [
    *({"type": t} for t in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt", "ByteLevel")),
    {"type": "Prepend", "prepend": "\u2581"}, replace({"String": " "}, "\u2581"), replace({"String": "a"}, ""), replace({"Regex": r"\s{2,}"}, " "), replace({"Regex": "x*"}, "-"),
    *({"type": "Strip", "strip_left": l, "strip_right": r} for l, r in itertools.product((True, False), repeat=2)),
    *({"type": "BertNormalizer", "clean_text": c, "handle_chinese_chars": h, "strip_accents": s, "lowercase": l}
      for c, h, s, l in [(True, True, None, True), (False, False, True, False), (True, False, None, False), (False, True, False, True)]),
    {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}, {"type": "Lowercase"}, {"type": "NFC"}]}, {"type": "Sequence", "normalizers": []},
]
PRE_TOKENIZERS = [
    *(byte_level(p, r) for p, r in itertools.product((True, False), repeat=2)),
    *(split({"String": s}, b, i) for s in (" ", "a", "..") for b in BEHAVIORS for i in (True, False)),
    *(split({"Regex": r"[aeiou]|\d\d"}, b, i) for b in BEHAVIORS for i in (True, False)),
    *(split({"Regex": r}, "Isolated") for r in REGEXES),
    *({"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": s, "split": x} for s in ("always", "first", "never") for x in (True, False)),
    *({"type": "Digits", "individual_digits": i} for i in (True, False)), *({"type": "Punctuation", "behavior": b} for b in BEHAVIORS),
    *({"type": t} for t in ("Whitespace", "WhitespaceSplit", "BertPreTokenizer")), {"type": "CharDelimiterSplit", "delimiter": "a"}, {"type": "FixedLength", "length": 3},
    {"type": "Sequence", "pretokenizers": [split({"Regex": r"\p{N}{1,3}"}, "Isolated"), {"type": "Punctuation", "behavior": "Isolated"}, byte_level(True, True)]},
    {"type": "Sequence", "pretokenizers": [byte_level(False, True), split({"String": "\u0120"}, "MergedWithNext")]},
    {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, {"type": "Metaspace", "replacement": "_", "prepend_scheme": "first", "split": True}]},
]
TOKENS = [
    [], ["a"], ["\u2581Hello", "\u2581wor", "ld", "!"], ["\u0120the", "\u00e4\u00bd", "\u0142", "\u010a", "<|end|>", "\u4f60"], ["<0xE4>", "<0xBD>", "<0xA0>", "x", "<0xFF>", "<0x41>", "<0x4>", "<0xZZ>"],
    ["<0xE4>", "<0xBD>", "y", "<0x20>"], ["un", "##believ", "##able", ".", "do", "n't", "\u2581"], ["low</w>", "est", "er</w>", "</w>"], [" ", " a ", "  ", "b  "], ["\u2581", "\u2581\u2581", "\u2581a\u2581b"],
    ["\u00f0\u0141\u013a", "\u0122"], ["\u00f0\u0141", "a", "\u013a\u0122"],
]
LLAMA_DECODER = {"type": "Sequence", "decoders": [replace({"String": "\u2581"}, " "), {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}
DECODERS = [
    byte_level(True, True), {"type": "ByteFallback"}, {"type": "Fuse"}, replace({"String": "\u2581"}, " "), replace({"Regex": "[a-e]+"}, "_"), LLAMA_DECODER,
    {"type": "Strip", "content": " ", "start": 1, "stop": 0}, {"type": "WordPiece", "prefix": "##", "cleanup": True}, {"type": "WordPiece", "prefix": "##", "cleanup": False}, {"type": "BPEDecoder", "suffix": "</w>"},
    *({"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": s, "split": True} for s in ("always", "first", "never")),
    {"type": "Sequence", "decoders": [{"type": "Fuse"}, replace({"String": "l"}, "L"), {"type": "Strip", "content": "a", "start": 2, "stop": 0}]},
]


def full(model=None, **parts):
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
             "ignore_merges": False, "vocab": {"a": 0}, "merges": [], **(model or {})}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None, "pre_tokenizer": None, "post_processor": None, "decoder": None, "model": model, **parts}


def added(id, content, **flags): return {"id": id, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False, **flags}


def tokenizers():
    letters = list("abcdefghijklmnopqrstuvwxyz ABC123.,<|>\u2581\n'")
    merges = [("a", "b"), ("ab", "c"), ("b", "c"), ("a", "a"), ("aa", "a"), ("e", "n"), ("en", "d"), ("\u2581", "a"), ("\u2581a", "b"), ("l", "l"), ("1", "2"), ("2", "3"), ("12", "3"), ("aa", "ab")]
    vocab = letters + [a + b for a, b in merges]
    plain = dict(vocab={t: i for i, t in enumerate(vocab)}, merges=[list(m) for m in merges])
    n = len(vocab)
    for flags in [dict(zip(("single_word", "lstrip", "rstrip"), f)) for f in itertools.product((False, True), repeat=3)]:
        for normalized in (False, True):
            yield full(plain, added_tokens=[added(n, "<|end|>", special=True, normalized=normalized, **flags), added(vocab.index("end"), "end", normalized=normalized, **flags), added(n + 1, "<|end|>b", normalized=normalized)])
    # The library numbers added tokens itself, in order, from the end of the vocabulary; the files here say the same.
    yield full(plain, normalizer={"type": "Lowercase"}, added_tokens=[added(n, "ABC", normalized=True), added(n + 1, "Cab", normalized=False), added(n + 2, "abc1", normalized=True)])
    yield full(plain, pre_tokenizer={"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": True}, added_tokens=[added(n, "<|end|>", special=True)])
    yield full(plain, normalizer={"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"}, replace({"String": " "}, "\u2581")]}, added_tokens=[added(n, "<|end|>", special=True)])
    unk = {**plain, "vocab": {**plain["vocab"], "<unk>": n}, "unk_token": "<unk>"}
    for fuse in (False, True): yield full({**unk, "fuse_unk": fuse})
    some_bytes = {f"<0x{b:02X}>": n + 1 + i for i, b in enumerate([0xE4, 0xBD, 0xA0, 0xE5, 0xA5, 0xC3, 0xA9])}
    for fuse in (False, True): yield full({**unk, "vocab": {**unk["vocab"], **some_bytes}, "fuse_unk": fuse, "byte_fallback": True})
    yield full({**plain, "vocab": {**plain["vocab"], "hello": n, "aab": n + 1}, "ignore_merges": True}, pre_tokenizer={"type": "Whitespace"})
    words = {t: i for i, t in enumerate(["a", "b", "##a", "##b", "##b</w>", "a</w>", "ab", "##ab</w>", "ab</w>", "<unk>"])}
    yield full({"vocab": words, "merges": [["a", "##b"], ["a", "##b</w>"], ["##a", "##b</w>"]], "continuing_subword_prefix": "##", "end_of_word_suffix": "</w>", "unk_token": "<unk>"},
               pre_tokenizer={"type": "WhitespaceSplit"}, decoder={"type": "BPEDecoder", "suffix": "</w>"})
    special = {"<s>": {"id": "<s>", "ids": [n], "tokens": ["<s>"]}, "</s>": {"id": "</s>", "ids": [n + 1, n], "tokens": ["</s>", "<s>"]}}
    template = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}],
                "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}], "special_tokens": special}
    two = [added(n, "<s>", special=True), added(n + 1, "</s>", special=True)]
    for post in (template, {"type": "Sequence", "processors": [byte_level(True, True), template]}, {"type": "RobertaProcessing", "sep": ["</s>", n + 1], "cls": ["<s>", n], "trim_offsets": True, "add_prefix_space": True},
                 {"type": "BertProcessing", "sep": ["</s>", n + 1], "cls": ["<s>", n]}): yield full(plain, added_tokens=two, post_processor=post)


def line(file, **fields): file.write(json.dumps(fields, ensure_ascii=True, separators=(",", ":")) + "\n")


def main():
    random.seed(7)
    with open(os.path.join(sys.argv[1], "components.jsonl"), "w") as file:
        line(file, texts=TEXTS, tokens=TOKENS)
        for n in NORMALIZERS:
            t = Tokenizer.from_str(json.dumps(full(normalizer=n)))
            line(file, kind="normalizer", json=n, out=[t.normalizer.normalize_str(x) for x in TEXTS])
        for p in PRE_TOKENIZERS:
            t = Tokenizer.from_str(json.dumps(full(pre_tokenizer=p)))
            line(file, kind="pre_tokenizer", json=p, out=[[piece for piece, _ in t.pre_tokenizer.pre_tokenize_str(x)] for x in TEXTS])
        for d in DECODERS:
            t = Tokenizer.from_str(json.dumps(full(decoder=d)))
            # The library crashes on BPEDecoder without tokens.
            line(file, kind="decoder", json=d, out=[t.decoder.decode(x) if x or d["type"] != "BPEDecoder" else "" for x in TOKENS])
    parts = ["a", "b", "c", "ab", "aa", " ", " ", "end", "<|end|>", "\n", "1", "12", "3", "ABC", "\u4f60", "\u00e9", "<s>", "\u2581", "ll", "hello", "x", "."]
    soup = ["".join(random.choice(parts) for _ in range(random.randint(1, 14))) for _ in range(40)]
    with open(os.path.join(sys.argv[1], "small_tokenizers.jsonl"), "w") as file:
        for f in tokenizers():
            t = Tokenizer.from_str(json.dumps(f))
            cases = []
            for x in TEXTS[:10] + TEXTS[18:20] + soup:
                special = len(cases) % 2 == 0
                ids = t.encode(x, add_special_tokens=special).ids
                cases.append([x, special, ids, t.decode(ids, skip_special_tokens=False), t.decode(ids, skip_special_tokens=True)])
            line(file, json=f, cases=cases)


main()
