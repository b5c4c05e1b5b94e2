// model.safetensors.index.json: what is accepted names plain *.safetensors files only, and survives being written and read again.
#include "base/check.h"
#include "checkpoint/model_folder.h"
#include "checkpoint/shard_index.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace halfbyte;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)checkpoint::ParseConfigJson(text);
  auto index = checkpoint::ParseShardIndex(text);
  if (!index) {
    (void)index.error().ToString();
    return 0;
  }
  std::vector<std::pair<std::string, std::string>> file_of;
  for (const auto& [tensor, file] : index->file_of) {
    HB_CHECK(file >= 0 && static_cast<size_t>(file) < index->files.size());
    const std::string& name = index->files[static_cast<size_t>(file)];
    HB_CHECK(checkpoint::CheckPlainFileName(name) && name.ends_with(".safetensors") && name.find('/') == name.npos);
    file_of.emplace_back(tensor, name);
  }
  auto again = checkpoint::ParseShardIndex(checkpoint::WriteShardIndex(file_of, 7));
  HB_CHECK(again && again->files == index->files && again->file_of == index->file_of);
  return 0;
}
