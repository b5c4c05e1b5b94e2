#include "base/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_set>

namespace halfbyte::base {
namespace {

// Builds a Json from nlohmann's SAX events, with a depth limit and a check for repeated keys.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Builder(Json::ParseOptions options) : options_(options) {}

  bool null() override { return Add(Json()); }
  bool boolean(bool v) override { return Add(Json(v)); }
  bool number_integer(number_integer_t v) override { return Add(Json(static_cast<int64_t>(v))); }
  bool number_unsigned(number_unsigned_t v) override { return Add(Json(static_cast<uint64_t>(v))); }
  bool number_float(number_float_t v, const string_t&) override { return Add(Json(v)); }
  bool string(string_t& v) override { return Add(Json(std::move(v))); }
  bool binary(binary_t&) override { return Stop("binary value"); }
  bool start_object(std::size_t) override { return Open(Json::MakeObject()); }
  bool start_array(std::size_t) override { return Open(Json::MakeArray()); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool key(string_t& v) override {
    Frame& top = stack_.back();
    if (!options_.allow_duplicate_keys && !IsNewKey(top, v)) return Stop("the key \"" + v + "\" appears twice in one object");
    top.value.as_object().emplace_back(std::move(v), Json());
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& e) override {
    // nlohmann's text starts with "[json.exception...] parse error at line 1, column 2: "; the part after it is for people.
    std::string_view what = e.what();
    if (size_t at = what.find("] "); at != what.npos) what.remove_prefix(at + 2);
    return Stop(StrCat("byte ", position, ": ", what));
  }

  Json Take() { return std::move(root_); }
  const std::string& error() const { return error_; }

 private:
  struct Frame {
    Json value;
    std::unordered_set<std::string> keys;  // filled once an object is large; small ones are searched
  };
  static constexpr size_t kSearchedKeys = 16;

  bool IsNewKey(Frame& top, const std::string& key) {
    const Json::Object& members = top.value.as_object();
    if (members.size() < kSearchedKeys)
      return std::none_of(members.begin(), members.end(), [&](const auto& m) { return m.first == key; });
    if (top.keys.empty()) for (const auto& m : members) top.keys.insert(m.first);
    return top.keys.insert(key).second;
  }
  bool Stop(std::string why) {
    if (error_.empty()) error_ = std::move(why);
    return false;
  }
  bool Add(Json v) {
    if (stack_.empty()) { root_ = std::move(v); return true; }
    Json& top = stack_.back().value;
    if (top.is_array()) top.as_array().push_back(std::move(v));
    else top.as_object().back().second = std::move(v);
    return true;
  }
  bool Open(Json v) {
    if (stack_.size() >= static_cast<size_t>(options_.max_depth)) return Stop(StrCat("nested deeper than ", options_.max_depth));
    stack_.push_back(Frame{std::move(v), {}});
    return true;
  }
  bool Close() {
    Json v = std::move(stack_.back().value);
    stack_.pop_back();
    return Add(std::move(v));
  }

  Json::ParseOptions options_;
  std::vector<Frame> stack_;
  Json root_;
  std::string error_;
};

// Writes bare Infinity, -Infinity and NaN outside strings as strings of our own, which RestoreNonfinite turns into numbers after the parse. (As number
// text they would not survive: the parser refuses 1e999 as out of range.)
std::string QuoteNonfinite(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 16);
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (in_string) {
      out.push_back(c);
      if (c == '\\' && i + 1 < text.size()) out.push_back(text[++i]);
      else if (c == '"') in_string = false;
      continue;
    }
    auto word = [&](std::string_view w) { return text.substr(i, w.size()) == w; };
    if (word("-Infinity")) { out += "\"__hb_-inf__\""; i += 8; }
    else if (word("Infinity")) { out += "\"__hb_inf__\""; i += 7; }
    else if (word("NaN")) { out += "\"__hb_nan__\""; i += 2; }
    else { if (c == '"') in_string = true; out.push_back(c); }
  }
  return out;
}

void RestoreNonfinite(Json& v) {
  if (v.is_string()) {
    const std::string& s = v.as_string();
    if (s == "__hb_inf__") v = Json(std::numeric_limits<double>::infinity());
    else if (s == "__hb_-inf__") v = Json(-std::numeric_limits<double>::infinity());
    else if (s == "__hb_nan__") v = Json(std::numeric_limits<double>::quiet_NaN());
  } else if (v.is_array()) {
    for (Json& e : v.as_array()) RestoreNonfinite(e);
  } else if (v.is_object()) {
    for (auto& m : v.as_object()) RestoreNonfinite(m.second);
  }
}

void AppendString(std::string& out, std::string_view s) {
  nlohmann::json j = std::string(s);
  out += j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void AppendNumber(std::string& out, double v) {
  if (!std::isfinite(v)) { out += "null"; return; }
  char buffer[32];
  auto [end, ec] = std::to_chars(buffer, buffer + sizeof buffer, v);
  std::string_view text(buffer, end - buffer);
  out += text;
  if (text.find_first_of(".en") == text.npos) out += ".0";  // a float stays a float when it is read again
}

void DumpTo(std::string& out, const Json& v, int indent, int depth) {
  auto newline = [&](int d) {
    if (indent < 0) return;
    out.push_back('\n');
    out.append(static_cast<size_t>(indent) * d, ' ');
  };
  switch (v.type()) {
    case Json::Type::kNull: out += "null"; break;
    case Json::Type::kBool: out += v.as_bool() ? "true" : "false"; break;
    case Json::Type::kInt: out += std::to_string(v.as_int()); break;
    case Json::Type::kUint: out += std::to_string(v.as_uint()); break;
    case Json::Type::kDouble: AppendNumber(out, v.as_double()); break;
    case Json::Type::kString: AppendString(out, v.as_string()); break;
    case Json::Type::kArray: {
      out.push_back('[');
      bool first = true;
      for (const Json& e : v.as_array()) {
        if (!first) out.push_back(',');
        first = false;
        newline(depth + 1);
        DumpTo(out, e, indent, depth + 1);
      }
      if (!first) newline(depth);
      out.push_back(']');
      break;
    }
    case Json::Type::kObject: {
      out.push_back('{');
      bool first = true;
      for (const auto& [key, e] : v.as_object()) {
        if (!first) out.push_back(',');
        first = false;
        newline(depth + 1);
        AppendString(out, key);
        out += indent < 0 ? ":" : ": ";
        DumpTo(out, e, indent, depth + 1);
      }
      if (!first) newline(depth);
      out.push_back('}');
      break;
    }
  }
}

tl::unexpected<Error> WrongType(std::string_view key, const Json& v, std::string_view wanted) {
  return Fail(ErrorCode::kInvalidArgument, "\"", key, "\" is of type ", v.type_name(), ", ", wanted, " is wanted");
}
tl::unexpected<Error> Missing(std::string_view key) {
  return Fail(ErrorCode::kInvalidArgument, "\"", key, "\" is missing");
}

}  // namespace

const char* Json::TypeName(Type type) {
  switch (type) {
    case Type::kNull: return "null";
    case Type::kBool: return "boolean";
    case Type::kInt: case Type::kUint: return "integer";
    case Type::kDouble: return "number";
    case Type::kString: return "string";
    case Type::kArray: return "array";
    case Type::kObject: return "object";
  }
  return "?";
}

double Json::as_double() const {
  if (auto* i = std::get_if<int64_t>(&value_)) return static_cast<double>(*i);
  if (auto* u = std::get_if<uint64_t>(&value_)) return static_cast<double>(*u);
  return std::get<double>(value_);
}

const Json* Json::Find(std::string_view key) const {
  const auto* members = std::get_if<Object>(&value_);
  if (!members) return nullptr;
  for (const auto& m : *members) if (m.first == key) return &m.second;
  return nullptr;
}
Json* Json::Find(std::string_view key) { return const_cast<Json*>(std::as_const(*this).Find(key)); }

Json& Json::Set(std::string_view key, Json value) {
  if (is_null()) value_ = Object{};
  if (Json* old = Find(key)) { *old = std::move(value); return *old; }
  return as_object().emplace_back(std::string(key), std::move(value)).second;
}
void Json::Push(Json value) {
  if (is_null()) value_ = Array{};
  as_array().push_back(std::move(value));
}

Result<int64_t> Json::GetInt(std::string_view key) const {
  const Json* v = Find(key);
  if (!v || v->is_null()) return Missing(key);
  if (v->is_int()) return v->as_int();
  // 4096.0 is an integer to everyone who writes configuration files by hand.
  if (v->type() == Type::kDouble && std::nearbyint(v->as_double()) == v->as_double() && std::abs(v->as_double()) < 9e15)
    return static_cast<int64_t>(v->as_double());
  return WrongType(key, *v, "an integer");
}
Result<int64_t> Json::GetIntOr(std::string_view key, int64_t otherwise) const {
  const Json* v = Find(key);
  return !v || v->is_null() ? Result<int64_t>(otherwise) : GetInt(key);
}
Result<double> Json::GetDouble(std::string_view key) const {
  const Json* v = Find(key);
  if (!v || v->is_null()) return Missing(key);
  if (!v->is_number()) return WrongType(key, *v, "a number");
  return v->as_double();
}
Result<double> Json::GetDoubleOr(std::string_view key, double otherwise) const {
  const Json* v = Find(key);
  return !v || v->is_null() ? Result<double>(otherwise) : GetDouble(key);
}
Result<bool> Json::GetBoolOr(std::string_view key, bool otherwise) const {
  const Json* v = Find(key);
  if (!v || v->is_null()) return otherwise;
  if (!v->is_bool()) return WrongType(key, *v, "true or false");
  return v->as_bool();
}
Result<std::string> Json::GetString(std::string_view key) const {
  const Json* v = Find(key);
  if (!v || v->is_null()) return Missing(key);
  if (!v->is_string()) return WrongType(key, *v, "a string");
  return v->as_string();
}
Result<std::string> Json::GetStringOr(std::string_view key, std::string_view otherwise) const {
  const Json* v = Find(key);
  return !v || v->is_null() ? Result<std::string>(std::string(otherwise)) : GetString(key);
}

Result<Json> Json::Parse(std::string_view text, ParseOptions options) {
  // nlohmann's parser takes a zero byte for the end of its input; JSON has none, not even inside strings.
  if (size_t zero = text.find('\0'); zero != text.npos) return Fail(ErrorCode::kBadFile, "not valid JSON: zero byte at ", zero);
  Builder builder(options);
  std::string quoted;
  if (options.allow_nonfinite) { quoted = QuoteNonfinite(text); text = quoted; }
  bool ok = nlohmann::json::sax_parse(text.begin(), text.end(), &builder, nlohmann::json::input_format_t::json, /*strict=*/true);
  if (!ok) return Fail(ErrorCode::kBadFile, "not valid JSON: ", builder.error());
  Json value = builder.Take();
  if (options.allow_nonfinite) RestoreNonfinite(value);
  return value;
}

std::string Json::Dump(int indent) const {
  std::string out;
  DumpTo(out, *this, indent, 0);
  return out;
}

}  // namespace halfbyte::base
