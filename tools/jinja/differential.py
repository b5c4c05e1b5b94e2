#!/usr/bin/env python3
"""Compares the engine with Python's jinja2 on generated templates.

  differential.py [--program build/release/bin/halfbyte] [--count 20000] [--seed 1] [--corpus cases.jsonl ...] [--show 30]
  differential.py --write tests/data/jinja/generated.jsonl --count 400 --seed 1     golden cases for the unit tests

Each case is rendered by both; they agree when both give the same text or both refuse. --corpus adds mutations of the templates in
files of {"template", "context"} lines. Cases whose text shows an address, and what docs/chat-templates.md names as left out, are skipped.
"""
import argparse
import json
import random
import re
import subprocess
import sys
import warnings

from oracle import render

CONTEXT = {
    "i": 7, "n": -3, "zero": 0, "x": 2.5, "big": 123456789012, "t": True, "f": False, "none_": None, "e": [], "ed": {}, "es": "",
    "s": "  Hello, World!\n", "name": "wörld Ünï", "w": "a-b_c d\te", "digits": "042", "html": "<b>&\"'</b>", "emoji": "x😀y",
    "l": [3, 1, 2], "ls": ["pear", "Apple", "fig", "apple"], "mixed": [1, "a", None, 2.5, True], "nested": [[1, 2], [3], []],
    "d": {"b": 1, "a": "x", "c": {"k": [1, {"z": None}]}}, "pairs": [["k1", 1], ["k2", 2]],
    "rows": [{"n": "a", "v": 3, "ok": True}, {"n": "B", "v": 1, "ok": False}, {"n": "c", "v": 2}],
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi <think>x</think>"},
                 {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": {"p": 1}}}]},
                 {"role": "tool", "content": "42"}, {"role": "user", "content": "Thanks\n"}],
}
NAMES = list(CONTEXT) + ["undef", "q", "loop", "ns"]
TESTS = ["defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "mapping", "sequence", "iterable", "callable", "true", "false",
         "odd", "even", "lower", "upper", "escaped"]
TESTS2 = ["eq", "ne", "lt", "le", "gt", "ge", "in", "sameas", "equalto", "divisibleby", "==", "!=", ">", "<", "greaterthan", "lessthan"]
# What is made of what: (result, pattern). {s} {l} {d} {n} {b} make an expression of that kind, {a} any, {i} a small int.
RULES = {
    "s": ["({s} ~ {a})", "({s} + {s})", "{s}|upper", "{s}|lower", "{s}|title", "{s}|capitalize", "{s}|trim", "{s}|trim({s})", "{a}|string", "{s}|replace({s}, {s})",
          "{s}|replace({s}, {s}, {i})", "{l}|join({s})", "{a}|join", "{l}|join(', ', attribute={at})", "{a}|tojson", "{a}|tojson(indent={i})", "{d}|tojson(sort_keys={b})",
          "{a}|tojson(ensure_ascii=true)", "{a}|tojson(separators=(',', ':'))", "{s}|indent({i})", "{s}|indent({i}, {b}, {b})", "{s}|indent({s}, {b})", "{s}|truncate({i})",
          "{s}|truncate({i}, {b}, '.', {i})", "{s}|center({i})", "{s}|reverse", "{s}|striptags", "{s}|urlencode", "{d}|urlencode", "{s}|wordwrap({p})",
          "{s}|wordwrap({p}, {b})", "{s}|wordwrap({p}, {b}, '/', {b})", "{n}|filesizeformat", "{n}|filesizeformat(true)", "{a}|default({s})", "{a}|default({s}, true)",
          "({s}).strip()", "({s}).strip({s})", "({s}).lstrip()", "({s}).rstrip({s})", "({s}).upper()", "({s}).lower()", "({s}).title()", "({s}).capitalize()", "({s}).swapcase()",
          "({s}).casefold()", "({s}).replace({s}, {s})", "({s}).replace({s}, {s}, {i})", "({s}).join({ls})", "({s}).zfill({i})", "({s}).ljust({i}, '*')", "({s}).rjust({i})",
          "({s}).center({i}, '-')", "({s}).removeprefix({s})", "({s}).removesuffix({s})", "({s}).expandtabs({i})", "({s})[{i}]", "({s} ~ '')[{i}:]", "({s} ~ '')[:{i}]",
          "({s} ~ '')[{i}:{i}:{st}]", "({s} * {i})", "({s} if {b} else {s})", "({s}).split({s})[0]", "({s}).split()[-1]", "({f} % {a})", "({f} % {n})", "({f} % ({a}, {a}))", "({f} % {d})",
          "{f}|format({a})", "{f}|format({a}, {n})", "{sp}.format({a})", "{sp}.format({n})", "{sp}.format({s}, {n})", "{sp}.format({n}, x={a})", "({ls})[{i}]", "{ls}|first", "{ls}|last",
          "{ls}|max", "{ls}|min", "({d}).get({s}, {s})", "{ls}|sort|join", "messages[{i}].role", "messages[{i}].content", "messages[{i}]['content']"],
    "l": ["[{a}, {a}]", "[{n}, {s}, {b}]", "({a}, {n})", "({l} + {l})", "({l} * {i})", "{a}|list", "{d}|list", "{s}|list", "({s}).split({s})", "({s}).split()", "({s}).rsplit({s}, {i})",
          "({s}).split({s}, {i})", "({s}).split(none, {i})", "({s}).rsplit(none, {i})", "({s}).split(maxsplit={i})", "({s}).splitlines()", "({s}).splitlines({b})", "({s}).partition({s})",
          "({s}).rpartition({s})", "({l})[{i}:]", "({l})[:{i}]", "({l})[{i}:{i}]", "({l})[::{st}]", "{l}|batch({p})|list", "{l}|batch({p}, {a})|list", "{l}|slice({p})|list", "{l}|slice({p}, {a})|list",
          "{ln}|sort", "{ls}|sort({b})", "{ls}|sort(case_sensitive={b})", "rows|sort(attribute={at})", "rows|sort({b}, attribute='v,n')", "{l}|unique|list", "{ls}|unique({b})|list",
          "rows|unique(attribute={at})|list", "{l}|map({fl})|list", "{ls}|map('replace', {s}, {s})|list", "rows|map(attribute={at})|list", "rows|map(attribute={at}, default={a})|list",
          "{l}|select|list", "{l}|reject|list", "{l}|select({te})|list", "{l}|reject({te})|list", "{ln}|select({te2}, {n})|list", "rows|selectattr({at})|list", "rows|rejectattr({at})|list",
          "rows|selectattr({at}, {te})|list", "rows|selectattr({at}, {te2}, {a})|list", "rows|rejectattr({at}, {te2}, {a})|list", "messages|selectattr('role', 'equalto', {s})|map(attribute='content')|list",
          "rows|groupby({at})|list", "rows|groupby({at}, default={a})|list", "{d}|dictsort", "{d}|dictsort({b})", "{d}|dictsort(by='value')", "{d}|dictsort({b}, 'key', {b})", "{d}|items|list",
          "({d}).items()|list", "({d}).keys()|list", "({d}).values()|list", "{l}|reverse|list", "range({i})|list", "range({i}, {i}, {st})|list", "({l} if {b} else {l})", "({l}).copy()",
          "nested[{i}]", "{l}|default({l}, {b})", "{nl}|map('sum')|list", "{nl}|map('first')|list", "{nl}|sum(start=[])", "dict({nl})|list", "({d}).items()|map(attribute={i})|list"],
    "d": ["{{{s}: {a}, {n}: {a}}}", "{{'a': {a}, 'k': {n}}}", "({d}).copy()", "dict({d}, z={a})", "dict({nl})", "(rows)[{i}]", "(messages)[{i}]", "d.c", "d['c']", "dict(a={a}, b={a})", "({d} if {b} else {d})",
          "{{1: {a}, true: {s}, 1.0: {n}}}", "{{none: {a}, (1, {n}): {s}}}"],
    "n": ["({n} + {n})", "({n} - {n})", "({n} * {n})", "({n} / {n})", "({n} // {n})", "({n} % {n})", "(-{n})", "(+{n})", "({i} ** {i})", "{a}|length", "{l}|count", "{s}|int", "{s}|int({n}, {p})", "{a}|string|int(7)",
          "{s}|float", "{n}|float", "{n}|int", "{n}|round", "{n}|round({i})", "{n}|round({i}, 'floor')", "{n}|round(0, 'ceil')", "{n}|abs", "{ln}|sum", "{ln}|min", "{ln}|max", "rows|sum(attribute='v')",
          "{ln}|sum(start={n})", "{s}|wordcount", "({s}).find({s})", "({s}).rfind({s}, {i})", "({s}).count({s})", "({s}).count({s}, {i}, {i})", "({s}).index({s})", "({l}).index({a})", "({l}).count({a})",
          "({n} if {b} else {n})", "({i}).bit_length()", "loop.index", "loop.length", "rows|map(attribute='v')|max", "{d}|length", "({ln})[{i}]"],
    "b": ["({a} == {a})", "({n} < {n})", "({n} >= {n})", "({s} < {s})", "({n} != {n})", "({n} < {n} <= {n})", "({s} in {s})", "({a} in {l})", "({a} not in {l})", "({s} in {d})", "(not {a})", "({b} and {b})", "({b} or {b})",
          "({a} is {tn})", "({a} is not {tn})", "({n} is divisibleby {p})", "({n} is odd)", "({n} is even)", "({a} is eq {a})", "({n} is lt {n})", "({s} is in {s})", "({a} is in {l})", "({a} is sameas none)", "({s}).startswith({s})",
          "({s}).endswith({s})", "({s}).startswith({s}, {i})", "({s}).endswith({s}, {i}, {i})", "({s}).startswith(({s}, {s}))", "({s}).isdigit()", "({s}).isalpha()", "({s}).isalnum()", "({s}).isspace()", "({s}).isupper()",
          "({s}).islower()", "({s}).istitle()", "({s}).isidentifier()", "({s}).isascii()", "({s}).isnumeric()", "({s}).isdecimal()", "({s}).isprintable()", "(undef is defined)", "({a}).nope is defined", "({d}).a is defined", "loop.first", "loop.last"],
}
LEAVES = {
    "s": ["s", "name", "w", "digits", "html", "emoji", "es", "''", "'a'", "'ab c'", "\"it's\"", "'x\\n y'", "'ÄÖ ß'", "'a,b,,c'", "' pad '", "'-'", "'Ǆß ŉ'", "'ΑΣ ΣΑΣ'", "q", "messages[1].content", "'-12'", "'3.5e2'", "'0x1F'", "'%'", "'well-known e-mail --x'"],
    "l": ["l", "ls", "mixed", "nested", "e", "pairs", "rows", "[1, 'a']", "[[1, 2], [3, 4]]", "(1, 'b')", "()", "range(3)", "messages", "acc"],
    "d": ["d", "ed", "rows[0]", "{'a': 1, 2: 'b'}", "{'z': {'y': [1]}}", "d.c", "messages[2]", "{}", "{'B': 1, 'a': 2, 'C': none}"],
    "n": ["i", "n", "zero", "x", "big", "1", "0", "-1", "3.0", "0.5", "1e3", "100", "2.675", "1e16", "-7", "0.1", "12345.678", "t"],
    "b": ["t", "f", "true", "false", "none_", "undef", "e", "1"],
    "ls": ["ls", "['b', 'A', 'a']", "s.split()", "'a,B,c'.split(',')", "name|list", "d|list"],
    "ln": ["l", "[1, 2.5, -3]", "[3, 1]", "range(4)", "rows|map(attribute='v')|list", "[t, 2, 0.5]"],
    "nl": ["nested", "pairs", "[[1, 2], [3, 4]]", "[('a', 1), ('b', 2)]"],
}
SMALL = {
    "i": ["0", "1", "2", "3", "5", "12", "-1", "-2"], "p": ["1", "2", "3", "7", "10", "16"], "st": ["1", "2", "-1", "-2"], "at": ["'n'", "'v'", "'ok'", "'n.0'", "'nope'"],
    "tn": TESTS, "te": [repr(t) for t in TESTS if t not in ("odd", "even")], "te2": [repr(t) for t in TESTS2 if t not in ("divisibleby", "in")],
    "fl": [repr(f) for f in ("upper", "string", "length", "first", "last", "list", "tojson", "title", "trim", "int", "abs", "reverse", "d", "capitalize", "float", "e")],
}
FORMATS = ["%s", "%d", "%5d|%-5s|", "%05.1f", "%x", "%r", "%%", "%+d", "%e", "%g", "%c", "%(a)s", "%s-%s", "%.2s", "%#o", "% d", "%5.3d"]
SPECS = ["{}", "{:>8}", "{:*^9}", "{:05}", "{:.2f}", "{:,}", "{:+}", "{:x}", "{:#b}", "{:e}", "{:g}", "{:%}", "{!r}", "{0}{0}", "{:<{}}", "{0[a]}", "{:.3}", "{:_}", "{:c}",
         "{:=+6}", "{:010,.1f}", "{!s:>6}", "{x}", "{}{1}", "{:s}", "{:d}"]


class Maker:
    def __init__(self, seed):
        self.r = random.Random(seed)

    def make(self, kind, depth):
        r = self.r
        if kind in SMALL: return r.choice(SMALL[kind])
        if kind == "f": return repr(r.choice(FORMATS))
        if kind == "sp": return repr(r.choice(SPECS))
        if kind == "a": kind = r.choice("sslldnb")
        elif r.random() < 0.02: kind = r.choice("sldnb")  # now and then something of another kind
        if kind not in RULES: return r.choice(LEAVES[kind])
        if depth <= 0 or r.random() < 0.25: return r.choice(LEAVES[kind])
        pattern = r.choice(RULES[kind])
        out = re.sub(r"\{(\w+)\}", lambda m: self.make(m.group(1), depth - 1), pattern.replace("{{", "\0").replace("}}", "\1"))
        return out.replace("\0", "{").replace("\1", "}")

    def expr(self, depth):
        return self.make("a", depth)

    def tag(self, inner):
        r = self.r
        return "{%" + r.choice(["", "", "-", "+"]) + " " + inner + " " + r.choice(["", "", "-", "+"]) + "%}"

    def space(self):
        return self.r.choice(["", "", " ", "\n", "  \n  ", "x", "\n\n", "\t"])

    def body(self, depth):
        return "".join(self.space() + self.statement(depth) for _ in range(self.r.randrange(1, 4))) + self.space()

    def statement(self, depth):
        r = self.r
        kind = r.randrange(18) if depth > 0 else r.randrange(5)
        e = lambda: self.expr(2)
        b = lambda: self.body(depth - 1)
        name = lambda: r.choice(["q", "i", "s", "l", "acc", "m1"])
        if kind < 3: return "{{" + r.choice(["", "-", " "]) + " " + e() + r.choice(["", "", "|e", "|forceescape"]) + " " + r.choice(["", "-"]) + "}}"
        if kind == 3: return self.tag(f"set {name()} = {e()}")
        if kind == 4: return self.tag(r.choice([f"set ns = namespace(v={e()})", f"set ns.v = {e()}", f"set q, i = {e()}"]))
        if kind in (5, 6): return self.tag(f"if {e()}") + b() + r.choice(["", self.tag(f"elif {e()}") + b(), self.tag("else") + b()]) + self.tag("endif")
        if kind in (7, 8, 9):
            target = r.choice(["q", "q", "i", "q, i", "(q, i), s"])
            source = r.choice(["l", "ls", "rows", "messages", "d", "d.items()", "pairs", "nested", "range(3)", "emoji", e()])
            extra = r.choice(["", "", f" if {e()}", " recursive"])
            inner = b() + r.choice(["", "{{ loop.index }}", "{{ loop.last }}{{ loop.length }}", "{{ loop.previtem }}{{ loop.nextitem }}", "{{ loop.cycle(1, 2) }}",
                                    "{{ loop.changed(q) }}", self.tag("break"), self.tag("if loop.first") + self.tag("continue") + self.tag("endif"),
                                    "{{ loop.revindex0 }}{{ loop.depth }}"]) + b()
            return self.tag(f"for {target} in {source}{extra}") + inner + r.choice(["", self.tag("else") + b()]) + self.tag("endfor")
        if kind == 10: return self.tag(f"set {name()}{r.choice(['', ' | upper', ' | trim | length'])}") + b() + self.tag("endset")
        if kind == 11:
            parameters = r.choice(["", "q", "q, i=1", "q, s=q", "i=2, s='z'"])
            return self.tag(f"macro m1({parameters})") + b() + r.choice(["", "{{ caller() }}", "{{ varargs }}{{ kwargs }}"]) + self.tag("endmacro")
        if kind == 12: return "{{ m1(" + r.choice(["", e(), e() + ", " + e(), "q=" + e(), "*l", "**d"]) + ") }}"
        if kind == 13: return self.tag(f"call{r.choice(['', '(q)'])} m1({r.choice(['', e()])})") + b() + self.tag("endcall")
        if kind == 14: return self.tag(f"filter {r.choice(['upper', 'trim', 'indent(2)', 'replace(' + e() + ', ' + e() + ')'])}") + b() + self.tag("endfilter")
        if kind == 15: return self.tag(f"with {name()} = {e()}, {r.choice(['z', 'q'])} = {e()}") + b() + self.tag("endwith")
        if kind == 16: return r.choice([self.tag("generation") + b() + self.tag("endgeneration"), "{#" + r.choice(["", "-"]) + " c " + r.choice(["", "-"]) + "#}",
                                        self.tag("raw") + "{{ x }}" + self.tag("endraw"), self.tag("block b" + str(r.randrange(10**6))) + b() + self.tag("endblock")])
        return self.tag(f"autoescape {r.choice(['true', 'false'])}") + b() + self.tag("endautoescape")

    def case(self, corpus):
        r = self.r
        if corpus and r.random() < 0.5:
            base = r.choice(corpus)
            return self.mutate(base["template"]), base.get("context") or {}
        if r.random() < 0.5:
            return "|".join("{{ " + self.expr(3) + " }}" for _ in range(r.randrange(1, 3))), CONTEXT
        return self.body(2), CONTEXT

    def mutate(self, template):
        r = self.r
        parts = re.findall(r"\{[{%#][-+]?|[-+]?[}%#]\}|\w+|\s+|'[^']*'|.", template, re.S)
        for _ in range(r.randrange(1, 4)):
            if not parts: break
            a, b = r.randrange(len(parts)), r.randrange(len(parts))
            what = r.randrange(5)
            if what == 0: del parts[a]
            elif what == 1: parts.insert(a, parts[b])
            elif what == 2: parts[a] = parts[b]
            elif what == 3: parts[a] = r.choice(sum(LEAVES.values(), []) + NAMES)
            else: parts.insert(a, r.choice(["-", "+", "|", ".", "(", ")", "[0]", "not ", " ", "\n", "~", ",", "is ", "|list", "|string"]))
        return "".join(parts)


LEFT_OUT = re.compile(r" at 0x|<class|<function|lipsum|pprint|random|urlize|xmlattr|\|\s*safe|Markup|encode|translate|maketrans|cycler object|Joiner object|member '")


def usable(template, answer):
    text = answer.get("rendered", "")
    return len(text) < 20000 and not LEFT_OUT.search(template + text) and "RecursionError" not in answer.get("error", "") and "Exceeds the limit" not in answer.get("error", "")


def known_difference(want, got):
    """jinja2 folds a slice of constants at compile time with other rules than at run time: 1[1:] is undefined, x[1:] an error."""
    return "rendered" in want and any(w in got.get("error", "") for w in ("object is not subscriptable", "type: 'slice'"))


def run_program(program, cases):
    lines = "".join(json.dumps({"template": t, "context": c}) + "\n" for t, c, _ in cases)
    out = subprocess.run([program, "template", "--jinja", "--jsonl"], input=lines, capture_output=True, text=True)
    if out.returncode: sys.exit(f"the program ended with {out.returncode}: {out.stderr[-500:]}")
    return [json.loads(line) for line in out.stdout.split("\n") if line]


def main():
    warnings.simplefilter("ignore")  # Python's about the code that jinja2 compiles
    p = argparse.ArgumentParser()
    p.add_argument("--program", default="build/release/bin/halfbyte")
    p.add_argument("--count", type=int, default=20000)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--corpus", nargs="*", default=[])
    p.add_argument("--show", type=int, default=30)
    p.add_argument("--write")
    a = p.parse_args()
    corpus = [json.loads(line) for f in a.corpus for line in open(f)]
    maker = Maker(a.seed)
    cases, refused = [], 0
    while len(cases) < a.count:
        template, context = maker.case(corpus)
        answer = render(template, context)
        # Refusals are easy to make and say little: at most a fifth of the cases.
        if "error" in answer and refused * 5 > len(cases): continue
        if not usable(template, answer): continue
        refused += "error" in answer
        cases.append((template, context, answer))
    if a.write:
        with open(a.write, "w") as f:
            f.write(json.dumps({"context": CONTEXT}) + "\n")
            for template, _, answer in cases: f.write(json.dumps({"template": template, **answer}) + "\n")
        return
    wrong = 0
    for (template, context, want), got in zip(cases, run_program(a.program, cases)):
        if want.get("rendered") == got.get("rendered") or known_difference(want, got): continue
        wrong += 1
        if wrong <= a.show: print(f"--- {template!r}\n    jinja2: {want}\n    ours:   {got}")
    print(f"{a.count - wrong} of {a.count} agree ({refused} of them refused)")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
