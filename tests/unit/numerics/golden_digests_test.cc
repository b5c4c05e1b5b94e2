// Every digest of nvfp4_sha256.json, in all columns: the experts of the reference models (BF16, and FP8 by block, tensor and channel)
// under the load-time contract and ModelOpt's two flavours. olmoe's copy in tests/data holds the planted special cases (a zero block,
// an underflowing scale, -0.0, ties, an outlier, a zero matrix, a tiny expert); the others are used where the reference data stands.
#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "base/json.h"
#include "numerics/fp8_dequantizer.h"
#include "numerics/weight_quantizer.h"
#include "unit/numerics/test_matrices.h"

namespace halfbyte::numerics {
namespace {

namespace fs = std::filesystem;

std::string ReadFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream s;
  s << in.rdbuf();
  return s.str();
}

struct TestTensor {
  std::string dtype;
  int64_t rows = 1, cols = 1;
  std::string bytes;
};

// A trusting reader for our own files; the product's, which trusts nothing, is src/checkpoint.
std::map<std::string, TestTensor> ReadTensors(const fs::path& path) {
  const std::string file = ReadFile(path);
  uint64_t header_size = 0;
  std::memcpy(&header_size, file.data(), 8);
  const auto header = base::Json::Parse(file.substr(8, header_size));
  std::map<std::string, TestTensor> tensors;
  for (const auto& [name, entry] : header->as_object()) {
    if (name == "__metadata__") continue;
    TestTensor t{.dtype = entry.Find("dtype")->as_string()};
    const auto& shape = entry.Find("shape")->as_array();
    if (!shape.empty()) t.rows = shape[0].as_int();
    if (shape.size() > 1) t.cols = shape[1].as_int();
    const auto& offsets = entry.Find("data_offsets")->as_array();
    t.bytes = file.substr(8 + header_size + offsets[0].as_int(), offsets[1].as_int() - offsets[0].as_int());
    tensors[name] = t;
  }
  return tensors;
}

std::string Digest(const void* data, size_t n) {
  unsigned char hash[32];
  unsigned int length = 0;
  EVP_Digest(data, n, hash, &length, EVP_sha256(), nullptr);
  std::string s;
  for (int i = 0; i < 8; ++i) s += {"0123456789abcdef"[hash[i] >> 4], "0123456789abcdef"[hash[i] & 15]};
  return s;
}

std::vector<float> Scales(const TestTensor& t) {
  std::vector<float> v;
  if (t.dtype == "BF16") {
    for (size_t i = 0; i < t.bytes.size(); i += 2) {
      uint16_t b;
      std::memcpy(&b, t.bytes.data() + i, 2);
      v.push_back(Bf16ToFloat(b));
    }
  } else {
    v.resize(t.bytes.size() / 4);
    std::memcpy(v.data(), t.bytes.data(), t.bytes.size());
  }
  return v;
}

// The tensor as the quantizer sees it: BF16 values, FP8 through FP32 and one rounding to BF16.
std::vector<float> Values(const std::map<std::string, TestTensor>& tensors, const std::string& name) {
  const TestTensor& t = tensors.at(name);
  if (t.dtype == "BF16") return Scales(t);
  std::vector<float> x(t.rows * t.cols);
  const bool block = tensors.contains(name + "_scale_inv");
  const std::vector<float> scales = Scales(tensors.at(name + (block ? "_scale_inv" : "_scale")));
  const Fp8Scales view = block ? Fp8PerBlock(scales.data(), t.cols, 32, 32)
                         : scales.size() == 1 ? Fp8PerTensor(scales.data(), t.rows, t.cols) : Fp8PerRow(scales.data(), t.cols);
  DequantizeFp8(reinterpret_cast<const uint8_t*>(t.bytes.data()), tensor::DType::kF8E4M3, t.cols, view, 0, t.rows, x.data());
  for (float& v : x) v = RoundToBf16(v);
  return x;
}

// gate and up (w1 and w3) of one expert share the amax.
std::string Partner(const std::string& name) {
  for (auto [a, b] : {std::pair("gate_proj", "up_proj"), std::pair("up_proj", "gate_proj"), std::pair(".w1.", ".w3."), std::pair(".w3.", ".w1.")}) {
    if (size_t at = name.find(a); at != std::string::npos) return std::string(name).replace(at, std::strlen(a), b);
  }
  return name;
}

int CheckFolder(const fs::path& folder) {
  const std::map<std::string, TestTensor> tensors = ReadTensors(folder / "model.safetensors");
  const auto table = base::Json::Parse(ReadFile(folder / "nvfp4_sha256.json"));
  const std::map<std::string, WeightContract> contracts = {{"online", WeightContract::Online()},
                                                           {"modelopt_cuda", WeightContract::Modelopt(Flavour::kCuda)},
                                                           {"modelopt_cpu", WeightContract::Modelopt(Flavour::kCpu)}};
  int checked = 0;
  const auto& columns = table->Find("columns")->as_array();
  for (const auto& [name, digests] : table->Find("tensors")->as_object()) {
    if (!name.ends_with(".weight")) continue;
    const std::vector<float> x = Values(tensors, name);
    const AmaxResult amax = Merge(Amax(x), Amax(Values(tensors, Partner(name))));
    const TestTensor& t = tensors.at(name);
    for (size_t c = 0; c < columns.size(); ++c) {
      const WeightContract& contract = contracts.at(columns[c].as_string());
      const GlobalScale scale = GlobalScaleFor(contract, amax.amax);
      std::vector<uint8_t> codes(x.size() / 2), scales(x.size() / 16);
      QuantizeMatrix(contract, x.data(), t.rows, t.cols, scale, codes.data(), scales.data());
      const auto want = [&](const std::string& suffix) { return table->Find("tensors")->Find(name + suffix)->as_array()[c].as_string(); };
      const std::string where = name + " " + columns[c].as_string();
      EXPECT_EQ(Digest(codes.data(), codes.size()), want("")) << where;
      EXPECT_EQ(Digest(scales.data(), scales.size()), want("_scale")) << where;
      EXPECT_EQ(Digest(&scale.ws2, 4), want("_scale_2")) << where;
      checked += 3;
    }
  }
  return checked;
}

TEST(GoldenDigests, OlmoeWithPlantedSpecialCases) { EXPECT_EQ(CheckFolder(HALFBYTE_TEST_DATA "/numerics/olmoe"), 324); }

TEST(GoldenDigests, AllReferenceModels) {
  const fs::path models = HALFBYTE_SOURCE_DIR "/../shared/reference/models";
  if (!fs::exists(models)) GTEST_SKIP() << models << " is not there";
  int folders = 0;
  for (const auto& entry : fs::directory_iterator(models)) {
    if (!fs::exists(entry.path() / "nvfp4_sha256.json")) continue;
    SCOPED_TRACE(entry.path().filename());
    EXPECT_GT(CheckFolder(entry.path()), 0);
    ++folders;
  }
  EXPECT_EQ(folders, 10);
}

}  // namespace
}  // namespace halfbyte::numerics
