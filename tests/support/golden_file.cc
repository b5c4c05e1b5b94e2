#include "support/golden_file.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "base/json.h"
#include "support/weight_data.h"

namespace halfbyte::test {

namespace fs = std::filesystem;

int64_t GoldenTensor::elements() const {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}

std::vector<float> GoldenTensor::Floats() const {
  if (dtype == "F32") return As<float>();
  HB_CHECK(dtype == "BF16", dtype);
  std::vector<float> out;
  for (uint16_t bits : As<uint16_t>()) out.push_back(static_cast<float>(Bf16Value(bits)));
  return out;
}

GoldenFile ReadGolden(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream stream;
  stream << in.rdbuf();
  const std::string file = stream.str();
  HB_CHECK(file.size() > 8, path.string(), " cannot be read");
  uint64_t header_size = 0;
  std::memcpy(&header_size, file.data(), 8);
  const auto header = base::Json::Parse(std::string_view(file).substr(8, header_size));
  HB_CHECK(header.has_value(), path.string());
  GoldenFile tensors;
  for (const auto& [name, entry] : header->as_object()) {
    if (name == "__metadata__") continue;
    GoldenTensor t{.dtype = entry.Find("dtype")->as_string()};
    for (const auto& d : entry.Find("shape")->as_array()) t.shape.push_back(d.as_int());
    const auto& offsets = entry.Find("data_offsets")->as_array();
    const char* data = file.data() + 8 + header_size;
    t.bytes.assign(data + offsets[0].as_int(), data + offsets[1].as_int());
    tensors[name] = std::move(t);
  }
  return tensors;
}

std::vector<fs::path> GoldenMoeModels() {
  std::vector<fs::path> folders;
  const fs::path models = HALFBYTE_SOURCE_DIR "/../shared/reference/models";
  if (fs::exists(models))
    for (const auto& entry : fs::directory_iterator(models))
      if (fs::exists(entry.path() / "expected_nvfp4.safetensors")) folders.push_back(entry.path());
  if (folders.empty()) folders.push_back(HALFBYTE_SOURCE_DIR "/tests/data/numerics/olmoe");
  std::sort(folders.begin(), folders.end());
  return folders;
}

}  // namespace halfbyte::test
