#!/usr/bin/env python3
"""Prints src/text/jinja_unicode_tables.cc: what Python's str methods know about characters beyond the general category.

Run:  python3 tools/jinja/make_unicode_tables.py > src/text/jinja_unicode_tables.cc
"""
import unicodedata

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]


def category(c):
    return unicodedata.category(chr(c))


def ranges(name, comment, test):
    out, run = [], None
    for c in CODE_POINTS:
        if test(c):
            if run and run[1] == c - 1:
                run[1] = c
            else:
                run = [c, c]
                out.append(run)
    print(f"\n// {comment}\nconst CodeRange {name}[] = {{")
    line = "   "
    for a, b in out:
        item = f" {{0x{a:X}, 0x{b:X}}},"
        if len(line) + len(item) > 126:
            print(line)
            line = "   "
        line += item
    print(line)
    print(f"}};\nconst size_t {name}Count = sizeof {name} / sizeof {name}[0];")


def mapping(name, comment, function):
    print(f"\n// {comment}\nconst FullMapping {name}[] = {{")
    line = "   "
    for c in CODE_POINTS:
        mapped = function(chr(c))
        if len(mapped) > 1:
            text = "".join(f"\\x{b:02x}" for b in mapped.encode())
            item = f' {{0x{c:X}, "{text}"}},'
            if len(line) + len(item) > 126:
                print(line)
                line = "   "
            line += item
    print(line)
    print(f"}};\nconst size_t {name}Count = sizeof {name} / sizeof {name}[0];")


print(f"""// Made by tools/jinja/make_unicode_tables.py (Unicode {unicodedata.unidata_version}); not edited by hand.
#include "text/jinja_unicode_tables.h"

namespace halfbyte::text::jinja {{""")
ranges("kOtherLowercase", "Lowercase by property but not in category Ll.", lambda c: chr(c).islower() and category(c) != "Ll")
ranges("kOtherUppercase", "Uppercase by property but not in category Lu.", lambda c: chr(c).isupper() and category(c) != "Lu")
ranges("kOtherDigit", "isdigit() but not category Nd.", lambda c: chr(c).isdigit() and category(c) != "Nd")
ranges("kOtherNumeric", "isnumeric() but not category Nd, Nl or No.",
       lambda c: chr(c).isnumeric() and category(c) not in ("Nd", "Nl", "No"))
mapping("kFullUpper", "Characters whose uppercase is more than one character (SpecialCasing).", str.upper)
mapping("kFullTitle", "Characters whose titlecase is more than one character.", str.title)
print("\n}  // namespace halfbyte::text::jinja")
