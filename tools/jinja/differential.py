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
TEXT_FILTERS = ["upper", "lower", "title", "capitalize", "trim", "length", "string", "list", "first", "last", "reverse", "wordcount", "tojson",
                "int", "float", "escape", "e", "urlencode", "striptags", "safe", "forceescape", "count", "abs", "items", "sort", "unique",
                "sum", "min", "max", "join", "dictsort", "round", "default", "d", "indent", "title", "filesizeformat"]
CALL_FILTERS = [
    "replace({e}, {e})", "replace('a', {e}, {i})", "join({e})", "join(', ', attribute='n')", "default({e})", "default({e}, true)", "trim({e})",
    "tojson(indent={i})", "tojson(sort_keys=true)", "tojson(ensure_ascii={e})", "tojson(separators=(',', ':'))", "indent({i})", "indent({i}, {b}, {b})", "truncate({i})",
    "truncate({i}, {b}, {e}, {i})", "center({i})", "int({e})", "int({i}, {i})", "float({e})", "round({i})", "round({i}, 'floor')", "round(0, 'ceil')",
    "batch({i})|list", "batch({i}, {e})|list", "slice({i})|list", "slice({i}, {e})|list", "sort({b})", "sort(attribute={a})", "sort(case_sensitive={b})",
    "sort(reverse={b}, attribute={a})", "unique({b})|list", "unique(attribute={a})|list", "map({fl})|list", "map(attribute={a})|list",
    "map(attribute={a}, default={e})|list", "select|list", "select({te})|list", "reject({te})|list", "selectattr({a})|list", "selectattr({a}, {te})|list",
    "selectattr({a}, {te2}, {e})|list", "rejectattr({a}, {te2}, {e})|list", "select({te2}, {e})|list", "groupby({a})|list", "groupby({a}, default={e})|list",
    "sum(attribute={a})", "sum(start={e})", "min(attribute={a})", "max(case_sensitive={b})", "dictsort({b})", "dictsort(by='value')", "dictsort({b}, 'key', {b})",
    "attr({a})", "format({e})", "format({e}, {e})", "wordwrap({i})", "wordwrap({i}, {b})", "first", "items|list", "reverse|list", "filesizeformat({b})",
]
TESTS = ["defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "mapping", "sequence", "iterable", "callable", "true", "false",
         "odd", "even", "lower", "upper", "escaped"]
TESTS2 = ["eq", "ne", "lt", "le", "gt", "ge", "in", "sameas", "equalto", "divisibleby", "==", "!=", ">", "<", "greaterthan", "lessthan"]
METHODS = [
    "strip()", "strip({e})", "lstrip()", "rstrip({e})", "upper()", "lower()", "title()", "capitalize()", "swapcase()", "split()", "split({e})",
    "split({e}, {i})", "rsplit({e}, {i})", "split(maxsplit={i})", "rsplit(none, {i})", "splitlines()", "splitlines({b})", "partition({e})", "rpartition({e})", "replace({e}, {e})",
    "replace({e}, {e}, {i})", "startswith({e})", "endswith({e})", "startswith({e}, {i})", "endswith({e}, {i}, {i})", "find({e})", "rfind({e}, {i})", "index({e})",
    "count({e})", "count({e}, {i}, {i})", "join({e})", "zfill({i})", "ljust({i}, '*')", "rjust({i})", "center({i}, '-')", "isdigit()", "isalpha()", "isalnum()", "isspace()",
    "isupper()", "islower()", "istitle()", "isidentifier()", "isascii()", "isnumeric()", "isdecimal()", "isprintable()", "removeprefix({e})", "removesuffix({e})",
    "expandtabs({i})", "casefold()", "format({e}, {e})", "get({e})", "get({e}, {e})", "keys()|list", "values()|list", "items()|list", "copy()", "index({e}, {i})",
    "append(1)", "pop()", "update({{}})", "role", "content", "n", "k", "c.k", "0", "__class__", "nope", "items", "bit_length()", "is_integer()", "real",
]
FORMATS = ["%s", "%d", "%5d|%-5s|", "%05.1f", "%x", "%r", "%%", "%+d", "%e", "%g", "%c", "%(a)s", "%s-%s", "%.2s", "%#o", "% d", "%5.3d"]
SPECS = ["{}", "{:>8}", "{:*^9}", "{:05}", "{:.2f}", "{:,}", "{:+}", "{:x}", "{:#b}", "{:e}", "{:g}", "{:%}", "{!r}", "{0}{0}", "{:<{}}", "{0[a]}", "{:.3}", "{:_}", "{:c}",
         "{:=+6}", "{:010,.1f}", "{!s:>6}", "{x}", "{}{1}", "{:s}", "{:d}"]
LITERALS = ["''", "'a'", "'ab c'", "\"it's\"", "'x\\n y'", "'ÄÖ ß'", "1", "0", "-1", "3.0", "0.5", "1e3", "100", "true", "none", "[]", "[1, 'a']", "{}", "{'a': 1, 2: 'b'}",
            "(1, 'b')", "()", "range(3)", "[3, 1, 2]", "'a,b,,c'", "' pad '", "[[1, 2], [3, 4]]", "{'z': {'y': [1]}}"]


class Maker:
    def __init__(self, seed):
        self.r = random.Random(seed)

    def fill(self, pattern, depth):
        r = self.r
        return pattern.replace("{{", "\0").replace("}}", "\1").format(
            e=self.Later(lambda: self.expr(depth - 1)), i=self.Later(lambda: str(r.choice([0, 1, 2, 3, 5, 12, -1, -2]))),
            b=self.Later(lambda: r.choice(["true", "false"])), a=self.Later(lambda: r.choice(["'n'", "'v'", "'ok'", "'role'", "'c.k'", "0", "'k.0'", "'nope'"])),
            fl=self.Later(lambda: repr(r.choice(TEXT_FILTERS))), te=self.Later(lambda: repr(r.choice(TESTS))), te2=self.Later(lambda: repr(r.choice(TESTS2))),
        ).replace("\0", "{").replace("\1", "}")

    class Later:
        def __init__(self, make):
            self.make = make

        def __format__(self, spec):
            return self.make()

    def expr(self, depth):
        r = self.r
        if depth <= 0 or r.random() < 0.2:
            return r.choice(LITERALS) if r.random() < 0.45 else r.choice(NAMES)
        sub = lambda: self.expr(depth - 1)
        kind = r.randrange(16)
        if kind == 0: return f"{sub()} {r.choice(['+', '-', '*', '/', '//', '%', '~', '~'])} {sub()}"
        if kind == 1: return f"{sub()} {r.choice(['==', '!=', '<', '<=', '>', '>=', 'in', 'not in', 'and', 'or'])} {sub()}"
        if kind == 2: return f"({sub()})"
        if kind == 3: return f"{r.choice(['not ', '-', '+'])}{sub()}"
        if kind == 4: return f"{sub()}|{r.choice(TEXT_FILTERS)}"
        if kind in (5, 6): return f"{sub()}|{self.fill(r.choice(CALL_FILTERS), depth)}"
        if kind in (7, 8): return f"({sub()}).{self.fill(r.choice(METHODS), depth)}"
        if kind == 9: return f"{sub()} is {r.choice(['', 'not '])}{r.choice(TESTS)}"
        if kind == 10: return f"{sub()} is {r.choice([t for t in TESTS2 if t.isalpha()])} {self.expr(0)}"
        if kind == 11: return f"({sub()} if {sub()}{r.choice(['', ' else ' + sub()])})"
        if kind == 12: return f"({sub()})[{r.choice([sub(), '0', '-1', '1:', ':-1', '::-1', '1:3', '::2', repr('a')])}]"
        if kind == 13: return f"{r.choice(FORMATS)!r} {r.choice(['%', '%', '|format'])}{'' if r.random() < 0.5 else ' '}({sub()})"
        if kind == 14: return f"{r.choice(SPECS)!r}.format({sub()}{', ' + sub() if r.random() < 0.4 else ''}{', x=' + sub() if r.random() < 0.2 else ''})"
        return f"{r.choice(['[{}]', '({},)', '{{1: {}}}', '[{0}, {0}]']).format(sub())}"

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
        if kind < 3: return "{{" + r.choice(["", "-", " "]) + " " + e() + " " + r.choice(["", "-"]) + "}}"
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
            elif what == 3: parts[a] = r.choice(LITERALS + NAMES + TEXT_FILTERS)
            else: parts.insert(a, r.choice(["-", "+", "|", ".", "(", ")", "[0]", "not ", " ", "\n", "~", ",", "is ", "|list", "|string"]))
        return "".join(parts)


LEFT_OUT = re.compile(r" at 0x|lipsum|pprint|random|urlize|xmlattr|\|\s*safe|Markup|encode|translate|maketrans|cycler object|Joiner object|member '")


def usable(template, answer):
    text = answer.get("rendered", "")
    return len(text) < 20000 and not LEFT_OUT.search(template + text) and "RecursionError" not in answer.get("error", "") and "Exceeds the limit" not in answer.get("error", "")


def run_program(program, cases):
    lines = "".join(json.dumps({"template": t, "context": c}) + "\n" for t, c, _ in cases)
    out = subprocess.run([program, "template", "--jinja", "--jsonl"], input=lines, capture_output=True, text=True)
    if out.returncode: sys.exit(f"the program ended with {out.returncode}: {out.stderr[-500:]}")
    return [json.loads(line) for line in out.stdout.split("\n") if line]


def main():
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
    cases = []
    while len(cases) < a.count:
        template, context = maker.case(corpus)
        answer = render(template, context)
        if usable(template, answer): cases.append((template, context, answer))
    if a.write:
        with open(a.write, "w") as f:
            f.write(json.dumps({"context": CONTEXT}) + "\n")
            for template, _, answer in cases: f.write(json.dumps({"template": template, **answer}) + "\n")
        return
    wrong = refused = 0
    for (template, context, want), got in zip(cases, run_program(a.program, cases)):
        refused += "error" in want
        if want.get("rendered") == got.get("rendered"): continue
        wrong += 1
        if wrong <= a.show: print(f"--- {template!r}\n    jinja2: {want}\n    ours:   {got}")
    print(f"{a.count - wrong} of {a.count} agree ({refused} of them refused)")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
