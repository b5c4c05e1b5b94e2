// Pieces that both dialects' configurations are made of.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "checkpoint/quant_config_writer.h"

namespace halfbyte::checkpoint::internal {

inline base::Json Strings(const std::vector<std::string>& names) {
  base::Json list = base::Json::MakeArray();
  for (const std::string& n : names) list.Push(n);
  return list;
}

inline base::Json Producer(const WrittenQuant& written) {
  base::Json producer(base::Json::Object{{"name", "halfbyte"}, {"version", written.version}});
  for (const auto& [key, value] : written.settings) producer.Set(key, value);
  return producer;
}

}  // namespace halfbyte::checkpoint::internal
