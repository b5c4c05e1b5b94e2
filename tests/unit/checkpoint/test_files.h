// Small model folders written by hand for the tests; nothing here uses the writer under test.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/result.h"

namespace halfbyte::checkpoint {

// A folder that is gone when the test ends.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = std::filesystem::path(testing::TempDir()) / "halfbyte_test_XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ec;
    std::filesystem::remove_all(path_, ec);
  }
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path Write(const std::filesystem::path& name, const std::string& content) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << content;
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

struct RawTensor {
  std::string name, dtype, shape, data;  // shape as in JSON: "[2,3]"
};

// The bytes of a safetensors file with these tensors one after the other.
inline std::string SafetensorsBytes(const std::vector<RawTensor>& tensors) {
  std::string header = R"({"__metadata__":{"format":"pt"})", data;
  for (const RawTensor& t : tensors) {
    header += ",\"" + t.name + "\":{\"dtype\":\"" + t.dtype + "\",\"shape\":" + t.shape + base::StrCat(",\"data_offsets\":[", data.size(), ",", data.size() + t.data.size(), "]}");
    data += t.data;
  }
  header += "}";
  uint64_t n = header.size();
  std::string length(reinterpret_cast<const char*>(&n), 8);
  return length + header + data;
}

inline std::string FloatBytes(const std::vector<float>& values) { return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)); }
inline RawTensor Float(const std::string& name, float value) { return {name, "F32", "[1]", FloatBytes({value})}; }

// The reference data beside the checkout; empty where this machine has none.
inline std::filesystem::path SharedReference() {
  std::filesystem::path path = std::filesystem::path(HALFBYTE_SOURCE_DIR) / ".." / "shared" / "reference";
  return std::filesystem::is_directory(path) ? path : std::filesystem::path();
}
#define HB_NEED_SHARED_REFERENCE() \
  if (::halfbyte::checkpoint::SharedReference().empty()) GTEST_SKIP() << "no reference data beside the checkout (../shared/reference)"

}  // namespace halfbyte::checkpoint
