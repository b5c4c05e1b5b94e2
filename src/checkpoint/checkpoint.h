// A Hugging Face model folder with its tensors: opened and checked from headers alone, read by position afterwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "checkpoint/model_folder.h"
#include "platform/file_reader.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace halfbyte::checkpoint {

struct TensorEntry {
  std::string name;
  tensor::DType dtype;
  tensor::Shape shape;
  int file = 0;        // position in Checkpoint::files()
  uint64_t begin = 0;  // byte of the file
  uint64_t size = 0;   // bytes
};

struct CheckpointOptions {
  platform::FileOptions file;  // drop_behind for one-time conversions; faults for tests
};

// Which files count:
// - With model.safetensors.index.json each tensor comes from the file that the index names, whatever else lies in the folder. A file that
//   is missing is refused by name before anything is read; a tensor that its file does not have is refused; tensors that the index does
//   not name are left out and counted in warnings().
// - Without it: model*.safetensors and mtp*.safetensors, or all *.safetensors where no model*.safetensors is there. One name in two files is
//   refused, also where the second is one of the files that do not count (else the file to believe would be a guess).
class Checkpoint {
 public:
  static base::Result<Checkpoint> Open(const std::filesystem::path& folder, CheckpointOptions options = {});

  const ModelFolder& folder() const { return folder_; }
  const base::Json& config() const { return configs_.config; }
  const base::Json& generation_config() const { return configs_.generation_config; }  // null where there is none
  const base::Json& hf_quant_config() const { return configs_.hf_quant_config; }      // null where there is none

  // Sorted by file, then offset: reading them in this order reads each file from front to back.
  const std::vector<TensorEntry>& tensors() const { return tensors_; }
  const TensorEntry* Find(std::string_view name) const;
  const std::vector<platform::ReadOnlyFile>& files() const { return files_; }
  const std::vector<std::string>& file_names() const { return file_names_; }  // of files(), without the folder
  uint64_t total_bytes() const;  // of all tensors

  // The whole tensor into `out`, whose size must be the entry's. Any number of threads may read at once.
  base::Status Read(const TensorEntry& entry, std::span<std::byte> out) const;
  // out.size() bytes from `offset` of the tensor on.
  base::Status ReadRange(const TensorEntry& entry, uint64_t offset, std::span<std::byte> out) const;

  // What a user should hear: stray files and tensors. Complete sentences without a final dot.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  struct Shard;  // a file with its header, while opening
  base::Status OpenIndexed(const CheckpointOptions& options);
  base::Status OpenUnindexed(const CheckpointOptions& options);
  base::Result<Shard> OpenShard(const std::string& name, const CheckpointOptions& options) const;
  base::Result<std::vector<Shard>> OpenShards(const std::vector<std::string>& names, const CheckpointOptions& options) const;
  void Add(int file, const Shard& shard, size_t tensor);
  void Finish();

  ModelFolder folder_;
  ModelConfigs configs_;
  std::vector<platform::ReadOnlyFile> files_;
  std::vector<std::string> file_names_;
  std::vector<TensorEntry> tensors_;
  std::unordered_map<std::string_view, size_t> by_name_;
  std::vector<std::string> warnings_;
};

}  // namespace halfbyte::checkpoint
