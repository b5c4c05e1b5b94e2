// ConfigReader: config.json as families read it: nested or flat, old names or new ones, and a look at which tensors exist.
#pragma once

#include <functional>
#include <initializer_list>
#include <string_view>

#include "base/json.h"

namespace halfbyte::model {

class ConfigReader {
 public:
  // has_tensor: whether the checkpoint holds a tensor of this (unwrapped) name; empty where only config.json is known (inspect --config, dummy weights).
  ConfigReader(const base::Json& config, const base::Json& generation_config, std::function<bool(std::string_view)> has_tensor = {});

  // Text fields: those of text_config where the model is wrapped, else the top level.
  const base::Json& text() const { return text_; }
  const base::Json& generation() const { return generation_; }

  // The first of the names that is there and not null; `Or` forms give the default where none is. An expert count has three names (model-families trap 1).
  base::Result<int64_t> Int(std::initializer_list<std::string_view> names) const;
  base::Result<int64_t> IntOr(std::initializer_list<std::string_view> names, int64_t otherwise) const;
  base::Result<double> DoubleOr(std::initializer_list<std::string_view> names, double otherwise) const;
  base::Result<bool> BoolOr(std::initializer_list<std::string_view> names, bool otherwise) const;
  // A positive integer not above `limit`: what sizes of memory are computed from.
  base::Result<int64_t> Size(std::initializer_list<std::string_view> names, int64_t limit = int64_t{1} << 31) const;
  base::Result<int64_t> SizeOr(std::initializer_list<std::string_view> names, int64_t otherwise) const;

  bool knows_tensors() const { return static_cast<bool>(has_tensor_); }
  bool HasTensor(std::string_view name) const { return has_tensor_ && has_tensor_(name); }

 private:
  const base::Json* First(std::initializer_list<std::string_view> names, std::string_view& found) const;
  base::Json text_, generation_;
  std::function<bool(std::string_view)> has_tensor_;
};

}  // namespace halfbyte::model
