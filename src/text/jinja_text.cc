#include "text/jinja_text.h"

#include <charconv>
#include <cmath>

#include "text/jinja_iterate.h"
#include "text/jinja_loop.h"
#include "text/jinja_unicode.h"

namespace halfbyte::text::jinja {
namespace {

using Kind = Value::Kind;

void AppendSequence(Runtime& r, std::string& out, const SequenceObject& sequence, bool tuple) {
  out += tuple ? '(' : '[';
  for (size_t i = 0; i < sequence.items.size(); ++i) {
    if (i > 0) out += ", ";
    AppendRepr(r, out, sequence.items[i]);
  }
  if (tuple && sequence.items.size() == 1) out += ',';
  out += tuple ? ')' : ']';
}

void AppendDict(Runtime& r, std::string& out, const DictObject& dict) {
  out += '{';
  bool first = true;
  for (const auto& [key, value] : dict.entries()) {
    if (!first) out += ", ";
    first = false;
    AppendRepr(r, out, key);
    out += ": ";
    AppendRepr(r, out, value);
  }
  out += '}';
}

void AppendView(Runtime& r, std::string& out, const Value& v) {
  out += TypeName(v);
  out += "([";
  Cursor cursor(r, v);
  bool first = true;
  for (Value item; cursor.Next(item);) {
    if (!first) out += ", ";
    first = false;
    AppendRepr(r, out, item);
  }
  out += "])";
}

void AppendRange(std::string& out, const RangeObject& range) {
  out += "range(";
  AppendInt(out, range.start);
  out += ", ";
  AppendInt(out, range.stop);
  if (range.step != 1) {
    out += ", ";
    AppendInt(out, range.step);
  }
  out += ')';
}

void AppendEscapedCode(std::string& out, uint32_t code) {
  char buffer[12];
  if (code < 0x100) std::snprintf(buffer, sizeof buffer, "\\x%02x", code);
  else if (code < 0x10000) std::snprintf(buffer, sizeof buffer, "\\u%04x", code);
  else std::snprintf(buffer, sizeof buffer, "\\U%08x", code);
  out += buffer;
}

}  // namespace

const char* TypeName(const Value& v) {
  switch (v.kind()) {
    case Kind::kMissing: case Kind::kUndefined: return "Undefined";
    case Kind::kNone: return "NoneType";
    case Kind::kBool: return "bool";
    case Kind::kInt: return "int";
    case Kind::kFloat: return "float";
    case Kind::kString: return v.is_markup() ? "Markup" : "str";
    case Kind::kTuple: return "tuple";
    case Kind::kList: return "list";
    case Kind::kDict: return "dict";
    case Kind::kRange: return "range";
    case Kind::kView: {
      static constexpr const char* kNames[] = {"dict_keys", "dict_values", "dict_items"};
      return kNames[static_cast<int>(v.As<ViewObject>().what)];
    }
    case Kind::kIterator: return v.As<IteratorObject>().type_name;
    case Kind::kNamespace: return "Namespace";
    case Kind::kCallable: return v.As<CallableObject>().type_name();
    case Kind::kLoop: return "LoopContext";
    case Kind::kCycler: return "Cycler";
    case Kind::kSelf: return "TemplateReference";
    case Kind::kFrame: return "frame";
  }
  return "object";
}

void FailIfUndefined(const Value& v) {
  if (!v.is_undefined()) return;
  const auto& undefined = v.As<UndefinedObject>();
  Fail(undefined.unsafe ? "SecurityError" : "UndefinedError", undefined.Message());
}

void AppendInt(std::string& out, Int i) {
  char buffer[48];
  char* p = buffer + sizeof buffer;
  bool negative = i < 0;
  // Digits are taken from the negative number, which also holds the smallest one.
  Int rest = negative ? i : -i;
  do {
    *--p = static_cast<char>('0' - static_cast<int>(rest % 10));
    rest /= 10;
  } while (rest != 0);
  if (negative) *--p = '-';
  out.append(p, buffer + sizeof buffer - p);
}

std::string FloatRepr(double d) {
  if (std::isnan(d)) return "nan";
  if (std::isinf(d)) return d > 0 ? "inf" : "-inf";
  char buffer[40];
  auto scientific = std::to_chars(buffer, buffer + sizeof buffer, d, std::chars_format::scientific);
  std::string_view text(buffer, scientific.ptr - buffer);
  size_t e = text.find('e');
  int exponent = 0;
  std::from_chars(text.data() + e + (text[e + 1] == '+' ? 2 : 1), text.data() + text.size(), exponent);
  if (exponent < -4 || exponent >= 16) return std::string(text);
  auto fixed = std::to_chars(buffer, buffer + sizeof buffer, d, std::chars_format::fixed);
  std::string out(buffer, fixed.ptr);
  if (out.find('.') == out.npos) out += ".0";
  return out;
}

void AppendStringRepr(std::string& out, std::string_view s) {
  char quote = s.find('\'') != s.npos && s.find('"') == s.npos ? '"' : '\'';
  out += quote;
  size_t n = 0;
  for (size_t i = 0; i < s.size(); i += n) {
    uint32_t code = DecodeAt(s, i, n);
    if (code == static_cast<unsigned char>(quote) || code == '\\') { out += '\\'; out += static_cast<char>(code); }
    else if (code == '\n') out += "\\n";
    else if (code == '\r') out += "\\r";
    else if (code == '\t') out += "\\t";
    else if (IsPrintable(code)) out.append(s, i, n);
    else AppendEscapedCode(out, code);
  }
  out += quote;
}

void AppendKeyRepr(std::string& out, const Value& key) {
  if (key.is_string()) AppendStringRepr(out, key.text());
  else if (key.is(Kind::kInt)) AppendInt(out, key.integer());
  else if (key.is(Kind::kFloat)) out += FloatRepr(key.real());
  else if (key.is(Kind::kBool)) out += key.boolean() ? "True" : "False";
  else if (key.is_none()) out += "None";
  else out += TypeName(key);
}

void AppendEscaped(std::string& out, std::string_view s) {
  for (char c : s) {
    if (c == '&') out += "&amp;";
    else if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '\'') out += "&#39;";
    else if (c == '"') out += "&#34;";
    else out += c;
  }
}

void AppendRepr(Runtime& r, std::string& out, const Value& v) {
  r.CheckGrowth(out);
  DepthGuard guard(r);
  switch (v.kind()) {
    case Kind::kMissing: case Kind::kUndefined: out += "Undefined"; break;
    case Kind::kString:
      r.StepBytes(v.text().size());
      if (v.is_markup()) out += "Markup(";
      AppendStringRepr(out, v.text());
      if (v.is_markup()) out += ')';
      break;
    case Kind::kTuple: case Kind::kList: AppendSequence(r, out, v.As<SequenceObject>(), v.is(Kind::kTuple)); break;
    case Kind::kDict: AppendDict(r, out, v.As<DictObject>()); break;
    case Kind::kRange: AppendRange(out, v.As<RangeObject>()); break;
    case Kind::kView: AppendView(r, out, v); break;
    case Kind::kNamespace:
      out += "<Namespace ";
      AppendRepr(r, out, v.As<NamespaceObject>().attributes);
      out += '>';
      break;
    case Kind::kCallable: out += v.As<CallableObject>().Describe(); break;
    case Kind::kLoop: {
      LoopObject& loop = v.As<LoopObject>();
      out += "<LoopContext ";
      AppendInt(out, loop.index());
      out += '/';
      AppendInt(out, loop.Length());
      out += '>';
      break;
    }
    case Kind::kSelf: out += "<TemplateReference None>"; break;
    case Kind::kIterator: case Kind::kCycler:
      out += '<';
      out += TypeName(v);
      out += " object>";
      break;
    default: AppendKeyRepr(out, v);
  }
}

void AppendStr(Runtime& r, std::string& out, const Value& v) {
  if (v.is_string()) {
    r.StepBytes(v.text().size());
    out += v.text();
  } else if (!v.is_undefined()) {
    AppendRepr(r, out, v);
  }
}

Value ToStr(Runtime& r, const Value& v) {
  if (v.is_string()) return v;
  if (v.is_undefined()) return Value::Borrowed("");
  return r.String(Repr(r, v));
}

std::string Repr(Runtime& r, const Value& v) {
  std::string out;
  AppendRepr(r, out, v);
  return out;
}

}  // namespace halfbyte::text::jinja
