// str(), repr() and type names, as Python writes them.
#pragma once

#include <string>

#include "text/jinja_runtime.h"

namespace halfbyte::text::jinja {

const char* TypeName(const Value& v);  // type(v).__name__: "int", "str", "NoneType", "dict_keys", ...

// Throws an undefined value's UndefinedError or SecurityError; every operation that is not allowed on undefined calls it.
void FailIfUndefined(const Value& v);

void AppendStr(Runtime& r, std::string& out, const Value& v);
void AppendRepr(Runtime& r, std::string& out, const Value& v);
// The value itself where it is a string already (a markup mark is kept).
Value ToStr(Runtime& r, const Value& v);
std::string Repr(Runtime& r, const Value& v);

void AppendInt(std::string& out, Int i);
std::string FloatRepr(double d);                         // the shortest digits that read back: 1e+16, 0.1, 5.0, inf
void AppendStringRepr(std::string& out, std::string_view s);
void AppendKeyRepr(std::string& out, const Value& key);  // repr of a name, number or None in a message; other kinds shortened
void AppendEscaped(std::string& out, std::string_view s);  // HTML: & < > ' "

}  // namespace halfbyte::text::jinja
