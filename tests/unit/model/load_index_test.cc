// User case T12 through the whole path: which copy of a tensor counts, what is refused before anything is loaded, and reads that go wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>

#include "platform/read_faults.h"
#include "unit/model/tiny_model.h"

namespace halfbyte::model {
namespace {

using checkpoint::SafetensorsBytes;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

constexpr const char* kNorm = "model.norm.weight";

RawTensor NormOf(float value) { return {kNorm, "BF16", "[32]", Bf16Of(std::vector<float>(32, value))}; }

// The tiny model, its final norm (2.0) in shard 2 as the index says, another copy (1.0) in shard 1, a stray file with a third (3.0).
void WriteWithCopies(const TemporaryFolder& folder) {
  TinyModel m;
  m.Remove(kNorm);
  std::vector<RawTensor> first = m.tensors;
  first.push_back(NormOf(1));
  folder.Write("config.json", m.config.Dump());
  folder.Write("model-00001-of-00002.safetensors", SafetensorsBytes(first));
  folder.Write("model-00002-of-00002.safetensors", SafetensorsBytes({NormOf(2)}));
  folder.Write("model.safetensors", SafetensorsBytes({NormOf(3)}));
  base::Json map = base::Json::MakeObject(), index = base::Json::MakeObject();
  for (const RawTensor& t : m.tensors) map.Set(t.name, "model-00001-of-00002.safetensors");
  map.Set(kNorm, "model-00002-of-00002.safetensors");
  index.Set("weight_map", std::move(map));
  folder.Write("model.safetensors.index.json", index.Dump());
}

TEST(LoadIndex, TheIndexDecidesWhichCopyCounts) {
  TemporaryFolder folder;
  WriteWithCopies(folder);
  const auto c = Convert(folder.path(), Mode("w4a16"));
  ASSERT_TRUE(c) << c.error().ToString();
  const quant::TensorId norm{quant::TensorRole::kFinalNorm, -1, -1};
  EXPECT_EQ(c->vectors.at({norm, quant::TensorPart::kWeight}), std::vector<float>(32, 2.0f));
}

TEST(LoadIndex, AMissingShardIsRefusedByName) {
  TemporaryFolder folder;
  WriteWithCopies(folder);
  std::filesystem::remove(folder.path() / "model-00002-of-00002.safetensors");
  EXPECT_THAT(ErrorOf(Convert(folder.path(), Mode("w4a16"))), HasSubstr("model-00002-of-00002.safetensors"));
}

TEST(LoadIndex, WithoutAnIndexTwoCopiesAreRefused) {
  TemporaryFolder folder;
  WriteWithCopies(folder);
  std::filesystem::remove(folder.path() / "model.safetensors.index.json");
  EXPECT_THAT(ErrorOf(Convert(folder.path(), Mode("w4a16"))), AllOf(HasSubstr(kNorm), HasSubstr("no index says which counts")));
}

TEST(LoadIndex, PathsThatLeaveTheFolderAreRefused) {
  TemporaryFolder outside;
  outside.Write("x.safetensors", SafetensorsBytes({NormOf(9)}));
  for (const std::string& name : {std::string("../x.safetensors"), std::string("/etc/passwd"), std::string("a/../x.safetensors"), std::string("link.safetensors"), std::string("fifo.safetensors")}) {
    TemporaryFolder folder;
    WriteWithCopies(folder);
    std::filesystem::create_symlink(outside.path() / "x.safetensors", folder.path() / "link.safetensors");
    ASSERT_EQ(::mkfifo((folder.path() / "fifo.safetensors").c_str(), 0600), 0);
    folder.Write("model.safetensors.index.json", base::StrCat(R"({"weight_map": {"model.norm.weight": ")", name, "\"}}"));
    EXPECT_THAT(ErrorOf(Convert(folder.path(), Mode("w4a16"))), HasSubstr(name.substr(name.rfind('/') + 1))) << name;
  }
}

TEST(LoadIndex, ATruncatedShardIsRefusedBeforeAnythingIsLoaded) {
  TinyModel m;
  TemporaryFolder folder;
  m.Write(folder);
  const auto path = folder.path() / "model.safetensors";
  for (uint64_t size : {uint64_t{0}, uint64_t{7}, uint64_t{100}, static_cast<uint64_t>(std::filesystem::file_size(path)) - 1}) {
    m.Write(folder);
    std::filesystem::resize_file(path, size);
    EXPECT_THAT(ErrorOf(Prepare(folder.path(), Mode("w4a16"), "cpu")), HasSubstr("model.safetensors")) << size;
  }
}

// Every read in turn fails, or finds the end of the file: an error that names the file each time, never a model, never a crash.
TEST(LoadIndex, EveryReadMayFail) {
  TinyModel m({.layers = 1, .experts = 2});
  TemporaryFolder folder;
  m.Write(folder, 2);
  int failures = 0, n = 0;
  for (bool finished = false; !finished; ++n) {
    for (bool ends : {false, true}) {
      LoadSettings s = Mode("w4a16");
      s.device = "reference";
      s.threads = 2;
      s.files.file.pread = ends ? platform::EndAtNthRead(n) : platform::FailNthRead(n, EIO);
      const auto loaded = LoadModel(folder.path(), s);
      if (loaded) { finished = true; continue; }
      ++failures;
      EXPECT_THAT(loaded.error().ToString(), AnyOf(HasSubstr("config.json"), HasSubstr(".safetensors"))) << n;
      EXPECT_THAT(loaded.error().ToString(), AnyOf(HasSubstr("Input/output error"), HasSubstr("ends after"))) << n;
    }
    ASSERT_LT(n, 500);
  }
  EXPECT_GT(failures, 2 * 20);  // configuration, index, headers, every matrix and vector
}

TEST(LoadIndex, ShortReadsAreContinued) {
  TinyModel m;
  TemporaryFolder folder;
  m.Write(folder);
  const auto want = Convert(folder.path(), Mode("w4a16"));
  LoadSettings s = Mode("w4a16");
  s.files.file.pread = platform::ShortReads(13);
  const auto have = Convert(folder.path(), s);
  ASSERT_TRUE(want && have);
  EXPECT_EQ(have->matrices, want->matrices);
}

// Scales of no elements must not be read out of bounds.
TEST(LoadIndex, EmptyCompanionsAreRefused) {
  TinyModel m;
  m.Set("model.layers.0.self_attn.k_proj.k_scale", "F32", "[0]", "");
  EXPECT_THAT(ErrorOf(Convert(m, Mode("w4a16"))), AllOf(HasSubstr("k_scale"), HasSubstr("[0]")));
  m = TinyModel();
  const std::string stem = "model.layers.0.mlp.experts.0.up_proj";
  m.Set(stem + ".weight", "U8", "[16,16]", std::string(256, '\x22'));
  m.Set(stem + ".weight_scale", "F8_E4M3", "[16,2]", std::string(32, '\x38'));
  m.Set(stem + ".weight_scale_2", "F32", "[0]", "");
  EXPECT_THAT(ErrorOf(Convert(m, Mode("w4a16"))), AllOf(HasSubstr("weight_scale_2"), HasSubstr("[0]")));
  m.Set(stem + ".weight_scale_2", "F32", "[]", checkpoint::FloatBytes({1.0f}));
  m.Set(stem + ".input_scale", "F32", "[0]", "");
  EXPECT_THAT(ErrorOf(Convert(m, Mode("modelopt_fp4"))), AllOf(HasSubstr("input_scale"), HasSubstr("[0]")));
}

}  // namespace
}  // namespace halfbyte::model
