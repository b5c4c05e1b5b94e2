#include <algorithm>
#include <cstring>

#include "text/jinja_arguments.h"
#include "text/jinja_format.h"
#include "text/jinja_iterate.h"
#include "text/jinja_methods.h"
#include "text/jinja_string_split.h"
#include "text/jinja_text.h"
#include "text/jinja_unicode.h"

namespace halfbyte::text::jinja {
namespace {

using Kind = Value::Kind;

// The part of a string that optional start and end arguments (code points) choose, as str.find takes them.
struct Window {
  std::string_view view;
  Int start = 0;      // of the view, in code points
  bool empty = false;  // start lies behind end: not even "" is found there
};

Window WindowOf(std::string_view s, const Bound& a, size_t at) {
  Window w{s};
  if (!a.HasValue(at) && !a.HasValue(at + 1)) return w;
  Int size = static_cast<Int>(CountCodePoints(s));
  Int start = a.HasValue(at) ? a.Integer(at, 0) : 0;
  Int end = a.HasValue(at + 1) ? a.Integer(at + 1, 0) : size;
  if (end > size) end = size;
  if (end < 0) end = std::max<Int>(end + size, 0);
  if (start < 0) start = std::max<Int>(start + size, 0);
  if (start > end) { w.empty = true; return w; }
  size_t from = ByteOffset(s, static_cast<size_t>(start));
  w.view = s.substr(from, ByteOffset(s.substr(from), static_cast<size_t>(end - start)));
  w.start = start;
  return w;
}

Int Search(Runtime& r, const Value& self, const Arguments& arguments, const char* name, bool from_right) {
  Bound a = Bound::Positional(name, arguments, 1, 3);
  r.StepBytes(self.text().size());
  std::string_view wanted = a.Text(0, "");
  Window w = WindowOf(self.text(), a, 1);
  if (w.empty) return -1;
  size_t at = from_right ? w.view.rfind(wanted) : w.view.find(wanted);
  return at == w.view.npos ? -1 : w.start + static_cast<Int>(CountCodePoints(w.view.substr(0, at)));
}

Value Found(Int at) {
  if (at < 0) Fail("ValueError", "substring not found");
  return Value::Integer(at);
}

Value Affix(Runtime& r, const Value& self, const Arguments& arguments, const char* name, bool at_end) {
  Bound a = Bound::Positional(name, arguments, 1, 3);
  r.Step();
  Window w = WindowOf(self.text(), a, 1);
  auto matches = [&](const Value& affix) {
    if (!affix.is_string()) {
      Fail("TypeError", name, " first arg must be str or a tuple of str, not ", TypeName(affix));
    }
    return !w.empty && (at_end ? w.view.ends_with(affix.text()) : w.view.starts_with(affix.text()));
  };
  if (!a[0].is(Kind::kTuple)) return Value::Bool(matches(a[0]));
  for (const Value& affix : a[0].As<SequenceObject>().items) {
    if (matches(affix)) return Value::Bool(true);
  }
  return Value::Bool(false);
}

Value Count(Runtime& r, const Value& self, const Arguments& arguments) {
  Bound a = Bound::Positional("count", arguments, 1, 3);
  r.StepBytes(self.text().size());
  std::string_view wanted = a.Text(0, "");
  Window w = WindowOf(self.text(), a, 1);
  if (w.empty) return Value::Integer(0);
  if (wanted.empty()) return Value::Integer(static_cast<Int>(CountCodePoints(w.view)) + 1);
  Int count = 0;
  for (size_t at = 0; (at = w.view.find(wanted, at)) != w.view.npos; at += wanted.size()) ++count;
  return Value::Integer(count);
}

Value StripSides(Runtime& r, const Value& self, const Arguments& arguments, const char* name, bool left, bool right) {
  Bound a = Bound::Positional(name, arguments, 0, 1);
  r.Step();
  if (!a.HasValue(0)) return self.Part(Strip(self.text(), nullptr, left, right));
  if (!a[0].is_string()) Fail("TypeError", name, " arg must be None or str");
  std::string_view set = a[0].text();
  r.StepBytes(set.size());
  return self.Part(Strip(self.text(), &set, left, right));
}

enum class Side { kLeft, kRight, kBoth };

Value Pad(Runtime& r, const Value& self, const Arguments& arguments, const char* name, Side text_at) {
  Bound a = Bound::Positional(name, arguments, 1, 2);
  std::string_view fill = a.Text(1, " ");
  if (CountCodePoints(fill) != 1) Fail("TypeError", "The fill character must be exactly one character long");
  int64_t width = Clamp64(a.Integer(0, 0)), size = static_cast<int64_t>(CountCodePoints(self.text()));
  if (width <= size) return self;
  int64_t pad = width - size;
  r.heap().CheckRoom(static_cast<size_t>(width) * fill.size() + self.text().size());
  int64_t left = text_at == Side::kLeft ? 0 : text_at == Side::kRight ? pad : pad / 2 + (pad & width & 1);
  std::string out;
  for (int64_t i = 0; i < left; ++i) out += fill;
  out += self.text();
  for (int64_t i = left; i < pad; ++i) out += fill;
  return r.String(std::move(out)).WithMarkup(self.is_markup());
}

Value ZeroFill(Runtime& r, const Value& self, const Arguments& arguments) {
  Bound a = Bound::Positional("zfill", arguments, 1, 1);
  int64_t width = Clamp64(a.Integer(0, 0)), size = static_cast<int64_t>(CountCodePoints(self.text()));
  if (width <= size) return self;
  r.heap().CheckRoom(static_cast<size_t>(width) + self.text().size());
  std::string_view s = self.text();
  size_t sign = !s.empty() && (s[0] == '+' || s[0] == '-');
  std::string out(s.substr(0, sign));
  out.append(static_cast<size_t>(width - size), '0');
  return r.String(std::move(out.append(s.substr(sign))));
}

Value PartitionAt(const Value& self, Runtime& r, const Arguments& arguments, const char* name, bool from_right) {
  Bound a = Bound::Positional(name, arguments, 1, 1);
  std::string_view s = self.text(), separator = a.Text(0, "");
  if (separator.empty()) Fail("ValueError", "empty separator");
  r.StepBytes(s.size());
  size_t at = from_right ? s.rfind(separator) : s.find(separator);
  Value empty = Value::Borrowed("");
  if (at == s.npos) return from_right ? r.Tuple({empty, empty, self}) : r.Tuple({self, empty, empty});
  return r.Tuple({self.Part(s.substr(0, at)), a[0], self.Part(s.substr(at + separator.size()))});
}

Value SplitMethod(Runtime& r, const Value& self, const Arguments& arguments, const char* name, bool from_right) {
  Bound a(name, arguments, {"sep", "maxsplit"});
  return Split(r, self, a[0], a.Integer(1, -1), from_right);
}

Value Lines(Runtime& r, const Value& self, const Arguments& arguments) {
  Bound a("splitlines", arguments, {"keepends"});
  r.StepBytes(self.text().size());
  std::vector<Value> lines;
  for (std::string_view line : SplitLines(self.text(), a.Integer(0, 0) != 0)) lines.push_back(self.Part(line));
  return r.List(std::move(lines));
}

Value Join(Runtime& r, const Value& self, const Arguments& arguments) {
  Bound a = Bound::Positional("join", arguments, 1, 1);
  if (!IsIterable(a[0])) Fail("TypeError", "can only join an iterable");
  std::string out;
  Cursor cursor(r, a[0]);
  size_t count = 0;
  for (Value item; cursor.Next(item); ++count) {
    if (!item.is_string()) Fail("TypeError", "sequence item ", count, ": expected str instance, ", TypeName(item), " found");
    if (count > 0) out += self.text();
    out += item.text();
    r.CheckGrowth(out);
  }
  return r.String(std::move(out));
}

Value ReplaceMethod(Runtime& r, const Value& self, const Arguments& arguments) {
  Bound a = Bound::Positional("replace", arguments, 2, 3);
  return r.String(Replace(r, self.text(), a.Text(0, ""), a.Text(1, ""), a.Integer(2, -1))).WithMarkup(self.is_markup());
}

Value RemoveAffix(const Value& self, const Arguments& arguments, const char* name, bool at_end) {
  Bound a = Bound::Positional(name, arguments, 1, 1);
  std::string_view s = self.text(), affix = a.Text(0, "");
  if (at_end && s.ends_with(affix)) s.remove_suffix(affix.size());
  else if (!at_end && s.starts_with(affix)) s.remove_prefix(affix.size());
  return self.Part(s);
}

Value ExpandTabs(Runtime& r, const Value& self, const Arguments& arguments) {
  Bound a("expandtabs", arguments, {"tabsize"});
  int64_t size = std::max<int64_t>(Clamp64(a.Integer(0, 8)), 0), column = 0;
  std::string out;
  size_t n = 0;
  std::string_view s = self.text();
  for (size_t i = 0; i < s.size(); i += n) {
    uint32_t code = DecodeAt(s, i, n);
    if (code == '\t') {
      int64_t spaces = size > 0 ? size - column % size : 0;
      r.heap().CheckRoom(out.size() + static_cast<size_t>(spaces));
      out.append(static_cast<size_t>(spaces), ' ');
      column += spaces;
      continue;
    }
    out.append(s, i, n);
    column = code == '\n' || code == '\r' ? 0 : column + 1;
  }
  return r.String(std::move(out));
}

template <std::string (*kMap)(std::string_view)>
Value Mapped(Runtime& r, const Value& self, const Arguments& arguments) {
  Bound::Positional("str method", arguments, 0, 0);
  r.StepBytes(4 * self.text().size());
  return r.String(kMap(self.text())).WithMarkup(self.is_markup());
}

// isalpha and the like: not empty and every character passes.
template <bool (*kTest)(uint32_t)>
Value Every(Runtime& r, const Value& self, const Arguments& arguments) {
  Bound::Positional("str method", arguments, 0, 0);
  std::string_view s = self.text();
  r.StepBytes(4 * s.size());
  size_t n = 0;
  for (size_t i = 0; i < s.size(); i += n) {
    if (!kTest(DecodeAt(s, i, n))) return Value::Bool(false);
  }
  return Value::Bool(!s.empty());
}

bool AllCased(std::string_view s, bool upper) {
  bool any = false;
  size_t n = 0;
  for (size_t i = 0; i < s.size(); i += n) {
    uint32_t code = DecodeAt(s, i, n);
    if (IsTitle(code) || (upper ? IsLower(code) : IsUpper(code))) return false;
    any |= upper ? IsUpper(code) : IsLower(code);
  }
  return any;
}

bool IsTitleCased(std::string_view s) {
  bool inside = false, any = false;
  size_t n = 0;
  for (size_t i = 0; i < s.size(); i += n) {
    uint32_t code = DecodeAt(s, i, n);
    bool starts = IsUpper(code) || IsTitle(code), goes_on = IsLower(code);
    if ((starts && inside) || (goes_on && !inside)) return false;
    inside = starts || goes_on;
    any |= inside;
  }
  return any;
}

bool IsAsciiCode(uint32_t code) { return code < 0x80; }

Value EmptyOr(Runtime& r, const Value& self, const Arguments& arguments, decltype(Method::function) every) {
  return self.text().empty() ? Value::Bool(true) : every(r, self, arguments);
}

Value IsIdentifier(Runtime& r, const Value& self, const Arguments& arguments) {
  std::string_view s = self.text();
  size_t n = 0;
  if (s.empty() || !IsIdentifierStart(DecodeAt(s, 0, n))) return Value::Bool(false);
  return Every<IsIdentifierPart>(r, self, arguments);
}

#define HB_METHOD(body) [](Runtime& r, const Value& s, const Arguments& a) -> Value { (void)r; (void)a; body; }
constexpr Method kMethods[] = {
    {"capitalize", Mapped<ToCapitalized>},
    {"casefold", Mapped<CaseFold>},
    {"center", HB_METHOD(return Pad(r, s, a, "center", Side::kBoth))},
    {"count", Count},
    {"endswith", HB_METHOD(return Affix(r, s, a, "endswith", true))},
    {"expandtabs", ExpandTabs},
    {"find", HB_METHOD(return Value::Integer(Search(r, s, a, "find", false)))},
    {"format", FormatMethod},
    {"format_map", FormatMapMethod},
    {"index", HB_METHOD(return Found(Search(r, s, a, "index", false)))},
    {"isalnum", Every<IsAlnum>},
    {"isalpha", Every<IsAlpha>},
    {"isascii", HB_METHOD(return EmptyOr(r, s, a, Every<IsAsciiCode>))},
    {"isdecimal", Every<IsDecimal>},
    {"isdigit", Every<IsDigit>},
    {"isidentifier", IsIdentifier},
    {"islower", HB_METHOD(return Value::Bool(AllCased(s.text(), false)))},
    {"isnumeric", Every<IsNumeric>},
    {"isprintable", HB_METHOD(return EmptyOr(r, s, a, Every<IsPrintable>))},
    {"isspace", Every<IsSpace>},
    {"istitle", HB_METHOD(return Value::Bool(IsTitleCased(s.text())))},
    {"isupper", HB_METHOD(return Value::Bool(AllCased(s.text(), true)))},
    {"join", Join},
    {"ljust", HB_METHOD(return Pad(r, s, a, "ljust", Side::kLeft))},
    {"lower", Mapped<ToLower>},
    {"lstrip", HB_METHOD(return StripSides(r, s, a, "lstrip", true, false))},
    {"partition", HB_METHOD(return PartitionAt(s, r, a, "partition", false))},
    {"removeprefix", HB_METHOD(return RemoveAffix(s, a, "removeprefix", false))},
    {"removesuffix", HB_METHOD(return RemoveAffix(s, a, "removesuffix", true))},
    {"replace", ReplaceMethod},
    {"rfind", HB_METHOD(return Value::Integer(Search(r, s, a, "rfind", true)))},
    {"rindex", HB_METHOD(return Found(Search(r, s, a, "rindex", true)))},
    {"rjust", HB_METHOD(return Pad(r, s, a, "rjust", Side::kRight))},
    {"rpartition", HB_METHOD(return PartitionAt(s, r, a, "rpartition", true))},
    {"rsplit", HB_METHOD(return SplitMethod(r, s, a, "rsplit", true))},
    {"rstrip", HB_METHOD(return StripSides(r, s, a, "rstrip", false, true))},
    {"split", HB_METHOD(return SplitMethod(r, s, a, "split", false))},
    {"splitlines", Lines},
    {"startswith", HB_METHOD(return Affix(r, s, a, "startswith", false))},
    {"strip", HB_METHOD(return StripSides(r, s, a, "strip", true, true))},
    {"swapcase", Mapped<SwapCase>},
    {"title", Mapped<ToTitle>},
    {"upper", Mapped<ToUpper>},
    {"zfill", ZeroFill},
};
#undef HB_METHOD

}  // namespace

const Method* FindStringMethod(std::string_view name) {
  auto it = std::lower_bound(std::begin(kMethods), std::end(kMethods), name,
                             [](const Method& m, std::string_view n) { return m.name < n; });
  return it != std::end(kMethods) && name == it->name ? it : nullptr;
}

}  // namespace halfbyte::text::jinja
