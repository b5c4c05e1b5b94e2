// Index rules and path containment of user case T12, and listings of real checkpoints made by Python's safetensors library.
#include "checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <cmath>
#include <sstream>

#include "platform/read_faults.h"
#include "unit/checkpoint/test_files.h"

namespace halfbyte::checkpoint {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

std::string Index(const std::vector<std::pair<std::string, std::string>>& map) {
  std::string out = R"({"metadata":{"total_size":4},"weight_map":{)";
  for (size_t i = 0; i < map.size(); ++i) out += base::StrCat(i ? "," : "", "\"", map[i].first, "\":\"", map[i].second, "\"");
  return out + "}}";
}

class CheckpointFolder : public testing::Test {
 protected:
  CheckpointFolder() { folder_.Write("config.json", R"({"model_type":"qwen3_moe"})"); }
  void WriteShard(const std::string& name, const std::vector<RawTensor>& tensors) { folder_.Write(name, SafetensorsBytes(tensors)); }
  void WriteIndex(const std::vector<std::pair<std::string, std::string>>& map) { folder_.Write("model.safetensors.index.json", Index(map)); }
  std::string OpenError(CheckpointOptions options = {}) {
    auto c = Checkpoint::Open(folder_.path(), std::move(options));
    return c ? "opened" : c.error().ToString();
  }
  // The value of a one-element F32 tensor.
  float Value(const std::string& name) {
    auto c = Checkpoint::Open(folder_.path());
    EXPECT_TRUE(c) << c.error().ToString();
    if (!c || !c->Find(name)) return NAN;
    float value = NAN;
    EXPECT_TRUE(c->Read(*c->Find(name), std::as_writable_bytes(std::span(&value, 1))));
    return value;
  }
  TemporaryFolder folder_;
};

TEST_F(CheckpointFolder, TheIndexDecidesPerTensorAndStraysAreIgnored) {
  WriteShard("model-00001-of-00002.safetensors", {Float("x", 1), Float("y", 7), Float("unlisted", 9)});
  WriteShard("model-00002-of-00002.safetensors", {Float("x", 2)});
  WriteShard("model.safetensors", {Float("x", 3)});
  WriteIndex({{"x", "model-00002-of-00002.safetensors"}, {"y", "model-00001-of-00002.safetensors"}});
  EXPECT_EQ(Value("x"), 2);
  EXPECT_EQ(Value("y"), 7);
  auto c = Checkpoint::Open(folder_.path());
  EXPECT_EQ(c->tensors().size(), 2u);
  EXPECT_EQ(c->total_bytes(), 8u);
  EXPECT_THAT(c->warnings(), testing::ElementsAre(HasSubstr("1 tensors stand in the files but not in the index and are left out: unlisted")));
}

TEST_F(CheckpointFolder, AMissingShardIsNamedBeforeAnythingElse) {
  folder_.Write("model-00001-of-00003.safetensors", "garbage");
  WriteIndex({{"x", "model-00002-of-00003.safetensors"}, {"y", "model-00001-of-00003.safetensors"}, {"z", "model-00003-of-00003.safetensors"}});
  EXPECT_THAT(OpenError(), AllOf(HasSubstr("lacks 2 of the 3 files"), HasSubstr("model-00002-of-00003.safetensors, model-00003-of-00003.safetensors")));
}

TEST_F(CheckpointFolder, ATensorThatItsFileLacksIsNamed) {
  WriteShard("model-00001-of-00002.safetensors", {Float("x", 1)});
  WriteShard("model-00002-of-00002.safetensors", {Float("y", 1)});
  WriteIndex({{"x", "model-00002-of-00002.safetensors"}, {"y", "model-00002-of-00002.safetensors"}});
  EXPECT_THAT(OpenError(), HasSubstr("names 1 tensors that their files do not have: x (model-00002-of-00002.safetensors)"));
}

TEST_F(CheckpointFolder, WithoutAnIndexATensorInTwoFilesIsRefused) {
  WriteShard("model-00001-of-00002.safetensors", {Float("x", 1)});
  WriteShard("model-00002-of-00002.safetensors", {Float("x", 2)});
  EXPECT_THAT(OpenError(), HasSubstr("x stands in both model-00001-of-00002.safetensors and model-00002-of-00002.safetensors"));
}
TEST_F(CheckpointFolder, WithoutAnIndexATensorInAForeignFileIsRefusedToo) {
  WriteShard("model.safetensors", {Float("x", 1)});
  WriteShard("backup.safetensors", {Float("x", 2)});
  EXPECT_THAT(OpenError(), HasSubstr("x stands in both model.safetensors and backup.safetensors"));
}
TEST_F(CheckpointFolder, WithoutAnIndexForeignFilesAreLeftOutAndMtpFilesBelong) {
  WriteShard("model.safetensors", {Float("x", 1)});
  WriteShard("mtp.safetensors", {Float("mtp.norm", 2)});
  WriteShard("expected.safetensors", {Float("logits", 3)});
  folder_.Write("broken.safetensors", "???");
  EXPECT_EQ(Value("x"), 1);
  EXPECT_EQ(Value("mtp.norm"), 2);
  auto c = Checkpoint::Open(folder_.path());
  EXPECT_EQ(c->Find("logits"), nullptr);
  EXPECT_THAT(c->warnings(), testing::ElementsAre("2 files are no part of the model and are left out: broken.safetensors, expected.safetensors"));
}
TEST_F(CheckpointFolder, WithoutAnIndexEveryFileCountsWhereNoneIsCalledModel) {
  WriteShard("weights-a.safetensors", {Float("x", 1)});
  WriteShard("weights-b.safetensors", {Float("y", 2)});
  EXPECT_EQ(Value("x"), 1);
  EXPECT_EQ(Value("y"), 2);
  WriteShard("weights-c.safetensors", {Float("y", 3)});
  EXPECT_THAT(OpenError(), HasSubstr("y stands in both weights-b.safetensors and weights-c.safetensors"));
}
TEST_F(CheckpointFolder, WithoutAnIndexNumberedNamesSayWhatIsMissing) {
  WriteShard("model-00001-of-00003.safetensors", {Float("x", 1)});
  EXPECT_THAT(OpenError(), HasSubstr("lacks 2 parts of the model: model-00002-of-00003.safetensors, model-00003-of-00003.safetensors"));
}

TEST_F(CheckpointFolder, NoFileAtAll) {
  EXPECT_THAT(OpenError(), HasSubstr("has no *.safetensors file"));
  fs::remove(folder_.path() / "config.json");
  EXPECT_THAT(OpenError(), HasSubstr("has no config.json"));
  EXPECT_THAT(Checkpoint::Open(folder_.path() / "none").error().ToString(), HasSubstr("No such file"));
}

TEST_F(CheckpointFolder, AnIndexThatPointsOutOfTheFolderIsRefused) {
  WriteShard("model.safetensors", {Float("x", 1)});
  for (const char* name : {"../x.safetensors", "/etc/passwd", "sub/x.safetensors", "..", ".", "", "a\\\\b.safetensors", "x\\u0000.safetensors", "x\\n.safetensors"}) {
    WriteIndex({{"x", name}});
    EXPECT_THAT(OpenError(), HasSubstr("is no plain file name")) << name;
  }
  WriteIndex({{"x", "pytorch_model.bin"}});
  EXPECT_THAT(OpenError(), HasSubstr("only *.safetensors files are read"));
}

TEST_F(CheckpointFolder, ALinkOutOfTheFolderIsRefused) {
  TemporaryFolder other;
  other.Write("x.safetensors", SafetensorsBytes({Float("x", 1)}));
  fs::create_symlink(other.path() / "x.safetensors", folder_.path() / "model-00001-of-00001.safetensors");
  WriteIndex({{"x", "model-00001-of-00001.safetensors"}});
  EXPECT_THAT(OpenError(), HasSubstr("is a link that leaves the model's folder"));
  fs::remove(folder_.path() / "model.safetensors.index.json");
  EXPECT_THAT(OpenError(), HasSubstr("is a link that leaves the model's folder"));
  fs::remove(folder_.path() / "model-00001-of-00001.safetensors");
  fs::create_symlink("nothing", folder_.path() / "model.safetensors");
  EXPECT_THAT(OpenError(), HasSubstr("is a link to nothing"));
}
TEST_F(CheckpointFolder, ALinkInsideTheFolderIsFine) {
  WriteShard("weights.safetensors", {Float("x", 5)});
  fs::create_symlink("weights.safetensors", folder_.path() / "model.safetensors");
  WriteIndex({{"x", "model.safetensors"}});
  EXPECT_EQ(Value("x"), 5);
}

TEST_F(CheckpointFolder, FifosAndFoldersAreRefusedAtOnce) {
  ASSERT_EQ(::mkfifo((folder_.path() / "model.safetensors").c_str(), 0600), 0);
  EXPECT_THAT(OpenError(), HasSubstr("is a FIFO, a regular file is wanted"));
  WriteIndex({{"x", "model.safetensors"}});
  EXPECT_THAT(OpenError(), HasSubstr("is a FIFO, a regular file is wanted"));
  fs::remove(folder_.path() / "model.safetensors");
  fs::create_directory(folder_.path() / "model.safetensors");
  EXPECT_THAT(OpenError(), HasSubstr("is a folder, a regular file is wanted"));
  fs::remove(folder_.path() / "config.json");
  ASSERT_EQ(::mkfifo((folder_.path() / "config.json").c_str(), 0600), 0);
  EXPECT_THAT(OpenError(), HasSubstr("config.json is a FIFO"));
}

TEST_F(CheckpointFolder, ATruncatedShardIsRefusedByName) {
  std::string whole = SafetensorsBytes({Float("x", 1), {"big", "U8", "[4096]", std::string(4096, 'b')}});
  for (size_t keep : {size_t{0}, size_t{5}, size_t{8}, size_t{40}, whole.size() - 4000, whole.size() - 1}) {
    folder_.Write("model.safetensors", whole.substr(0, keep));
    EXPECT_THAT(OpenError(), AllOf(HasSubstr("model.safetensors: "), HasSubstr("truncated; download it again"))) << keep;
  }
}
TEST_F(CheckpointFolder, AFileThatIsNoSafetensorsIsRefused) {
  folder_.Write("model.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 123456\n");
  EXPECT_THAT(OpenError(), HasSubstr("header too large"));
}
TEST_F(CheckpointFolder, AMalformedIndexIsRefused) {
  WriteShard("model.safetensors", {Float("x", 1)});
  for (const char* text : {"", "[]", "{}", R"({"weight_map":[]})", R"({"weight_map":null})", R"({"weight_map":{"x":1}})", R"({"weight_map":{"x":"model.safetensors","x":"model.safetensors"}})"}) {
    folder_.Write("model.safetensors.index.json", text);
    EXPECT_THAT(OpenError(), HasSubstr("model.safetensors.index.json: ")) << text;
  }
}

TEST_F(CheckpointFolder, ConfigsMayHoldInfinity) {
  WriteShard("model.safetensors", {Float("x", 1)});
  folder_.Write("config.json", R"({"time_step_limit":[0.0,Infinity],"other":[0.0,{"__float__":"Infinity"}],"low":{"__float__":"-Infinity"},"text":"Infinity"})");
  auto c = Checkpoint::Open(folder_.path());
  ASSERT_TRUE(c) << c.error().ToString();
  EXPECT_EQ(c->config().Find("time_step_limit")->as_array()[1].as_double(), INFINITY);
  EXPECT_EQ(c->config().Find("other")->as_array()[1].as_double(), INFINITY);
  EXPECT_EQ(c->config().Find("low")->as_double(), -INFINITY);
  EXPECT_EQ(c->config().Find("text")->as_string(), "Infinity");
  EXPECT_TRUE(c->generation_config().is_null());
  EXPECT_TRUE(c->hf_quant_config().is_null());
  for (const char* text : {"", "[]", "{", "{\"a\":1,\"a\":2}"}) {
    folder_.Write("config.json", text);
    EXPECT_THAT(OpenError(), HasSubstr("config.json")) << text;
  }
}

TEST_F(CheckpointFolder, ReadsRangesAndReportsFailingReads) {
  WriteShard("model.safetensors", {{"odd", "U8", "[3]", "abc"}, {"x", "U8", "[2,4]", "12345678"}});
  auto c = Checkpoint::Open(folder_.path());
  ASSERT_TRUE(c);
  std::string out(3, '?');
  ASSERT_TRUE(c->ReadRange(*c->Find("x"), 4, std::as_writable_bytes(std::span(out))));
  EXPECT_EQ(out, "567");
  // Reads: config, header length, header, then data.
  auto broken = Checkpoint::Open(folder_.path(), {.file = {.pread = platform::FailNthRead(3, EIO)}});
  ASSERT_TRUE(broken) << broken.error().ToString();
  std::string whole(8, '?');
  base::Status s = broken->Read(*broken->Find("x"), std::as_writable_bytes(std::span(whole)));
  ASSERT_FALSE(s);
  EXPECT_THAT(s.error().ToString(), AllOf(HasSubstr("model.safetensors: tensor x: "), HasSubstr("Input/output error")));
  for (int n = 0; n < 3; ++n) {
    EXPECT_THAT(OpenError({.file = {.pread = platform::FailNthRead(n, EIO)}}), HasSubstr("Input/output error")) << n;
    EXPECT_THAT(OpenError({.file = {.pread = platform::EndAtNthRead(n)}}), HasSubstr("ends after")) << n;
  }
  EXPECT_EQ(OpenError({.file = {.pread = platform::ShortReads(3)}}), "opened");
}

TEST_F(CheckpointFolder, AHugeHeaderIsReadQuickly) {
  std::vector<RawTensor> tensors;
  for (int i = 0; i < 50'000; ++i) tensors.push_back({base::StrCat("model.layers.", i / 1000, ".mlp.experts.", i % 1000, ".gate_proj.weight"), "U8", "[1]", "x"});
  WriteShard("model.safetensors", tensors);
  auto c = Checkpoint::Open(folder_.path());
  ASSERT_TRUE(c) << c.error().ToString();
  EXPECT_EQ(c->tensors().size(), 50'000u);
  EXPECT_EQ(c->Find("model.layers.49.mlp.experts.999.gate_proj.weight")->size, 1u);
}

// A folder laid out as the Hugging Face cache does it.
TEST(HubSnapshot, LinksIntoItsBlobsAreFineAndOthersAreNot) {
  TemporaryFolder cache;
  cache.Write("models--org--name/blobs/aaaa", R"({"model_type":"llama"})");
  cache.Write("models--org--name/blobs/bbbb", SafetensorsBytes({Float("x", 4)}));
  cache.Write("models--org--other/blobs/cccc", SafetensorsBytes({Float("x", 5)}));
  fs::path snapshot = cache.path() / "models--org--name" / "snapshots" / "0123abcd";
  fs::create_directories(snapshot);
  fs::create_symlink("../../blobs/aaaa", snapshot / "config.json");
  fs::create_symlink("../../blobs/bbbb", snapshot / "model.safetensors");
  auto c = Checkpoint::Open(snapshot);
  ASSERT_TRUE(c) << c.error().ToString();
  EXPECT_NE(c->Find("x"), nullptr);
  fs::remove(snapshot / "model.safetensors");
  fs::create_symlink("../../../models--org--other/blobs/cccc", snapshot / "model.safetensors");
  EXPECT_THAT(Checkpoint::Open(snapshot).error().ToString(), HasSubstr("leaves the model's folder"));
}

uint64_t Fnv(std::span<const std::byte> data) {
  uint64_t h = 0xCBF29CE484222325;
  for (std::byte b : data) h = (h ^ static_cast<uint64_t>(b)) * 0x100000001B3;
  return h;
}

// "name dtype shape digest" lines in the order of tensors(), as tools/make_listings.py writes them.
std::string Listing(const Checkpoint& c) {
  std::string out;
  for (const TensorEntry& e : c.tensors()) {
    std::vector<std::byte> data(e.size);
    EXPECT_TRUE(c.Read(e, data));
    std::string shape = e.shape.ToString();
    std::erase(shape, ' ');
    char digest[17];
    std::snprintf(digest, sizeof digest, "%016lx", static_cast<unsigned long>(Fnv(data)));
    out += base::StrCat(e.name, " ", tensor::DTypeName(e.dtype), " ", shape, " ", static_cast<const char*>(digest), "\n");
  }
  return out;
}

void CompareWithListing(const fs::path& folder) {
  auto c = Checkpoint::Open(folder);
  ASSERT_TRUE(c) << c.error().ToString();
  std::ifstream file(fs::path(HALFBYTE_TEST_DATA) / "checkpoint" / (folder.filename().string() + ".listing"));
  std::stringstream golden;
  golden << file.rdbuf();
  ASSERT_FALSE(golden.str().empty());
  EXPECT_EQ(Listing(*c), golden.str());
}

TEST(Listings, TheShippedDemoModel) { CompareWithListing(fs::path(HALFBYTE_SOURCE_DIR) / "models" / "demo"); }
TEST(Listings, RealCheckpointsOfEveryDialect) {
  HB_NEED_SHARED_REFERENCE();
  for (const char* folder : {"models/qwen3_moe-fp8-block", "models/mixtral-fp8-channel", "producers/ct-nvfp4", "producers/modelopt-nvfp4-experts", "producers/ct-fp8-block", "families/nemotron_h"}) {
    SCOPED_TRACE(folder);
    CompareWithListing(SharedReference() / folder);
  }
}
TEST(Listings, EveryReferenceFolderOpens) {
  HB_NEED_SHARED_REFERENCE();
  int opened = 0;
  for (const char* group : {"models", "producers", "families"}) {
    for (const auto& entry : fs::directory_iterator(SharedReference() / group)) {
      if (!fs::exists(entry.path() / "config.json")) continue;
      auto c = Checkpoint::Open(entry.path());
      EXPECT_TRUE(c) << c.error().ToString();
      ++opened;
    }
  }
  EXPECT_GE(opened, 20);
}

}  // namespace
}  // namespace halfbyte::checkpoint
