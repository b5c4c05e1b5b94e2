#!/usr/bin/env python3
"""Writes src/text/unicode_tables.inc: the character properties that Hugging Face's tokenizers sees.

  pip install tokenizers==0.23.3; python3 tools/make-unicode-tables.py [unicode_classes.jsonl] > src/text/unicode_tables.inc

The library itself is the source: its regex engine is asked for the general category of every code point (Unicode 16.0), its
normalizers and character predicates are asked one code point at a time, because each of its Rust crates carries tables of another
Unicode version. Perl knows which code points existed in Unicode 9.0, the version of its normalization crate. With the file named, the
result is compared with those stored classes and a difference stops the script.
"""
import json, subprocess, sys, unicodedata
from tokenizers import Regex, normalizers, pre_tokenizers

CODES = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
ALL = "".join(map(chr, CODES))
CATEGORIES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co Cn".split()
SCRIPTS = "Arabic Bopomofo Cyrillic Devanagari Greek Han Hangul Hebrew Hiragana Katakana Latin Thai".split()


def matched(pattern):
    split = pre_tokenizers.Split(Regex(pattern + "+"), "removed", invert=True)
    return {ord(c) for piece, _ in split.pre_tokenize_str(ALL) for c in piece}


def isolated(pre_tokenizer):
    """The code points that the pre-tokenizer puts into a piece of their own between letters."""
    text = "a".join(c for c in ALL if c != "a")
    return {ord(p) for p, _ in pre_tokenizer.pre_tokenize_str(text) if len(p) == 1 and p != "a"}


def ranges(codes):
    out = []
    for c in sorted(codes):
        # Surrogates are no characters: a range may run over them.
        if out and (out[-1][1] == c - 1 or (out[-1][1] == 0xD7FF and c == 0xE000)): out[-1][1] = c
        else: out.append([c, c])
    return out


def rows(items, per_line):
    for i in range(0, len(items), per_line): print("    " + " ".join(f"{x}," for x in items[i:i + per_line]))


def table(name, codes, comment):
    print(f"// {comment}\nconstexpr CodeRange {name}[] = {{")
    rows([f"{{0x{a:X}, 0x{b:X}}}" for a, b in ranges(codes)], 5)
    print("};\n")


def category_table(category):
    print("// General category, Unicode 16.0: (first code point << 8) + category, until the next row.\nconstexpr uint32_t kCategoryRuns[] = {")
    runs, last = [], None
    for c in range(0x110000):
        if category[c] != last: runs.append(f"0x{(c << 8) + CATEGORIES.index(category[c]):X}"); last = category[c]
    rows(runs, 12)
    print("};\n")


def lowercase_table():
    lower = normalizers.Lowercase()
    print("// Lower case mappings younger than Unicode 14.0: first, last, what is added to get the lower case.\nconstexpr CaseRange kYoungLowercase[] = {")
    out = []
    for c in CODES:
        new = lower.normalize_str(chr(c))
        if len(new) != 1 or new == chr(c).lower(): continue
        delta = ord(new) - c
        if out and out[-1][1] == c - 1 and out[-1][2] == delta: out[-1][1] = c
        else: out.append([c, c, delta])
    rows([f"{{0x{a:X}, 0x{b:X}, {d}}}" for a, b, d in out], 6)
    print("};\n")


def main():
    category = ["Cs"] * 0x110000
    for name in CATEGORIES:
        if name != "Cs":
            for c in matched(rf"\p{{{name}}}"): category[c] = name
    if len(sys.argv) > 1:
        for line in open(sys.argv[1], encoding="utf-8"):
            stored = json.loads(line); name = stored["class"]
            if name.startswith(r"\p{"):
                mine = {c for c in CODES if category[c].startswith(name[3:-1])}
                assert mine == {c for a, b in stored["ranges"] for c in range(a, b + 1) if category[c] != "Cs"}, name
    of = lambda *names: {c for c in CODES if category[c] in names or category[c][0] in names}

    print("// Made by tools/make-unicode-tables.py; do not edit.\n")
    category_table(category)
    table("kOtherAlphabetic", matched(r"\p{Alphabetic}") - of("L", "Nl"), "Alphabetic beside \\p{L} and \\p{Nl}, Unicode 16.0.")
    table("kOtherUppercase", matched(r"\p{Uppercase}") - of("Lu"), "Uppercase beside \\p{Lu}, Unicode 16.0.")
    table("kOtherLowercase", matched(r"\p{Lowercase}") - of("Ll"), "Lowercase beside \\p{Ll}, Unicode 16.0.")
    # What regex_translate.cc builds from these: \w has six Latin-1 numbers more outside brackets than [[:word:]].
    alphabetic = matched(r"\p{Alphabetic}")
    assert matched("[[:word:]]") == matched(r"[\w]") == of("M", "Nd", "Pc") | alphabetic, "[[:word:]]"
    assert matched(r"\w") == matched("[[:word:]]") | set(map(ord, "\u00b2\u00b3\u00b9\u00bc\u00bd\u00be")), "\\w"
    assert matched(r"\d") == of("Nd"), "\\d"
    assert matched("[[:punct:]]") == of("P", "S") and matched("[[:alnum:]]") == alphabetic | of("Nd"), "[[:punct:]]"

    old = subprocess.run(["perl", "-e", r'for (0..0x10FFFF) { print "$_\n" if chr($_) =~ /\p{Present_In: 9.0}/ && !($_ >= 0xD800 && $_ < 0xE000) }'],
                         capture_output=True, text=True, check=True).stdout.split()
    table("kUnicode9", set(map(int, old)), "Code points assigned in Unicode 9.0, the version of the normalization forms.")
    lowercase_table()
    # The crate behind the Punctuation pre-tokenizer knows an older Unicode; ASCII symbols are punctuation there by a rule of their own.
    punctuation = isolated(pre_tokenizers.Punctuation()) - {c for c in range(128)}
    table("kYoungPunctuation", of("P") - {c for c in range(128)} - punctuation, "\\p{P} that the Punctuation pre-tokenizer does not know.")
    table("kOldPunctuation", punctuation - of("P"), "Not \\p{P} any more, but punctuation for that pre-tokenizer.")
    table("kYoungNumeric", isolated(pre_tokenizers.Digits(individual_digits=True)) - of("N"), "Numbers of Unicode 17.0, which the Digits pre-tokenizer knows.")
    for script in SCRIPTS: table(f"k{script}", matched(rf"\p{{{script}}}"), f"Script={script}.")
    print("constexpr Script kScripts[] = {")
    rows([f'{{"{s.lower()}", k{s}}}' for s in SCRIPTS], 4)
    print("};")


main()
