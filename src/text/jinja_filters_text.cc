#include <algorithm>

#include "text/jinja_arguments.h"
#include "text/jinja_compare.h"
#include "text/jinja_filters.h"
#include "text/jinja_iterate.h"
#include "text/jinja_methods.h"
#include "text/jinja_percent_format.h"
#include "text/jinja_string_split.h"
#include "text/jinja_text.h"
#include "text/jinja_unicode.h"
#include "text/jinja_wordwrap.h"

namespace halfbyte::text::jinja {
namespace {

using Kind = Value::Kind;

// A filter that is a str method without arguments on str(value).
template <std::string (*kMap)(std::string_view)>
Value Mapped(Runtime& r, const Value& v, const Arguments& arguments) {
  Bound("filter", arguments, {});
  Value text = ToStr(r, v);
  r.StepBytes(4 * text.text().size());
  return r.String(kMap(text.text())).WithMarkup(text.is_markup());
}

bool StartsWord(uint32_t c) { return IsSpace(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<'; }

// jinja's own title: only white space and - ( { [ < begin a word.
std::string TitleWords(std::string_view s) {
  std::string out;
  size_t n = 0;
  for (size_t start = 0; start < s.size();) {
    bool separator = StartsWord(DecodeAt(s, start, n));
    size_t first = n, end = start;
    while (end < s.size() && StartsWord(DecodeAt(s, end, n)) == separator) end += n;
    out += ToUpper(s.substr(start, first));
    out += ToLower(s.substr(start + first, end - start - first));
    start = end;
  }
  return out;
}

Value Escape(Runtime& r, const Value& v, const Arguments& arguments) {
  Bound("escape", arguments, {});
  if (v.is_markup()) return v;
  std::string out;
  AppendEscaped(out, ToStr(r, v).text());
  return r.String(std::move(out)).WithMarkup(true);
}

Value ForceEscape(Runtime& r, const Value& v, const Arguments& arguments) {
  return Escape(r, ToStr(r, v).WithMarkup(false), arguments);
}

Value Safe(Runtime& r, const Value& v, const Arguments& arguments) {
  Bound("safe", arguments, {});
  return ToStr(r, v).WithMarkup(true);
}

Value Str(Runtime& r, const Value& v, const Arguments& arguments) {
  Bound("string", arguments, {});
  return ToStr(r, v);
}

Value Trim(Runtime& r, const Value& v, const Arguments& arguments) {
  Bound a("trim", arguments, {"chars"});
  Value text = ToStr(r, v);
  r.Step();
  if (!a.HasValue(0)) return text.Part(Strip(text.text(), nullptr, true, true));
  if (!a[0].is_string()) Fail("TypeError", "strip arg must be None or str");
  std::string_view set = a[0].text();
  return text.Part(Strip(text.text(), &set, true, true));
}

Value ReplaceFilter(Runtime& r, const Value& v, const Arguments& arguments) {
  Bound a("replace", arguments, {"old", "new", "count"}, 2);
  Value text = ToStr(r, v), from = ToStr(r, a[0]), to = ToStr(r, a[1]);
  return r.String(Replace(r, text.text(), from.text(), to.text(), a.HasValue(2) ? a.Integer(2, -1) : -1));
}

Value Center(Runtime& r, const Value& v, const Arguments& arguments) {
  Bound a("center", arguments, {"width"});
  Arguments width;
  width.positional = {a.Has(0) ? a[0] : Value::Integer(80)};
  return FindStringMethod("center")->function(r, ToStr(r, v), width);
}

Value Format(Runtime& r, const Value& v, const Arguments& arguments) {
  if (arguments.keyword.empty()) return PercentFormat(r, ToStr(r, v), r.Tuple(arguments.positional));
  if (!arguments.positional.empty()) {
    Fail("FilterArgumentError", "can't handle positional and keyword arguments at the same time");
  }
  Value dict = MakeDict(r.heap());
  for (const auto& [name, value] : arguments.keyword) dict.As<DictObject>().Set(r.String(std::string(name)), value);
  return PercentFormat(r, ToStr(r, v), dict);
}

Value Indent(Runtime& r, const Value& v, const Arguments& arguments) {
  Bound a("indent", arguments, {"width", "first", "blank"});
  if (!v.is_string()) {
    FailIfUndefined(v);
    Fail("TypeError", "unsupported operand type(s) for +=: '", TypeName(v), "' and 'str'");
  }
  std::string indent;
  if (a.Has(0) && a[0].is_string()) {
    indent = a[0].text();
  } else {
    int64_t width = std::max<int64_t>(Clamp64(a.Integer(0, 4)), 0);
    r.heap().CheckRoom(static_cast<size_t>(width));
    indent.assign(static_cast<size_t>(width), ' ');
  }
  bool first = a.Truth(1, false), blank = a.Truth(2, false);
  r.StepBytes(v.text().size());
  // A newline goes on before the lines are split, so a text that ends in one keeps an empty last line.
  std::string text = std::string(v.text()) + "\n";
  std::string out;
  size_t number = 0;
  for (std::string_view line : SplitLines(text, false)) {
    if (number > 0) out += '\n';
    bool indented = number == 0 ? first : blank || !line.empty();
    if (indented) out += indent;
    out += line;
    ++number;
    r.CheckGrowth(out);
  }
  return r.String(std::move(out)).WithMarkup(v.is_markup());
}

Value Truncate(Runtime& r, const Value& v, const Arguments& arguments) {
  Bound a("truncate", arguments, {"length", "killwords", "end", "leeway"});
  int64_t length = Clamp64(a.Integer(0, 255)), leeway = a.HasValue(3) ? Clamp64(a.Integer(3, 5)) : 5;
  std::string_view end = a.Text(2, "...");
  auto end_size = static_cast<int64_t>(CountCodePoints(end));
  if (length < end_size) Fail("AssertionError", "expected length >= ", end_size, ", got ", length);
  if (leeway < 0) Fail("AssertionError", "expected leeway >= 0, got ", leeway);
  std::optional<int64_t> size = Size(v);
  if (!size) Fail("TypeError", "object of type '", TypeName(v), "' has no len()");
  if (*size <= length + leeway) return v;
  if (!v.is_string()) Fail("TypeError", "'", TypeName(v), "' object cannot be truncated");
  std::string_view s = v.text();
  r.StepBytes(s.size());
  std::string_view kept = s.substr(0, ByteOffset(s, static_cast<size_t>(length - end_size)));
  if (!a.Truth(1, false)) kept = kept.substr(0, std::min(kept.rfind(' '), kept.size()));
  return r.String(std::string(kept) + std::string(end));
}

Value WordCount(Runtime& r, const Value& v, const Arguments& arguments) {
  Bound("wordcount", arguments, {});
  Value text = ToStr(r, v);
  r.StepBytes(4 * text.text().size());
  std::string_view s = text.text();
  Int count = 0;
  bool inside = false;
  for (size_t i = 0, n = 0; i < s.size(); i += n) {
    uint32_t code = DecodeAt(s, i, n);
    bool word = IsAlnum(code) || code == '_';
    count += word && !inside;
    inside = word;
  }
  return Value::Integer(count);
}

Value WordWrap(Runtime& r, const Value& v, const Arguments& arguments) {
  Bound a("wordwrap", arguments, {"width", "break_long_words", "wrapstring", "break_on_hyphens"});
  if (!v.is_string()) {
    FailIfUndefined(v);
    Fail("TypeError", "'", TypeName(v), "' object has no attribute 'splitlines'");
  }
  int64_t width = Clamp64(a.Integer(0, 79));
  std::string_view separator = a.HasValue(2) ? a.Text(2, "\n") : "\n";
  r.StepBytes(32 * v.text().size());
  r.heap().CheckRoom(16 * v.text().size());
  std::string out;
  bool first = true;
  for (std::string_view paragraph : SplitLines(v.text(), false)) {
    if (width <= 0) Fail("ValueError", "invalid width ", width, " (must be > 0)");
    std::vector<std::string> lines = WrapText(paragraph, width, a.Truth(1, true), a.Truth(3, true));
    if (lines.empty()) lines.emplace_back();  // an empty paragraph
    for (const std::string& line : lines) {
      if (!first) out += separator;
      first = false;
      out += line;
    }
    r.CheckGrowth(out);
  }
  return r.String(std::move(out));
}

// Removes everything from `open` to the next `close`, over and over.
void RemoveBetween(Runtime& r, std::string& s, std::string_view open, std::string_view close) {
  for (size_t start = 0; (start = s.find(open, start)) != s.npos;) {
    size_t end = s.find(close, start);
    if (end == s.npos) return;
    r.StepBytes(s.size() - end);
    s.erase(start, end + close.size() - start);
    start -= std::min(start, open.size());
  }
}

std::string Unescaped(std::string_view s) {
  static constexpr std::pair<std::string_view, std::string_view> kEntities[] = {
      {"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&#39;", "'"}, {"&#34;", "\""}, {"&nbsp;", "\xC2\xA0"}};
  std::string out;
  while (!s.empty()) {
    auto it = std::find_if(std::begin(kEntities), std::end(kEntities), [&](const auto& e) { return s.starts_with(e.first); });
    bool entity = it != std::end(kEntities);
    out += entity ? it->second : s.substr(0, 1);
    s.remove_prefix(entity ? it->first.size() : 1);
  }
  return out;
}

Value StripTags(Runtime& r, const Value& v, const Arguments& arguments) {
  Bound("striptags", arguments, {});
  std::string text(ToStr(r, v).text());
  r.StepBytes(4 * text.size());
  RemoveBetween(r, text, "<!--", "-->");
  RemoveBetween(r, text, "<", ">");
  std::string out;
  Value words = Split(r, Value::Borrowed(text), Value(), -1, false);
  for (const Value& word : words.As<SequenceObject>().items) {
    if (!out.empty()) out += ' ';
    out += word.text();
  }
  return r.String(Unescaped(out));
}

void AppendQuoted(std::string& out, std::string_view s, bool query) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  for (char c : s) {
    auto byte = static_cast<unsigned char>(c);
    bool plain = IsAlnum(byte) && byte < 0x80;
    if (plain || c == '_' || c == '.' || c == '-' || c == '~' || (c == '/' && !query)) out += c;
    else if (c == ' ' && query) out += '+';
    else { out += '%'; out += kHex[byte >> 4]; out += kHex[byte & 15]; }
  }
}

Value UrlEncode(Runtime& r, const Value& v, const Arguments& arguments) {
  Bound("urlencode", arguments, {});
  std::string out;
  if (v.is_string() || !IsIterable(v)) {
    AppendQuoted(out, ToStr(r, v).text(), false);
    return r.String(std::move(out));
  }
  Value pairs = v.is(Kind::kDict) ? Value::Of(Kind::kView, new ViewObject(r.heap(), v, ViewObject::What::kItems)) : v;
  Cursor cursor(r, pairs);
  for (Value pair; cursor.Next(pair);) {
    std::vector<Value> items = Collect(r, pair);
    if (items.size() != 2) Fail("ValueError", "urlencode needs pairs");
    if (!out.empty()) out += '&';
    AppendQuoted(out, ToStr(r, items[0]).text(), true);
    out += '=';
    AppendQuoted(out, ToStr(r, items[1]).text(), true);
    r.CheckGrowth(out);
  }
  return r.String(std::move(out));
}

// Filters that jinja2 has and no chat template needs: HTML helpers, pretty printing, chance.
Value Unsupported(Runtime&, const Value&, const Arguments&) {
  Fail("TemplateRuntimeError", "the filters pprint, random, urlize and xmlattr are not supported");
}

constexpr FilterEntry kFilters[] = {
    {"capitalize", Mapped<ToCapitalized>}, {"center", Center}, {"e", Escape}, {"escape", Escape}, {"forceescape", ForceEscape},
    {"format", Format}, {"indent", Indent}, {"lower", Mapped<ToLower>}, {"replace", ReplaceFilter}, {"safe", Safe},
    {"string", Str}, {"striptags", StripTags}, {"title", Mapped<TitleWords>}, {"tojson", ToJsonFilter}, {"trim", Trim},
    {"truncate", Truncate}, {"upper", Mapped<ToUpper>}, {"urlencode", UrlEncode}, {"wordcount", WordCount},
    {"wordwrap", WordWrap}, {"pprint", Unsupported}, {"random", Unsupported}, {"urlize", Unsupported}, {"xmlattr", Unsupported},
};

}  // namespace

FilterTable TextFilters() { return {kFilters, std::size(kFilters)}; }

FilterFunction FindFilter(std::string_view name) {
  for (const FilterTable& table : {TextFilters(), NumberFilters(), SequenceFilters(), SelectionFilters()}) {
    for (size_t i = 0; i < table.count; ++i) {
      if (name == table.entries[i].name) return table.entries[i].function;
    }
  }
  return nullptr;
}

}  // namespace halfbyte::text::jinja
