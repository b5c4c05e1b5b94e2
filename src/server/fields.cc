#include "server/fields.h"

#include <cmath>

namespace halfbyte::server {

Fields::Fields(const base::Json& object, std::string prefix) : object_(object), prefix_(std::move(prefix)) {}

void Fields::Fail(std::string_view name, std::string_view message) {
  if (!error_) error_ = ApiError{400, base::StrCat(prefix_, name, ": ", message), base::StrCat(prefix_, name), "invalid_value"};
}

const base::Json* Fields::Get(std::string_view name) {
  known_.emplace(name);
  const base::Json* value = object_.Find(name);
  return value && !value->is_null() ? value : nullptr;
}

void Fields::Double(std::string_view name, double low, double high, double& out) {
  const base::Json* v = Get(name);
  if (!v) return;
  if (!v->is_number()) return Fail(name, base::StrCat("has type ", v->type_name(), ", a number is wanted"));
  const double d = v->as_double();
  if (!(d >= low && d <= high)) return Fail(name, base::StrCat("is ", d, ", a number from ", low, " to ", high, " is wanted"));
  out = d;
}

void Fields::Float(std::string_view name, double low, double high, float& out) {
  double d = out;
  Double(name, low, high, d);
  out = static_cast<float>(d);
}

void Fields::Int(std::string_view name, int64_t low, int64_t high, std::optional<int64_t>& out) {
  const base::Json* v = Get(name);
  if (!v) return;
  int64_t i = 0;
  if (v->is_int()) {
    i = v->as_int();
  } else if (v->type() == base::Json::Type::kDouble && std::nearbyint(v->as_double()) == v->as_double() && std::abs(v->as_double()) < 9e15) {
    i = static_cast<int64_t>(v->as_double());  // 16.0: some clients have no integers
  } else {
    return Fail(name, base::StrCat("is ", v->is_number() ? "no integer that fits" : base::StrCat("a value of type ", v->type_name()), ", an integer is wanted"));
  }
  if (i < low || i > high) return Fail(name, base::StrCat("is ", i, ", an integer from ", low, " to ", high, " is wanted"));
  out = i;
}

void Fields::Int(std::string_view name, int64_t low, int64_t high, int64_t& out) {
  std::optional<int64_t> value;
  Int(name, low, high, value);
  if (value) out = *value;
}

void Fields::Bool(std::string_view name, bool& out) {
  const base::Json* v = Get(name);
  if (!v) return;
  if (!v->is_bool()) return Fail(name, base::StrCat("has type ", v->type_name(), ", true or false is wanted"));
  out = v->as_bool();
}

void Fields::String(std::string_view name, std::string& out) {
  const base::Json* v = Get(name);
  if (!v) return;
  if (!v->is_string()) return Fail(name, base::StrCat("has type ", v->type_name(), ", a string is wanted"));
  out = v->as_string();
}

void Fields::Strings(std::string_view name, size_t most, std::vector<std::string>& out) {
  const base::Json* v = Get(name);
  if (!v) return;
  if (v->is_string()) {
    out = {v->as_string()};
    return;
  }
  if (!v->is_array()) return Fail(name, base::StrCat("has type ", v->type_name(), ", a string or an array of strings is wanted"));
  if (v->as_array().size() > most) return Fail(name, base::StrCat("has ", v->as_array().size(), " entries, at most ", most, " are taken"));
  out.clear();
  for (const base::Json& s : v->as_array()) {
    if (!s.is_string()) return Fail(name, base::StrCat("holds a ", s.type_name(), ", strings are wanted"));
    out.push_back(s.as_string());
  }
}

void Fields::Tokens(std::string_view name, int64_t vocab, std::vector<int32_t>& out) {
  const base::Json* v = Get(name);
  if (!v) return;
  if (!v->is_array()) return Fail(name, base::StrCat("has type ", v->type_name(), ", an array of token ids is wanted"));
  out.clear();
  for (const base::Json& t : v->as_array()) {
    if (!t.is_int() || t.as_int() < 0 || t.as_int() >= vocab) return Fail(name, base::StrCat("holds something that is no token id (integers from 0 to ", vocab - 1, ")"));
    out.push_back(static_cast<int32_t>(t.as_int()));
  }
}

void Fields::Refuse(std::string_view name, const base::Json& harmless, std::string_view why) {
  const base::Json* v = Get(name);
  if (v && !(*v == harmless)) Fail(name, why);
}

std::vector<std::string> Fields::Unknown() const {
  std::vector<std::string> unknown;
  if (!object_.is_object()) return unknown;
  for (const auto& [name, value] : object_.as_object())
    if (!known_.count(name)) unknown.push_back(prefix_ + name);
  return unknown;
}

}  // namespace halfbyte::server
