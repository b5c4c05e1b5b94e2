#include "convert/convert_support.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "checkpoint/model_folder.h"
#include "engine/model_runner.h"
#include "engine/score.h"

namespace halfbyte::test {

namespace fs = std::filesystem;

base::Result<quant::ExportStats> Quantize(const fs::path& from, const fs::path& out, const quant::ExportOptions& options, quant::ExportRun run, checkpoint::CheckpointOptions files) {
  HB_ASSIGN_OR_RETURN(model::OpenedModel m, model::OpenModel(from, std::move(files)));
  HB_ASSIGN_OR_RETURN(const quant::ExportPlan plan, quant::MakeExportPlan(m.files, m.names, std::move(m.sources), m.source_options, m.metadata, options));
  run.out = out;
  return quant::RunExport(m.files, plan, run);
}

quant::ExportStats MustQuantize(const fs::path& from, const fs::path& out, const quant::ExportOptions& options, quant::ExportRun run) {
  auto stats = Quantize(from, out, options, std::move(run));
  EXPECT_TRUE(stats) << from << ": " << stats.error().ToString();
  return stats ? *stats : quant::ExportStats();
}

GoldenFile ReadFolder(const fs::path& folder) {
  GoldenFile all;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(".safetensors") || !(name.starts_with("model") || name.starts_with("mtp"))) continue;
    for (auto& [key, tensor] : ReadGolden(entry.path())) EXPECT_TRUE(all.emplace(key, std::move(tensor)).second) << key;
  }
  return all;
}

void ExpectSameTensors(const GoldenFile& a, const GoldenFile& b) {
  for (const auto& [name, t] : a) {
    auto other = b.find(name);
    ASSERT_NE(other, b.end()) << name << " is missing";
    EXPECT_EQ(t.dtype, other->second.dtype) << name;
    EXPECT_EQ(t.shape, other->second.shape) << name;
    EXPECT_TRUE(t.bytes == other->second.bytes) << name << ": other bytes";
  }
  for (const auto& [name, t] : b) EXPECT_TRUE(a.count(name)) << name << " is new";
}

std::string Digest16(const GoldenTensor& tensor) {
  unsigned char hash[32];
  unsigned int length = 0;
  EVP_Digest(tensor.bytes.data(), tensor.bytes.size(), hash, &length, EVP_sha256(), nullptr);
  std::string out;
  for (int i = 0; i < 8; ++i) {
    char hex[3];
    std::snprintf(hex, sizeof hex, "%02x", hash[i]);
    out += hex;
  }
  return out;
}

std::string FileText(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

base::Json FileJson(const fs::path& path) {
  auto json = base::Json::Parse(FileText(path));
  EXPECT_TRUE(json) << path << ": " << json.error().ToString();
  return json ? *json : base::Json();
}

std::vector<fs::path> AllModels() {
  std::vector<fs::path> out = {fs::path(HALFBYTE_SOURCE_DIR) / "models" / "demo"};
  for (const char* group : {"models", "producers"}) {
    const fs::path root = checkpoint::SharedReference() / group;
    if (checkpoint::SharedReference().empty() || !fs::is_directory(root)) continue;
    for (const auto& entry : fs::directory_iterator(root)) if (fs::exists(entry.path() / "config.json")) out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

bool HasExperts(const fs::path& folder) {
  const std::string type = FileJson(folder / "config.json").Find("model_type")->as_string();
  return type != "llama" && type != "qwen3" && type != "qwen2";
}

std::vector<float> Logits(const fs::path& folder, const model::LoadSettings& settings, std::vector<int32_t> ids) {
  auto loaded = model::LoadModel(folder, settings);
  EXPECT_TRUE(loaded) << folder << ": " << loaded.error().ToString();
  if (!loaded) return {};
  auto runner = engine::ModelRunner::Create(std::move(loaded->model), {.sequences = 1, .cache_tokens = 512});
  EXPECT_TRUE(runner) << runner.error().ToString();
  const std::vector<std::vector<int32_t>> documents = {std::move(ids)};
  engine::Scorer scorer(**runner, documents);
  const auto pieces = scorer.Next();
  EXPECT_TRUE(pieces) << pieces.error().ToString();
  const kernels::Matrix& m = (*pieces)[0].logits;
  const float* p = static_cast<const float*>(m.data);
  return {p, p + m.rows * m.cols};
}

}  // namespace halfbyte::test
