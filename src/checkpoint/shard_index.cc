#include "checkpoint/shard_index.h"

#include <algorithm>

#include "checkpoint/model_folder.h"

namespace halfbyte::checkpoint {

using base::ErrorCode;
using base::Fail;
using base::Json;

base::Result<ShardIndex> ParseShardIndex(std::string_view text) {
  HB_ASSIGN_OR_RETURN(Json json, Json::Parse(text, {.max_depth = 16}));
  if (!json.is_object()) return Fail(ErrorCode::kBadFile, "the index is a JSON ", json.type_name(), ", an object is wanted");
  const Json* map = json.Find("weight_map");
  if (!map || !map->is_object()) return Fail(ErrorCode::kBadFile, "the index has no object \"weight_map\"");

  ShardIndex index;
  for (const auto& [tensor, file] : map->as_object()) {
    if (!file.is_string()) return Fail(ErrorCode::kBadFile, "weight_map gives \"", tensor, "\" a JSON ", file.type_name(), ", a file name is wanted");
    if (base::Status s = CheckPlainFileName(file.as_string()); !s) return Fail(std::move(s.error()).At(base::StrCat("weight_map of \"", tensor, "\"")));
    if (!file.as_string().ends_with(".safetensors")) return Fail(ErrorCode::kUnsupported, "weight_map puts \"", tensor, "\" into ", file.as_string(), "; only *.safetensors files are read");
    index.files.push_back(file.as_string());
  }
  std::sort(index.files.begin(), index.files.end());
  index.files.erase(std::unique(index.files.begin(), index.files.end()), index.files.end());
  for (const auto& [tensor, file] : map->as_object())
    index.file_of.emplace(tensor, static_cast<int>(std::lower_bound(index.files.begin(), index.files.end(), file.as_string()) - index.files.begin()));

  if (const Json* metadata = json.Find("metadata"))
    if (const Json* size = metadata->Find("total_size"); size && size->is_int() && size->as_int() >= 0) index.total_size = size->as_uint();
  return index;
}

std::string WriteShardIndex(const std::vector<std::pair<std::string, std::string>>& file_of, uint64_t total_size) {
  auto sorted = file_of;
  std::sort(sorted.begin(), sorted.end());
  Json::Object map;
  for (auto& [tensor, file] : sorted) map.emplace_back(std::move(tensor), Json(std::move(file)));
  Json index;
  Json metadata;
  metadata.Set("total_size", total_size);
  index.Set("metadata", std::move(metadata));
  index.Set("weight_map", std::move(map));
  return index.Dump(2) + "\n";
}

}  // namespace halfbyte::checkpoint
