// model.safetensors.index.json: which file holds which tensor. Where there is one it decides, tensor by tensor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace halfbyte::checkpoint {

constexpr const char* kIndexFileName = "model.safetensors.index.json";

struct ShardIndex {
  std::vector<std::string> files;                  // sorted, each once, all plain file names
  std::unordered_map<std::string, int> file_of;    // tensor name -> position in files
  std::optional<uint64_t> total_size;              // metadata.total_size; a hint for progress, never trusted (released files have wrong ones)
};

// kBadFile for what is no index: no weight_map, a file name with a path, a file that is no *.safetensors, a repeated tensor.
base::Result<ShardIndex> ParseShardIndex(std::string_view json);

// The text of an index file for `file_of`, names sorted, as huggingface_hub writes it (indented by two).
std::string WriteShardIndex(const std::vector<std::pair<std::string, std::string>>& file_of, uint64_t total_size);

}  // namespace halfbyte::checkpoint
