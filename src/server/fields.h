// Typed reading of a request's JSON object: each field is read by name, the first that is wrong is remembered (400 with the field's name), and
// what was never asked for is unknown. null counts as absent everywhere, as clients send it.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "server/api_error.h"

namespace halfbyte::server {

class Fields {
 public:
  // `object` is borrowed. `prefix` goes before field names in messages: "sampling_params.".
  explicit Fields(const base::Json& object, std::string prefix = "");

  // The value, or null where it is absent or null.
  const base::Json* Get(std::string_view name);
  // Each leaves `out` alone where the field is absent, and remembers an error where it has another type or is out of [low, high].
  void Double(std::string_view name, double low, double high, double& out);
  void Float(std::string_view name, double low, double high, float& out);
  void Int(std::string_view name, int64_t low, int64_t high, int64_t& out);
  void Int(std::string_view name, int64_t low, int64_t high, std::optional<int64_t>& out);
  void Bool(std::string_view name, bool& out);
  void String(std::string_view name, std::string& out);
  // A string or an array of strings.
  void Strings(std::string_view name, size_t most, std::vector<std::string>& out);
  void Tokens(std::string_view name, int64_t vocab, std::vector<int32_t>& out);
  // Known and deliberately without effect.
  void Ignore(std::initializer_list<std::string_view> names) { for (std::string_view n : names) known_.emplace(n); }
  // Known, not done: an error unless absent, null or equal to `harmless`.
  void Refuse(std::string_view name, const base::Json& harmless, std::string_view why);

  void Fail(std::string_view name, std::string_view message);
  void Fail(ApiError error) { if (!error_) error_ = std::move(error); }
  const std::optional<ApiError>& error() const { return error_; }
  std::vector<std::string> Unknown() const;

 private:
  const base::Json& object_;
  std::string prefix_;
  std::set<std::string, std::less<>> known_;
  std::optional<ApiError> error_;
};

}  // namespace halfbyte::server
