// What must hold of every conversion, whatever the model: no tensor is lost, what is kept keeps its bytes, converting twice changes nothing, threads and
// shards do not matter, and what the loader makes of a converted model is what it makes of the source.
#include <gtest/gtest.h>

#include <set>

#include "convert/convert_support.h"

namespace halfbyte::test {
namespace {

namespace fs = std::filesystem;

quant::ExportOptions For(const fs::path& folder, quant::ExportOptions options) {
  options.dense = !HasExperts(folder);
  return options;
}

TEST(ConvertWhole, NamesInAreNamesOutPlusScales) {
  for (const fs::path& folder : AllModels()) {
    TemporaryFolder t;
    const auto stats = MustQuantize(folder, t.path() / "out", For(folder, Modelopt()));
    GoldenFile in = ReadFolder(folder), out = ReadFolder(t.path() / "out");
    EXPECT_EQ(stats.tensors, static_cast<int64_t>(out.size()));
    EXPECT_GT(stats.converted + stats.reused, 0) << folder;
    int64_t kept = 0;
    for (const auto& [name, tensor] : in) {
      // A source's names for the parts of an NVFP4 or converted FP8 matrix, in ModelOpt's words.
      std::string now = name;
      if (now.ends_with(".weight_packed")) now = now.substr(0, now.size() - 7);
      if (now.ends_with(".weight_global_scale")) now = now.substr(0, now.size() - 12) + "scale_2";
      if (now.ends_with(".input_global_scale")) now = now.substr(0, now.size() - 12) + "scale";
      if (now.ends_with(".weight_scale_inv") && !out.count(now)) now = now.substr(0, now.size() - 4);
      ASSERT_TRUE(out.count(now)) << folder << ": " << name << " is lost";
      const bool same = out.at(now).bytes == tensor.bytes && out.at(now).dtype == tensor.dtype && out.at(now).shape == tensor.shape;
      if (now == name && same) ++kept;
      const bool matrix_part = now.find("_proj.") != now.npos || now.find(".w1.") != now.npos || now.find(".w2.") != now.npos || now.find(".w3.") != now.npos;
      if (!matrix_part || now.find(".bias") != now.npos) { EXPECT_TRUE(same) << folder << ": " << name << " was changed"; }
      out.erase(now);
    }
    EXPECT_GE(kept, stats.kept) << folder;
    for (const auto& [name, tensor] : out)
      EXPECT_TRUE(name.ends_with(".weight_scale") || name.ends_with(".weight_scale_2") || name.ends_with(".input_scale")) << folder << ": " << name << " is new";
  }
}

TEST(ConvertWhole, ConvertingTwiceChangesNothing) {
  for (const fs::path& folder : AllModels())
    for (const quant::ExportOptions& base : {Modelopt(), Online(), CompressedTensors()}) {
      const quant::ExportOptions options = For(folder, base);
      TemporaryFolder t;
      auto first = Quantize(folder, t.path() / "once", options);
      ASSERT_TRUE(first) << folder << ": " << first.error().ToString();
      const auto second = MustQuantize(t.path() / "once", t.path() / "twice", options);
      EXPECT_EQ(second.converted, 0) << folder;
      EXPECT_EQ(second.reused, first->converted + first->reused) << folder;
      for (const auto& entry : fs::directory_iterator(t.path() / "once"))
        EXPECT_TRUE(FileText(entry.path()) == FileText(t.path() / "twice" / entry.path().filename())) << folder << ": " << entry.path().filename();
    }
}

TEST(ConvertWhole, ThreadsAndShardsDoNotMatter) {
  const fs::path demo = fs::path(HALFBYTE_SOURCE_DIR) / "models" / "demo";
  TemporaryFolder t;
  MustQuantize(demo, t.path() / "one", Modelopt(), {.workers = 1});
  const GoldenFile want = ReadFolder(t.path() / "one");
  for (int workers : {2, 7}) {
    quant::ExportRun run{.workers = workers};
    run.writer.max_shard_bytes = 1'500'000;
    const fs::path out = t.path() / std::to_string(workers);
    const auto stats = MustQuantize(demo, out, Modelopt(), run);
    EXPECT_GE(stats.shards, 7);
    ExpectSameTensors(want, ReadFolder(out));
    const base::Json index = FileJson(out / "model.safetensors.index.json");
    EXPECT_EQ(index.Find("metadata")->Find("total_size")->as_int(), stats.bytes_written);
    EXPECT_EQ(index.Find("weight_map")->as_object().size(), want.size());
    for (const auto& entry : fs::directory_iterator(out))
      if (entry.path().extension() == ".safetensors") { EXPECT_LT(fs::file_size(entry.path()), 2'200'000u) << "a shard, or the embedding alone"; }
  }
}

// A cache for faster starts: the loader's own bytes, so its logits, in every mode.
TEST(ConvertWhole, OnlineOutputRunsLikeTheSource) {
  std::vector<fs::path> folders = {fs::path(HALFBYTE_SOURCE_DIR) / "models" / "demo"};
  if (!checkpoint::SharedReference().empty())
    for (const char* name : {"models/qwen2_moe", "models/qwen3_moe-fp8-block", "models/mixtral-fp8-channel", "producers/modelopt-fp8"}) folders.push_back(checkpoint::SharedReference() / name);
  for (const fs::path& folder : folders) {
    TemporaryFolder t;
    MustQuantize(folder, t.path() / "out", Online());
    for (const char* mode : {"auto", "w4a16", "w4a8", "nvfp4_online", "modelopt_fp4"})
      for (const char* device : {"reference", "cpu"}) {
        if (std::string_view(device) == "reference" && folder.filename() == "demo") continue;  // the plain loops take their time
        model::LoadSettings settings = model::Mode(mode);
        settings.device = device;
        const std::vector<int32_t> ids = {5, 17, 80, 3, 99, 12, 44, 61};
        const std::vector<float> source = Logits(folder, settings, ids), converted = Logits(t.path() / "out", settings, ids);
        ASSERT_EQ(source.size(), converted.size());
        EXPECT_EQ(std::memcmp(source.data(), converted.data(), source.size() * sizeof(float)), 0) << folder << " " << mode << " on " << device;
      }
  }
}

// The codes, block scales and FP32 scales that a converting load packs are those that `--contract online` writes, and what a load of those packs.
TEST(ConvertWhole, WhatIsLoadedOnlineIsWhatIsWritten) {
  for (const fs::path& folder : AllModels()) {
    if (!HasExperts(folder)) continue;
    TemporaryFolder t;
    const auto loaded = model::Convert(folder, model::Mode("w4a16"));
    ASSERT_TRUE(loaded) << folder << ": " << loaded.error().ToString();
    MustQuantize(folder, t.path() / "out", Online());
    const auto again = model::Convert(t.path() / "out", model::Mode("w4a16"));
    const auto written = model::Prepare(t.path() / "out", model::Mode("w4a16"), "cpu");
    ASSERT_TRUE(again && written) << again.error().ToString();
    const GoldenFile file = ReadFolder(t.path() / "out");
    int compared = 0;
    for (const auto& [id, matrix] : loaded->matrices) {
      EXPECT_TRUE(again->matrices.at(id) == matrix) << folder << ": " << id.ToString();
      if (!matrix.format.is_nvfp4()) continue;
      const std::string& weight = written->plan.Find(id)->source.weight->name;
      const std::string stem = weight.substr(0, weight.rfind(".weight"));
      auto bytes = [&](const char* ending) { const GoldenTensor& g = file.at(stem + ending); return std::string(g.bytes.begin(), g.bytes.end()); };
      EXPECT_TRUE(bytes(".weight") == matrix.elements && bytes(".weight_scale") == matrix.block_scales) << folder << ": " << stem;
      EXPECT_EQ(file.at(stem + ".weight_scale_2").Floats(), matrix.outer) << folder << ": " << stem;
      ++compared;
    }
    EXPECT_GE(compared, 9) << folder;
  }
}

TEST(ConvertWhole, Fp16StaysFp16) {
  TinyModel m;
  for (auto& tensor : m.tensors) {
    // BF16 values of this size are exact in FP16 or lose some bits; what matters is that the new bits are taken as they are.
    tensor.dtype = "F16";
    for (size_t i = 0; i + 1 < tensor.data.size(); i += 2) {
      const uint16_t half = static_cast<uint16_t>(0x2C00 + (static_cast<uint8_t>(tensor.data[i]) << 2) + (static_cast<uint8_t>(tensor.data[i + 1]) & 0x80) * 256);
      std::memcpy(tensor.data.data() + i, &half, 2);
    }
  }
  TemporaryFolder t;
  std::filesystem::create_directory(t.path() / "in");
  t.Write("in/config.json", m.config.Dump());
  t.Write("in/model.safetensors", checkpoint::SafetensorsBytes(m.tensors));
  const auto stats = MustQuantize(t.path() / "in", t.path() / "out", Modelopt());
  const GoldenFile in = ReadFolder(t.path() / "in"), out = ReadFolder(t.path() / "out");
  EXPECT_EQ(stats.converted, 6);
  for (const auto& [name, tensor] : in) {
    if (name.find(".experts.") != name.npos) { EXPECT_EQ(out.at(name).dtype, "U8"); continue; }
    EXPECT_EQ(out.at(name).dtype, "F16") << name;
    EXPECT_TRUE(out.at(name).bytes == tensor.bytes) << name;
  }
}

TEST(ConvertWhole, OtherFilesComeAlong) {
  TinyModel m;
  TemporaryFolder t;
  std::filesystem::create_directory(t.path() / "in");
  t.Write("in/config.json", m.config.Dump());
  t.Write("in/model.safetensors", checkpoint::SafetensorsBytes(m.tensors));
  const std::set<std::string> carried = {"tokenizer.json", "tokenizer_config.json", "generation_config.json", "chat_template.jinja", "vocab.json", "merges.txt", "tokenizer.model",
                                         "special_tokens_map.json", "modeling_tiny.py", "LICENSE", "preprocessor_config.json"};
  for (const std::string& name : carried) t.Write("in/" + name, name.ends_with("generation_config.json") ? R"({"eos_token_id": 2})" : "content of " + name);
  for (const char* name : {"README.md", "pytorch_model.bin", "training_args.json", ".hidden", "hf_quant_config.json"}) t.Write(std::string("in/") + name, name[0] == 'h' ? "{}" : "not carried");
  const auto stats = MustQuantize(t.path() / "in", t.path() / "out", Modelopt());
  EXPECT_EQ(std::set<std::string>(stats.files.begin(), stats.files.end()), carried);
  std::set<std::string> there;
  for (const auto& entry : fs::directory_iterator(t.path() / "out")) there.insert(entry.path().filename().string());
  std::set<std::string> want = carried;
  want.insert({"config.json", "hf_quant_config.json", "model.safetensors"});
  EXPECT_EQ(there, want);
  for (const std::string& name : carried) EXPECT_EQ(FileText(t.path() / "out" / name), FileText(t.path() / "in" / name));
}

}  // namespace
}  // namespace halfbyte::test
