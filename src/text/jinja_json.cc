#include "text/jinja_arguments.h"
#include "text/jinja_compare.h"
#include "text/jinja_filters.h"
#include "text/jinja_sort.h"
#include "text/jinja_text.h"
#include "text/jinja_unicode.h"

#include <cmath>

namespace halfbyte::text::jinja {
namespace {

using Kind = Value::Kind;

class JsonWriter {
 public:
  JsonWriter(Runtime& r, bool ascii, bool sorted, bool indented, std::string indent, std::string_view comma,
             std::string_view colon)
      : r_(r), ascii_(ascii), sorted_(sorted), indented_(indented), indent_(std::move(indent)), comma_(comma), colon_(colon) {}

  std::string Run(const Value& v) {
    Append(v, 0);
    return std::move(out_);
  }

 private:
  void Append(const Value& v, int level) {
    r_.CheckGrowth(out_);
    switch (v.kind()) {
      case Kind::kNone: out_ += "null"; break;
      case Kind::kBool: out_ += v.boolean() ? "true" : "false"; break;
      case Kind::kInt: AppendInt(out_, v.integer()); break;
      case Kind::kFloat: out_ += Number(v.real()); break;
      case Kind::kString: AppendString(v.text()); break;
      case Kind::kTuple: case Kind::kList: AppendArray(v.As<SequenceObject>().items, level); break;
      case Kind::kDict: AppendObject(v, level); break;
      default: Fail("TypeError", "Object of type ", TypeName(v), " is not JSON serializable");
    }
  }

  static std::string Number(double d) {
    if (std::isnan(d)) return "NaN";
    if (std::isinf(d)) return d > 0 ? "Infinity" : "-Infinity";
    return FloatRepr(d);
  }

  void NewLine(int level) {
    if (!indented_) return;
    r_.heap().CheckRoom(out_.size() + static_cast<size_t>(level) * indent_.size());
    out_ += '\n';
    for (int i = 0; i < level; ++i) out_ += indent_;
  }

  void AppendArray(const std::vector<Value>& items, int level) {
    if (items.empty()) { out_ += "[]"; return; }
    DepthGuard guard(r_);
    out_ += '[';
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_ += comma_;
      NewLine(level + 1);
      Append(items[i], level + 1);
    }
    NewLine(level);
    out_ += ']';
  }

  void AppendObject(const Value& v, int level) {
    std::vector<std::pair<Value, Value>> entries = v.As<DictObject>().entries();
    if (entries.empty()) { out_ += "{}"; return; }
    DepthGuard guard(r_);
    if (sorted_) {
      std::vector<KeyedValue> keyed;
      for (auto& [key, value] : entries) keyed.push_back({key, value});
      SortByKey(r_, keyed, false);
      for (size_t i = 0; i < keyed.size(); ++i) entries[i] = {keyed[i].key, keyed[i].value};
    }
    out_ += '{';
    bool first = true;
    for (const auto& [key, value] : entries) {
      if (!first) out_ += comma_;
      first = false;
      NewLine(level + 1);
      AppendKey(key);
      out_ += colon_;
      Append(value, level + 1);
    }
    NewLine(level);
    out_ += '}';
  }

  void AppendKey(const Value& key) {
    std::string text;
    switch (key.kind()) {
      case Kind::kString: AppendString(key.text()); return;
      case Kind::kBool: text = key.boolean() ? "true" : "false"; break;
      case Kind::kNone: text = "null"; break;
      case Kind::kInt: AppendInt(text, key.integer()); break;
      case Kind::kFloat: text = Number(key.real()); break;
      default: Fail("TypeError", "keys must be str, int, float, bool or None, not ", TypeName(key));
    }
    AppendString(text);
  }

  void AppendUnit(uint32_t unit) {
    char buffer[16];
    std::snprintf(buffer, sizeof buffer, "\\u%04x", unit);
    out_ += buffer;
  }

  void AppendString(std::string_view s) {
    r_.StepBytes(s.size());
    out_ += '"';
    size_t n = 0;
    for (size_t i = 0; i < s.size(); i += n) {
      uint32_t code = DecodeAt(s, i, n);
      switch (code) {
        case '"': out_ += "\\\""; break;
        case '\\': out_ += "\\\\"; break;
        case '\n': out_ += "\\n"; break;
        case '\r': out_ += "\\r"; break;
        case '\t': out_ += "\\t"; break;
        case '\b': out_ += "\\b"; break;
        case '\f': out_ += "\\f"; break;
        default:
          if (code < 0x20 || (ascii_ && code >= 0x7F && code < 0x10000)) {
            AppendUnit(code);
          } else if (ascii_ && code >= 0x10000) {
            AppendUnit(0xD800 + ((code - 0x10000) >> 10));
            AppendUnit(0xDC00 + ((code - 0x10000) & 0x3FF));
          } else {
            out_.append(s, i, n);
          }
      }
    }
    out_ += '"';
  }

  Runtime& r_;
  bool ascii_, sorted_, indented_;
  std::string indent_;
  std::string_view comma_, colon_;
  std::string out_;
};

}  // namespace

Value ToJsonFilter(Runtime& r, const Value& value, const Arguments& arguments) {
  Bound a("tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"});
  bool indented = a.HasValue(1);
  std::string indent;
  if (indented && a[1].is_string()) {
    indent = a[1].text();
  } else if (indented) {
    int64_t width = std::max<int64_t>(Clamp64(a.Integer(1, 0)), 0);
    r.heap().CheckRoom(static_cast<size_t>(width));
    indent.assign(static_cast<size_t>(width), ' ');
  }
  Value comma = Value::Borrowed(indented ? "," : ", "), colon = Value::Borrowed(": ");
  if (a.HasValue(2)) {
    std::vector<Value> pair = Collect(r, a[2]);
    if (pair.size() != 2) Fail("ValueError", "separators must be two strings");
    comma = pair[0];
    colon = pair[1];
    if (!comma.is_string() || !colon.is_string()) Fail("TypeError", "separators must be two strings");
  }
  JsonWriter writer(r, a.Truth(0, false), a.Truth(3, false), indented, std::move(indent), comma.text(), colon.text());
  return r.String(writer.Run(value));
}

}  // namespace halfbyte::text::jinja
