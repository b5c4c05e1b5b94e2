#include "text/jinja_format.h"

#include <algorithm>

#include "text/jinja_number_format.h"
#include "text/jinja_operations.h"
#include "text/jinja_text.h"
#include "text/jinja_unicode.h"

namespace halfbyte::text::jinja {
namespace {

using Kind = Value::Kind;

bool IsAlignment(char c) { return c == '<' || c == '>' || c == '^' || c == '='; }
bool IsNumeral(char c) { return c >= '0' && c <= '9'; }

int64_t TakeNumber(std::string_view s, size_t& at) {
  int64_t n = 0;
  while (at < s.size() && IsNumeral(s[at])) n = std::min<int64_t>(n * 10 + (s[at++] - '0'), INT32_MAX);
  return n;
}

NumberFormat ParseSpec(std::string_view spec, const Value& v) {
  NumberFormat f;
  size_t at = 0, n = 0;
  if (!spec.empty()) DecodeAt(spec, 0, n);
  if (n > 0 && n < spec.size() && IsAlignment(spec[n])) {
    f.fill = spec.substr(0, n);
    f.align = spec[n];
    at = n + 1;
  } else if (!spec.empty() && IsAlignment(spec[0])) {
    f.align = spec[at++];
  }
  auto next = [&](char c) { return at < spec.size() && spec[at] == c; };
  bool signed_format = next('+') || next('-') || next(' ');
  if (signed_format) f.sign = spec[at++];
  if (next('#')) { f.alternate = true; ++at; }
  if (next('0')) {
    ++at;
    if (f.align == 0) { f.align = v.is_string() ? '<' : '='; f.fill = "0"; }
  }
  f.width = TakeNumber(spec, at);
  if (next(',') || next('_')) f.grouping = spec[at++];
  if (next('.')) {
    ++at;
    if (at >= spec.size() || !IsNumeral(spec[at])) Fail("ValueError", "Format specifier missing precision");
    f.precision = TakeNumber(spec, at);
  }
  if (at < spec.size()) f.type = spec[at++];
  if (at < spec.size()) Fail("ValueError", "Invalid format specifier '", spec, "' for object of type '", TypeName(v), "'");
  if (v.is_string() && signed_format) Fail("ValueError", "Sign not allowed in string format specifier");
  return f;
}

[[noreturn]] void FailCode(const NumberFormat& f, const Value& v) {
  Fail("ValueError", "Unknown format code '", f.type, "' for object of type '", TypeName(v), "'");
}

std::string FormatString(Runtime& r, const Value& v, const NumberFormat& f) {
  if (f.type != 0 && f.type != 's') FailCode(f, v);
  if (f.align == '=') Fail("ValueError", "'=' alignment not allowed in string format specifier");
  if (f.grouping != 0) Fail("ValueError", "Cannot specify '", f.grouping, "' with 's'.");
  std::string_view text = v.text();
  if (f.precision >= 0) text = text.substr(0, ByteOffset(text, static_cast<size_t>(f.precision)));
  return PadText(r, text, f, '<');
}

// Walks "literal {field!conversion:spec} literal" and fields' own specs, one level deep as in Python.
class FieldFormatter {
 public:
  FieldFormatter(Runtime& r, const std::vector<Value>& positional, const std::vector<std::pair<std::string_view, Value>>& keyword,
                 const Value& mapping)
      : r_(r), positional_(positional), keyword_(keyword), mapping_(mapping) {}

  std::string Run(std::string_view format, int depth) {
    if (depth < 0) Fail("ValueError", "Max string recursion exceeded");
    std::string out;
    size_t at = 0;
    while (at < format.size()) {
      r_.CheckGrowth(out);
      char c = format[at];
      bool doubled = at + 1 < format.size() && format[at + 1] == c;
      if (c != '{' && c != '}') {
        size_t end = std::min(format.find_first_of("{}", at), format.size());
        out.append(format, at, end - at);
        at = end;
      } else if (doubled) {
        out += c;
        at += 2;
      } else if (c == '}') {
        Fail("ValueError", "Single '}' encountered in format string");
      } else {
        size_t end = FieldEnd(format, at + 1);
        out += Field(format.substr(at + 1, end - at - 1), depth);
        at = end + 1;
      }
    }
    return out;
  }

 private:
  static size_t FieldEnd(std::string_view format, size_t at) {
    int open = 1;
    bool in_brackets = false;
    for (; at < format.size(); ++at) {
      char c = format[at];
      if (c == '[') in_brackets = true;
      else if (c == ']') in_brackets = false;
      else if (in_brackets) continue;
      else if (c == '{') ++open;
      else if (c == '}' && --open == 0) return at;
    }
    Fail("ValueError", "expected '}' before end of string");
  }

  std::string Field(std::string_view field, int depth) {
    size_t name_end = 0;
    bool in_brackets = false;
    for (; name_end < field.size(); ++name_end) {
      char c = field[name_end];
      if (c == '[') in_brackets = true;
      else if (c == ']') in_brackets = false;
      else if (!in_brackets && (c == '!' || c == ':')) break;
    }
    Value v = Lookup(field.substr(0, name_end));
    std::string_view rest = field.substr(name_end);
    if (rest.starts_with("!")) {
      if (rest.size() < 2 || (rest.size() > 2 && rest[2] != ':')) Fail("ValueError", "expected ':' after conversion specifier");
      char conversion = rest[1];
      if (conversion == 's') v = ToStr(r_, v);
      else if (conversion == 'r' || conversion == 'a') v = r_.String(Repr(r_, v));
      else Fail("ValueError", "Unknown conversion specifier ", conversion);
      rest.remove_prefix(2);
    }
    if (rest.starts_with(":")) rest.remove_prefix(1);
    return FormatValue(r_, v, Run(rest, depth - 1));
  }

  // "0", "name", "" (the next), then ".attribute" and "[key]" in any number.
  Value Lookup(std::string_view name) {
    size_t end = std::min(name.find_first_of(".["), name.size());
    Value v = First(name.substr(0, end));
    while (end < name.size()) {
      bool attribute = name[end] == '.';
      size_t start = end + 1;
      end = attribute ? std::min(name.find_first_of(".[", start), name.size()) : name.find(']', start);
      if (end == name.npos) Fail("ValueError", "Missing ']' in format string");
      std::string_view part = name.substr(start, end - start);
      if (part.empty()) Fail("ValueError", "Empty attribute in format string");
      if (attribute) {
        v = GetAttribute(r_, v, r_.String(std::string(part)));
        continue;
      }
      v = GetItem(r_, v, KeyOf(part));
      if (++end < name.size() && name[end] != '.' && name[end] != '[') {
        Fail("ValueError", "Only '.' or '[' may follow ']' in format field specifier");
      }
    }
    return v;
  }

  Value KeyOf(std::string_view part) {
    bool number = part.size() < 19 && std::all_of(part.begin(), part.end(), IsNumeral);
    size_t at = 0;
    return number ? Value::Integer(TakeNumber(part, at)) : r_.String(std::string(part));
  }

  Value First(std::string_view name) {
    bool number = std::all_of(name.begin(), name.end(), IsNumeral);  // also ""
    if (number) {
      bool automatic = name.empty();
      if (next_ != 0 && automatic != (next_ > 0)) {
        Fail("ValueError", "cannot switch between manual field specification and automatic field numbering");
      }
      size_t at = 0;
      auto index = static_cast<size_t>(automatic ? next_ : TakeNumber(name, at));
      next_ = automatic ? next_ + 1 : -1;
      if (index >= positional_.size()) Fail("IndexError", "Replacement index ", index, " out of range for positional args tuple");
      return positional_[index];
    }
    for (const auto& [key, value] : keyword_) {
      if (key == name) return value;
    }
    if (mapping_.is(Kind::kDict)) {
      if (const Value* found = mapping_.As<DictObject>().Find(name)) return *found;
    }
    Fail("KeyError", "'", name, "'");
  }

  Runtime& r_;
  const std::vector<Value>& positional_;
  const std::vector<std::pair<std::string_view, Value>>& keyword_;
  const Value& mapping_;
  int64_t next_ = 0;  // > 0: fields are numbered automatically; -1: by hand
};

}  // namespace

std::string FormatValue(Runtime& r, const Value& v, std::string_view spec) {
  std::string out;
  if (spec.empty()) {
    AppendStr(r, out, v);
    return out;
  }
  if (!v.is_string() && !v.is_number()) {
    Fail("TypeError", "unsupported format string passed to ", TypeName(v), ".__format__");
  }
  NumberFormat f = ParseSpec(spec, v);
  if (v.is_string()) return FormatString(r, v, f);
  static constexpr std::string_view kIntTypes = "bcdoxXn", kFloatTypes = "eEfFgGn%";
  if (v.is_integral() && (f.type == 0 || kIntTypes.find(f.type) != kIntTypes.npos)) {
    if (f.precision >= 0) Fail("ValueError", "Precision not allowed in integer format specifier");
    return FormatInt(r, v.integer(), f);
  }
  if (f.type != 0 && kFloatTypes.find(f.type) == kFloatTypes.npos) FailCode(f, v);
  return FormatFloat(r, v.AsDouble(), f);
}

Value FormatMethod(Runtime& r, const Value& self, const Arguments& arguments) {
  return r.String(FieldFormatter(r, arguments.positional, arguments.keyword, Value()).Run(self.text(), 2));
}

Value FormatMapMethod(Runtime& r, const Value& self, const Arguments& arguments) {
  if (!arguments.keyword.empty() || arguments.positional.size() != 1) {
    Fail("TypeError", "format_map() takes exactly one argument");
  }
  return r.String(FieldFormatter(r, {}, {}, arguments.positional[0]).Run(self.text(), 2));
}

}  // namespace halfbyte::text::jinja
