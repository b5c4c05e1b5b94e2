// Converted bytes against what the real producers wrote: ModelOpt's lists for the demo model (CPU and H200), the digests of the reference models in
// every column, and whole checkpoints of ModelOpt.
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "checkpoint/exclude_list.h"
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

// Everything in `theirs` stands in `ours` with the same value, but for what a producer says of itself and the exclude lists.
void ExpectKeys(const base::Json& ours, const base::Json& theirs, const std::string& path) {
  if (path.ends_with(".producer") || path.ends_with(".ignore") || path.ends_with(".exclude_modules")) return;
  if (!theirs.is_object()) { EXPECT_EQ(ours, theirs) << path; return; }
  for (const auto& [key, value] : theirs.as_object()) {
    const base::Json* own = ours.Find(key);
    ASSERT_NE(own, nullptr) << path << "." << key;
    ExpectKeys(*own, value, path + "." + key);
  }
}
std::vector<std::string> Names(const base::Json& list) {
  std::vector<std::string> out;
  for (const base::Json& e : list.as_array()) out.push_back(e.as_string());
  return out;
}
// Both configuration files of the demo model against those that ModelOpt wrote: every key, and exclude lists that name the same modules for each reader.
TEST(ConvertBytes, ConfigurationFilesOfModelOpt) {
  HB_NEED_SHARED_REFERENCE();
  const fs::path demo = fs::path(HALFBYTE_SOURCE_DIR) / "models" / "demo";
  const struct { const char* folder; bool dense, weight_only; } cases[] = {{"demo-modelopt-config", false, false}, {"demo-modelopt-w4a16-experts-config", false, true}, {"demo-modelopt-w4a16-config", true, true}};
  for (const auto& c : cases) {
    quant::ExportOptions options = Modelopt();
    options.dense = c.dense;
    options.weight_only = c.weight_only;
    TemporaryFolder t;
    MustQuantize(demo, t.path() / "out", options);
    const base::Json config = FileJson(t.path() / "out" / "config.json"), file = FileJson(t.path() / "out" / "hf_quant_config.json");
    const base::Json their_config = FileJson(checkpoint::SharedReference() / c.folder / "config.json"), their_file = FileJson(checkpoint::SharedReference() / c.folder / "hf_quant_config.json");
    const base::Json &section = *config.Find("quantization_config"), &their_section = *their_config.Find("quantization_config");
    ExpectKeys(section, their_section, "config.json");
    ExpectKeys(file, their_file, "hf_quant_config.json");
    EXPECT_EQ(section.Find("group_size")->as_int(), 16);
    EXPECT_EQ(section.Find("producer")->Find("name")->as_string(), "halfbyte");
    const base::Json source = FileJson(demo / "config.json");
    for (const auto& [key, value] : source.as_object()) EXPECT_EQ(*config.Find(key), value) << "the rest of config.json is the source's: " << key;

    std::set<std::string> modules = {"lm_head"};
    for (const auto& [name, tensor] : ReadFolder(demo)) if (tensor.shape.size() == 2) modules.insert(name.substr(0, name.rfind(".weight")));
    ASSERT_EQ(modules.size(), 2u + 6 * (4 + 1 + 16 * 3));
    const std::vector<std::string> ours = Names(*section.Find("ignore")), theirs = Names(*their_section.Find("ignore"));
    EXPECT_EQ(ours, Names(*file.Find("quantization")->Find("exclude_modules")));
    for (auto reader : {checkpoint::ExcludeReader::kVllm, checkpoint::ExcludeReader::kSglang, checkpoint::ExcludeReader::kTensorRtLlm})
      for (const std::string& m : modules) EXPECT_EQ(checkpoint::Excludes(reader, ours, m), checkpoint::Excludes(reader, theirs, m)) << c.folder << " " << m;
  }
}

// ModelOpt's own files converted again: every byte passes through, also measured activation scales.
TEST(ConvertBytes, NVFP4SourcesPassThrough) {
  HB_NEED_SHARED_REFERENCE();
  for (const char* producer : {"modelopt-nvfp4-experts", "modelopt-nvfp4-all", "modelopt-w4a16"}) {
    const fs::path in = checkpoint::SharedReference() / "producers" / producer;
    for (const quant::ExportOptions& options : {Modelopt(Flavour::kCpu), Modelopt(Flavour::kCuda), Online()}) {
      TemporaryFolder t;
      const auto stats = MustQuantize(in, t.path() / "out", options);
      EXPECT_EQ(stats.converted, 0);
      ExpectSameTensors(ReadFolder(in), ReadFolder(t.path() / "out"));
    }
  }
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
