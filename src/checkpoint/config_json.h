// Pieces that both dialects' configurations are made of.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
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

// Layers that stay FP8: group_1, group_2, ... of `groups`, one for each format in the order of its first layer. make(format, modules) writes a group.
template <typename MakeGroup>
void AddKeptGroups(const WrittenQuant& written, const MakeGroup& make, base::Json& groups) {
  std::vector<std::pair<LayerQuant, std::vector<std::string>>> formats;
  for (const auto& [module, quant] : written.kept_quantized) {
    auto same = std::find_if(formats.begin(), formats.end(), [&](const auto& f) { return f.first == quant; });
    if (same == formats.end()) same = formats.insert(formats.end(), {quant, {}});
    same->second.push_back(module);
  }
  for (size_t i = 0; i < formats.size(); ++i) groups.Set(base::StrCat("group_", i + 1), make(formats[i].first, formats[i].second));
}

}  // namespace halfbyte::checkpoint::internal
