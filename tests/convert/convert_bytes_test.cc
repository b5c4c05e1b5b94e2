// Converted bytes against what the real producers wrote: ModelOpt's lists for the demo model (CPU and H200), the digests of the reference models in
// every column, and whole checkpoints of ModelOpt.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "convert/convert_support.h"

namespace halfbyte::test {
namespace {

namespace fs = std::filesystem;
using numerics::Flavour;

struct Listed {
  std::string name, dtype, shape, cpu, cuda;
};
std::vector<Listed> DemoList() {
  std::ifstream in(HALFBYTE_TEST_DATA "/quant/demo-modelopt.txt");
  std::vector<Listed> out;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("#")) continue;
    Listed l;
    std::istringstream(line) >> l.name >> l.dtype >> l.shape >> l.cpu >> l.cuda;
    out.push_back(l);
  }
  EXPECT_EQ(out.size(), 920u);
  return out;
}
std::string ShapeText(const GoldenTensor& t) {
  std::string out;
  for (int64_t d : t.shape) out += (out.empty() ? "" : "x") + std::to_string(d);
  return out.empty() ? "-" : out;
}

TEST(ConvertBytes, TheDemoModelIsWhatModelOptWrites) {
  const fs::path demo = fs::path(HALFBYTE_SOURCE_DIR) / "models" / "demo";
  int differing = 0;
  for (const Listed& l : DemoList()) differing += l.cpu != l.cuda;
  EXPECT_EQ(differing, 59 + 57 + 8) << "weight_scale_2, weight and weight_scale tensors of which the two devices disagree";
  for (Flavour flavour : {Flavour::kCpu, Flavour::kCuda}) {
    TemporaryFolder t;
    const auto stats = MustQuantize(demo, t.path() / "out", Modelopt(flavour));
    EXPECT_EQ(stats.converted, 6 * 16 * 3);
    GoldenFile got = ReadFolder(t.path() / "out");
    for (const Listed& l : DemoList()) {
      ASSERT_TRUE(got.count(l.name)) << l.name;
      const GoldenTensor& tensor = got[l.name];
      EXPECT_EQ(tensor.dtype, l.dtype) << l.name;
      EXPECT_EQ(ShapeText(tensor), l.shape) << l.name;
      EXPECT_EQ(Digest16(tensor), flavour == Flavour::kCpu ? l.cpu : l.cuda) << l.name;
      got.erase(l.name);
    }
    EXPECT_EQ(got.size(), 288u) << "what is left are the activation scales";
    for (const auto& [name, tensor] : got) {
      EXPECT_TRUE(name.ends_with(".input_scale")) << name;
      EXPECT_EQ(ShapeText(tensor), "-") << name;
      EXPECT_EQ(tensor.Floats(), std::vector<float>{1.0f}) << name;
    }
  }
}

TEST(ConvertBytes, DigestsOfEveryColumn) {
  HB_NEED_SHARED_REFERENCE();
  const std::pair<const char*, quant::ExportOptions> columns[] = {{"online", Online()}, {"modelopt_cuda", Modelopt(Flavour::kCuda)}, {"modelopt_cpu", Modelopt(Flavour::kCpu)}};
  int compared = 0;
  for (const auto& entry : fs::directory_iterator(checkpoint::SharedReference() / "models")) {
    if (!fs::exists(entry.path() / "nvfp4_sha256.json")) continue;
    const base::Json table = FileJson(entry.path() / "nvfp4_sha256.json");
    for (size_t c = 0; c < 3; ++c) {
      TemporaryFolder t;
      MustQuantize(entry.path(), t.path() / "out", columns[c].second);
      const GoldenFile got = ReadFolder(t.path() / "out");
      for (const auto& [name, digests] : table.Find("tensors")->as_object()) {
        if (c >= digests.as_array().size()) continue;
        ASSERT_TRUE(got.count(name)) << name;
        EXPECT_EQ(Digest16(got.at(name)), digests.as_array()[c].as_string()) << entry.path() << " " << name << " " << columns[c].first;
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 1000);
}

// The whole folder but for the activation scales, which ModelOpt measured.
void ExpectProducersBytes(const char* producer, quant::ExportOptions options) {
  TemporaryFolder t;
  MustQuantize(checkpoint::SharedReference() / "producers" / "source-bf16", t.path() / "out", options);
  GoldenFile got = ReadFolder(t.path() / "out"), want = ReadFolder(checkpoint::SharedReference() / "producers" / producer);
  for (auto* file : {&got, &want})
    for (auto& [name, tensor] : *file) if (name.ends_with(".input_scale")) tensor.bytes.clear();
  ExpectSameTensors(got, want);
}
TEST(ConvertBytes, WholeCheckpointsOfModelOpt) {
  HB_NEED_SHARED_REFERENCE();
  quant::ExportOptions options = Modelopt(Flavour::kCpu);
  ExpectProducersBytes("modelopt-nvfp4-experts", options);
  options.dense = true;
  ExpectProducersBytes("modelopt-nvfp4-all", options);
  options.weight_only = true;
  ExpectProducersBytes("modelopt-w4a16", options);
}

// Compressed-tensors' own conversion of the source differs (its global scale is made in BF16); the names, types and shapes must not.
TEST(ConvertBytes, NamesTypesAndShapesOfCompressedTensors) {
  HB_NEED_SHARED_REFERENCE();
  for (const char* producer : {"ct-nvfp4", "ct-nvfp4a16"}) {
    quant::ExportOptions options = CompressedTensors();
    options.dense = true;
    options.weight_only = std::string_view(producer) == "ct-nvfp4a16";
    TemporaryFolder t;
    MustQuantize(checkpoint::SharedReference() / "producers" / "source-bf16", t.path() / "out", options);
    const GoldenFile got = ReadFolder(t.path() / "out"), want = ReadFolder(checkpoint::SharedReference() / "producers" / producer);
    ASSERT_EQ(got.size(), want.size());
    for (const auto& [name, tensor] : want) {
      ASSERT_TRUE(got.count(name)) << name;
      EXPECT_EQ(got.at(name).dtype, tensor.dtype) << name;
      EXPECT_EQ(got.at(name).shape, tensor.shape) << name;
      // The divisors agree to BF16's 8 bits.
      if (name.ends_with(".weight_global_scale")) { EXPECT_NEAR(got.at(name).Floats()[0] / tensor.Floats()[0], 1.0, 6e-3) << name; }
    }
  }
}

// Searches for block scales lower the error; every variant is a valid NVFP4 matrix with the same FP32 scale range.
TEST(ConvertBytes, ScaleSearchesChangeBlockScalesOnly) {
  const fs::path demo = fs::path(HALFBYTE_SOURCE_DIR) / "models" / "demo";
  const std::string stem = "model.layers.3.mlp.experts.7.down_proj";
  std::vector<GoldenFile> got;
  for (auto contract : {numerics::WeightContract::Modelopt(Flavour::kCuda), numerics::WeightContract::ModeloptFourOverSix(Flavour::kCuda), numerics::WeightContract::ModeloptSweep(Flavour::kCuda)}) {
    quant::ExportOptions options = Modelopt();
    options.contract = contract;
    TemporaryFolder t;
    MustQuantize(demo, t.path() / "out", options);
    got.push_back(ReadFolder(t.path() / "out"));
  }
  const float ws2 = got[0].at(stem + ".weight_scale_2").Floats()[0];
  EXPECT_FLOAT_EQ(got[1].at(stem + ".weight_scale_2").Floats()[0], ws2 * 448 / 256);
  EXPECT_FLOAT_EQ(got[2].at(stem + ".weight_scale_2").Floats()[0], ws2);
  EXPECT_NE(got[0].at(stem + ".weight_scale").bytes, got[2].at(stem + ".weight_scale").bytes);
  for (const GoldenFile& g : got)
    for (const auto& [name, tensor] : g) {
      if (!name.ends_with(".weight_scale")) continue;
      for (uint8_t b : tensor.bytes) ASSERT_LE(b, 0x7E) << name;
    }
}

}  // namespace
}  // namespace halfbyte::test
