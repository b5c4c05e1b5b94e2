// Model folders made by hand: a Qwen3-MoE of some kilobytes, one tensor at a time, to be broken on purpose.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "model/load.h"
#include "support/recording_sink.h"
#include "unit/checkpoint/test_files.h"

namespace halfbyte::model {

using checkpoint::RawTensor;
using checkpoint::TemporaryFolder;

struct TinySizes {
  int64_t layers = 1, experts = 2, hidden = 32, f = 16, vocab = 48, heads = 2, kv_heads = 1, head_dim = 16, top_k = 1;
};

// BF16 of N(0, 0.1)-like values; the same for the same seed.
std::string RandomBf16(int64_t n, uint64_t seed);
std::string Bf16Of(const std::vector<float>& values);

class TinyModel {
 public:
  explicit TinyModel(const TinySizes& sizes = {});

  base::Json config;
  std::vector<RawTensor> tensors;  // in the order of the file

  RawTensor& at(const std::string& name);
  void Set(const std::string& name, const std::string& dtype, const std::string& shape, std::string data);  // replaces or adds
  void Remove(const std::string& name);
  // Into config.json and model.safetensors, or into `shards` files with an index; tensor i of `order` (default: as they are) goes to shard i % shards.
  void Write(const TemporaryFolder& folder, int shards = 1, std::vector<size_t> order = {}) const;
};

// What loading would put, by the whole pipeline.
struct Converted {
  quant::QuantPlan plan;
  quant::LoadStats stats;
  std::map<quant::TensorId, test::RecordedMatrix> matrices;
  std::map<std::pair<quant::TensorId, quant::TensorPart>, std::vector<float>> vectors;
};
base::Result<Converted> Convert(const std::filesystem::path& folder, const LoadSettings& settings, int workers = 1);
base::Result<Converted> Convert(const TinyModel& model, const LoadSettings& settings, int workers = 1);

inline LoadSettings Mode(const char* quantization) {
  LoadSettings s;
  s.quantization = quantization;
  return s;
}

inline quant::TensorId Gate(int expert, int layer = 0) { return {quant::TensorRole::kExpertGate, layer, expert}; }
inline quant::TensorId Up(int expert, int layer = 0) { return {quant::TensorRole::kExpertUp, layer, expert}; }
inline quant::TensorId Down(int expert, int layer = 0) { return {quant::TensorRole::kExpertDown, layer, expert}; }

// The message of a failed result; fails the test where it did not fail.
template <typename T>
std::string ErrorOf(const base::Result<T>& result) {
  EXPECT_FALSE(result.has_value()) << "an error was wanted";
  return result ? std::string() : result.error().ToString();
}

}  // namespace halfbyte::model
