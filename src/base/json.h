// A JSON value: ordered objects (chat templates see key order), integers kept apart from floats, no exceptions.
//
// Parsing is strict RFC 8259 in UTF-8 plus limits; a repeated key in an object is an error, because a second "data_offsets"
// in a safetensors header has been used to smuggle tensors in (user case T12).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"

namespace halfbyte::base {

class Json {
 public:
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Object = std::vector<Member>;  // in the order of the text

  enum class Type { kNull, kBool, kInt, kUint, kDouble, kString, kArray, kObject };

  Json() = default;
  Json(std::nullptr_t) {}
  Json(bool v) : value_(v) {}
  template <typename Int>
    requires(std::is_integral_v<Int> && !std::is_same_v<Int, bool>)
  Json(Int v) {
    if constexpr (std::is_signed_v<Int>) value_ = static_cast<int64_t>(v);
    else if (v <= static_cast<uint64_t>(INT64_MAX)) value_ = static_cast<int64_t>(v);
    else value_ = static_cast<uint64_t>(v);
  }
  Json(double v) : value_(v) {}
  Json(const char* v) : value_(std::string(v)) {}
  Json(std::string_view v) : value_(std::string(v)) {}
  Json(std::string v) : value_(std::move(v)) {}
  Json(Array v) : value_(std::move(v)) {}
  Json(Object v) : value_(std::move(v)) {}
  static Json MakeArray() { return Json(Array{}); }
  static Json MakeObject() { return Json(Object{}); }

  // kUint only for integers above INT64_MAX.
  Type type() const { return static_cast<Type>(value_.index()); }
  bool is_null() const { return type() == Type::kNull; }
  bool is_bool() const { return type() == Type::kBool; }
  bool is_int() const { return type() == Type::kInt; }
  bool is_number() const { return type() == Type::kInt || type() == Type::kUint || type() == Type::kDouble; }
  bool is_string() const { return type() == Type::kString; }
  bool is_array() const { return type() == Type::kArray; }
  bool is_object() const { return type() == Type::kObject; }
  static const char* TypeName(Type type);  // "null", "boolean", "integer", "number", "string", "array", "object"
  const char* type_name() const { return TypeName(type()); }

  // The wrong type is a programmer's mistake (std::get throws bad_variant_access): test first, or use the Get* below.
  bool as_bool() const { return std::get<bool>(value_); }
  int64_t as_int() const { return std::get<int64_t>(value_); }
  uint64_t as_uint() const { return type() == Type::kUint ? std::get<uint64_t>(value_) : static_cast<uint64_t>(as_int()); }
  double as_double() const;  // of any number
  const std::string& as_string() const { return std::get<std::string>(value_); }
  const Array& as_array() const { return std::get<Array>(value_); }
  Array& as_array() { return std::get<Array>(value_); }
  const Object& as_object() const { return std::get<Object>(value_); }
  Object& as_object() { return std::get<Object>(value_); }

  // The member's value, or nullptr where this is no object or has no such member.
  const Json* Find(std::string_view key) const;
  Json* Find(std::string_view key);
  // Sets or adds a member; this must be an object (or null, which becomes one).
  Json& Set(std::string_view key, Json value);
  void Push(Json value);  // this must be an array (or null, which becomes one)

  // Typed members with a message that names the key: "\"hidden_size\" is a string, an integer is wanted".
  // The *Or forms give the default where the key is absent or null, and still fail on a wrong type.
  Result<int64_t> GetInt(std::string_view key) const;
  Result<int64_t> GetIntOr(std::string_view key, int64_t otherwise) const;
  Result<double> GetDouble(std::string_view key) const;
  Result<double> GetDoubleOr(std::string_view key, double otherwise) const;
  Result<bool> GetBoolOr(std::string_view key, bool otherwise) const;
  Result<std::string> GetString(std::string_view key) const;
  Result<std::string> GetStringOr(std::string_view key, std::string_view otherwise) const;

  struct ParseOptions {
    int max_depth = 256;
    bool allow_nonfinite = false;  // accept bare Infinity, -Infinity, NaN (some released config.json files have them)
    bool allow_duplicate_keys = false;
  };
  static Result<Json> Parse(std::string_view text) { return Parse(text, ParseOptions{}); }
  static Result<Json> Parse(std::string_view text, ParseOptions options);

  // Compact when indent < 0. Non-finite numbers become null (JSON has no word for them); strings that are not UTF-8 get U+FFFD.
  std::string Dump(int indent = -1) const;

  friend bool operator==(const Json& a, const Json& b) { return a.value_ == b.value_; }

 private:
  std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string, Array, Object> value_;
};

}  // namespace halfbyte::base
