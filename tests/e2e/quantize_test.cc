// `halfbyte quantize` through its command line: what it prints, what it refuses, measured activation scales.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "e2e/program.h"
#include "support/golden_file.h"
#include "unit/checkpoint/test_files.h"

namespace halfbyte::e2e {
namespace {

namespace fs = std::filesystem;
using base::Json;
using checkpoint::TemporaryFolder;
using testing::AllOf;
using testing::HasSubstr;

const std::string kTiny = HALFBYTE_TEST_DATA "/models/qwen3_moe";

TEST(Quantize, JsonKeysAndTheFolder) {
  TemporaryFolder t;
  const std::string out = t.path() / "out";
  const Json stats = RunJson({"quantize", "-q", "--json", "--model", "demo", "--out", out, "--max-shard-size", "4MB"});
  for (const char* key : {"tensors", "converted", "kept", "bytes_read", "bytes_written", "seconds", "parameters_per_second", "peak_rss_bytes", "warnings"}) EXPECT_NE(stats.Find(key), nullptr) << key;
  EXPECT_EQ(stats.Find("converted")->as_int(), 288);
  EXPECT_EQ(stats.Find("tensors")->as_int(), 1208);
  EXPECT_EQ(stats.Find("bytes_read")->as_int(), 24961024) << "every byte of the source once";
  for (const char* name : {"config.json", "hf_quant_config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json", "model.safetensors.index.json"}) EXPECT_TRUE(fs::exists(fs::path(out) / name)) << name;
  const auto index = Json::Parse(ReadFile(fs::path(out) / "model.safetensors.index.json"));
  EXPECT_EQ(index->Find("metadata")->Find("total_size")->as_int(), stats.Find("bytes_written")->as_int());
  // The result runs, also with its static scales.
  for (const char* mode : {"auto", "modelopt_fp4"}) EXPECT_EQ(RunProgram({"generate", "-q", "--model", out, "--quantization", mode, "--prompt", "2+2", "--max-tokens", "4"}).exit, 0) << mode;
}

TEST(Quantize, MeasuredActivationScales) {
  TemporaryFolder t;
  std::ofstream(t.path() / "d.jsonl") << R"({"text": "Olga saves $23 every week for 13 weeks."})" << "\n" << R"({"text": "A bicycle costs $311."})" << "\n";
  const Output o = RunProgram({"quantize", "--model", "demo", "--out", t.path() / "out", "--calibrate", t.path() / "d.jsonl"});
  ASSERT_EQ(o.exit, 0) << o.err;
  EXPECT_THAT(o.err, HasSubstr("of 2 documents"));
  EXPECT_THAT(o.err, HasSubstr("no token reached")) << "two short texts do not reach all experts";
  const auto file = test::ReadGolden(t.path() / "out" / "model.safetensors");
  for (int layer = 0; layer < 6; ++layer) {
    std::set<float> inputs, hidden;
    for (const auto& [name, tensor] : file) {
      if (!name.starts_with("model.layers." + std::to_string(layer) + ".") || !name.ends_with(".input_scale")) continue;
      (name.find("down_proj") != name.npos ? hidden : inputs).insert(tensor.Floats()[0]);
    }
    // One of each for all experts of the layer, reached or not.
    ASSERT_EQ(inputs.size(), 1u);
    ASSERT_EQ(hidden.size(), 1u);
    EXPECT_GT(*inputs.begin(), 0.0f);
    EXPECT_LT(*inputs.begin(), 0.1f) << "amax / 2688 of normed rows";
    EXPECT_NE(*inputs.begin(), *hidden.begin());
  }
  const auto config = Json::Parse(ReadFile(t.path() / "out" / "hf_quant_config.json"));
  EXPECT_NE(config->Find("producer")->Find("calibration_tokens"), nullptr);
}

TEST(Quantize, Refusals) {
  TemporaryFolder t;
  t.Write("there/mine.txt", "mine");
  const std::string fresh = t.path() / "fresh";
  EXPECT_THAT(FailureOf({"quantize", "-q", "--model", kTiny, "--out", t.path() / "there"}), HasSubstr("there"));
  EXPECT_EQ(ReadFile(t.path() / "there" / "mine.txt"), "mine");
  EXPECT_THAT(FailureOf({"quantize", "-q", "--model", kTiny, "--out", fresh, "--calibrate", t.path() / "none.jsonl"}), testing::Not(testing::IsEmpty()));
  for (const std::vector<std::string>& extra : std::vector<std::vector<std::string>>{{"--contract", "online", "--scale-search", "4over6"}, {"--contract", "online", "--ws2", "cpu"},
           {"--calibrate", "x", "--activations", "w4a16"}, {"--max-shard-size", "many"}, {"--format", "gguf"}, {"--scale-search", "best"}, {"--include", "head"}}) {
    std::vector<std::string> arguments = {"quantize", "--model", kTiny, "--out", fresh};
    arguments.insert(arguments.end(), extra.begin(), extra.end());
    EXPECT_EQ(RunProgram(arguments).exit, 2) << testing::PrintToString(extra);
  }
  EXPECT_EQ(RunProgram({"quantize", "--model", kTiny}).exit, 2) << "no --out";
  EXPECT_FALSE(fs::exists(fresh));
}

}  // namespace
}  // namespace halfbyte::e2e
