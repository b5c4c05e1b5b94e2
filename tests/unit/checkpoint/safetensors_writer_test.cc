#include "checkpoint/safetensors_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <numeric>
#include <sstream>
#include <thread>

#include "checkpoint/checkpoint.h"
#include "checkpoint/safetensors_header.h"
#include "unit/checkpoint/test_files.h"

namespace halfbyte::checkpoint {
namespace {

namespace fs = std::filesystem;
using tensor::DType;
using tensor::Shape;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream out;
  out << file.rdbuf();
  return out.str();
}
std::span<const std::byte> AsBytes(const std::string& s) { return std::as_bytes(std::span(s)); }
std::vector<std::string> Names(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& e : fs::directory_iterator(folder)) names.push_back(e.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}
std::string Text(char c, size_t n) { return std::string(n, c); }

TEST(SafetensorsWriter, MakesTheBytesOfPythonsLibrary) {
  std::string golden = ReadFile(fs::path(HALFBYTE_TEST_DATA) / "checkpoint" / "every_dtype.safetensors");
  ASSERT_FALSE(golden.empty());
  uint64_t n = *ParseHeaderLength(AsBytes(golden).first(8), golden.size());
  auto header = ParseHeader(std::string_view(golden).substr(8, n), golden.size() - 8 - n);
  ASSERT_TRUE(header) << header.error().message;
  std::vector<TensorDeclaration> declared;
  for (const HeaderTensor& t : header->tensors) declared.insert(declared.begin(), {t.name, t.dtype, t.shape});  // in another order
  TemporaryFolder out;
  auto writer = SafetensorsWriter::Create(out.path() / "model", declared);
  ASSERT_TRUE(writer) << writer.error().ToString();
  for (const HeaderTensor& t : header->tensors) ASSERT_TRUE(writer->Write(t.name, AsBytes(golden).subspan(8 + n + t.begin, t.end - t.begin)));
  ASSERT_TRUE(writer->Finish());
  EXPECT_THAT(Names(out.path() / "model"), ElementsAre("model.safetensors"));
  EXPECT_TRUE(ReadFile(out.path() / "model" / "model.safetensors") == golden);
}

TEST(SafetensorsWriter, ShardsGreedilyAndTheReaderReadsThemBack) {
  TemporaryFolder out;
  fs::path target = out.path() / "deep" / "model";
  std::vector<TensorDeclaration> declared = {{"a", DType::kU8, Shape{60}}, {"b", DType::kU8, Shape{40}}, {"c", DType::kU8, Shape{1}}, {"huge", DType::kF32, Shape{100}}, {"d", DType::kU8, Shape{}}, {"e", DType::kU8, Shape{0}}};
  auto writer = SafetensorsWriter::Create(target, declared, {.max_shard_bytes = 100});
  ASSERT_TRUE(writer) << writer.error().ToString();
  EXPECT_EQ(writer->shards(), 4);
  EXPECT_EQ(writer->total_bytes(), 502u);
  ASSERT_TRUE(writer->AddFile("config.json", "{}"));
  for (const TensorDeclaration& t : declared) {
    std::string data = Text(t.name[0], static_cast<size_t>(*tensor::TensorBytes(t.dtype, t.shape)));
    size_t half = data.size() / 2;  // in two pieces, the second first
    ASSERT_TRUE(writer->Write(t.name, AsBytes(data).subspan(half), half));
    ASSERT_TRUE(writer->Write(t.name, AsBytes(data).first(half)));
  }
  EXPECT_FALSE(fs::exists(target));
  ASSERT_TRUE(writer->Finish());
  EXPECT_THAT(Names(target), ElementsAre("config.json", "model-00001-of-00004.safetensors", "model-00002-of-00004.safetensors", "model-00003-of-00004.safetensors", "model-00004-of-00004.safetensors", "model.safetensors.index.json"));
  EXPECT_THAT(Names(target.parent_path()), ElementsAre("model"));
  EXPECT_EQ(ReadFile(target / "model.safetensors.index.json"), R"({
  "metadata": {
    "total_size": 502
  },
  "weight_map": {
    "a": "model-00001-of-00004.safetensors",
    "b": "model-00001-of-00004.safetensors",
    "c": "model-00002-of-00004.safetensors",
    "d": "model-00004-of-00004.safetensors",
    "e": "model-00004-of-00004.safetensors",
    "huge": "model-00003-of-00004.safetensors"
  }
}
)");
  auto c = Checkpoint::Open(target);
  ASSERT_TRUE(c) << c.error().ToString();
  EXPECT_EQ(c->total_bytes(), 502u);
  for (const TensorEntry& e : c->tensors()) {
    std::string data(e.size, '?');
    ASSERT_TRUE(c->Read(e, std::as_writable_bytes(std::span(data))));
    EXPECT_EQ(data, Text(e.name[0], e.size));
  }
}

TEST(SafetensorsWriter, WritesFromManyThreadsGiveTheSameBytes) {
  TemporaryFolder out;
  std::vector<TensorDeclaration> declared;
  for (int i = 0; i < 40; ++i) declared.push_back({base::StrCat("t", i), DType::kI32, Shape{1000}});
  auto write = [&](const fs::path& target, int threads) {
    auto writer = SafetensorsWriter::Create(target, declared, {.max_shard_bytes = 50'000});
    ASSERT_TRUE(writer);
    std::vector<std::jthread> pool;
    for (int t = 0; t < threads; ++t)
      pool.emplace_back([&, t] {
        for (int i = t; i < 40; i += threads) {
          std::vector<int32_t> data(1000);
          std::iota(data.begin(), data.end(), i * 1000);
          EXPECT_TRUE(writer->Write(declared[static_cast<size_t>(i)].name, std::as_bytes(std::span(data))));
        }
      });
    pool.clear();
    ASSERT_TRUE(writer->Finish());
  };
  write(out.path() / "one", 1);
  write(out.path() / "five", 5);
  ASSERT_EQ(Names(out.path() / "one"), Names(out.path() / "five"));
  for (const std::string& name : Names(out.path() / "one")) EXPECT_TRUE(ReadFile(out.path() / "one" / name) == ReadFile(out.path() / "five" / name)) << name;
}

TEST(SafetensorsWriter, RefusesBadDeclarationsAndTargets) {
  TemporaryFolder out;
  auto error = [&](const fs::path& target, std::vector<TensorDeclaration> t) {
    auto w = SafetensorsWriter::Create(target, std::move(t));
    return w ? "created" : w.error().ToString();
  };
  EXPECT_THAT(error(out.path() / "m", {{"a", DType::kU8, Shape{1}}, {"a", DType::kU8, Shape{1}}}), HasSubstr("a would be written twice"));
  EXPECT_THAT(error(out.path() / "m", {{"__metadata__", DType::kU8, Shape{1}}}), HasSubstr("is no name for a tensor"));
  EXPECT_THAT(error(out.path() / "m", {{"a", DType::kF32, Shape{int64_t{1} << 40, int64_t{1} << 40}}}), HasSubstr("63 bits"));
  EXPECT_THAT(error("/", {}), HasSubstr("is no name for a new folder"));
  out.Write("full/config.json", "{}");
  EXPECT_THAT(error(out.path() / "full", {}), HasSubstr("exists already"));
  EXPECT_THAT(error(out.path() / "full" / "config.json", {}), HasSubstr("exists already"));
  fs::create_directory(out.path() / "empty");
  auto writer = SafetensorsWriter::Create(out.path() / "empty/", {{"a", DType::kU8, Shape{1}}});
  ASSERT_TRUE(writer) << writer.error().ToString();
  EXPECT_THAT(writer->AddFile("../x", "").error().ToString(), HasSubstr("no plain file name"));
  ASSERT_TRUE(writer->Write("a", AsBytes("x")));
  EXPECT_TRUE(writer->Finish());
  EXPECT_THAT(Names(out.path() / "empty"), ElementsAre("model.safetensors"));
}

TEST(SafetensorsWriter, CopiesFiles) {
  TemporaryFolder out;
  std::string large = Text('x', 3'000'000) + "end";
  fs::path from = out.Write("source/tokenizer.json", large);
  auto writer = SafetensorsWriter::Create(out.path() / "m", {});
  ASSERT_TRUE(writer->CopyFile("tokenizer.json", from));
  EXPECT_FALSE(writer->CopyFile("tokenizer.json", from));  // twice
  EXPECT_FALSE(writer->Finish());                          // and remembered
  auto again = SafetensorsWriter::Create(out.path() / "m", {});
  ASSERT_TRUE(again->CopyFile("tokenizer.json", from));
  ASSERT_TRUE(again->Finish());
  EXPECT_TRUE(ReadFile(out.path() / "m" / "tokenizer.json") == large);
}

TEST(SafetensorsWriter, AnythingUnfinishedLeavesNothing) {
  TemporaryFolder out;
  {
    auto writer = SafetensorsWriter::Create(out.path() / "m", {{"a", DType::kU8, Shape{4}}});
    ASSERT_TRUE(writer->Write("a", AsBytes("ab")));
    EXPECT_THAT(Names(out.path()), ElementsAre(HasSubstr(".m.partial-")));
    EXPECT_THAT(writer->Finish().error().ToString(), HasSubstr("a has 4 bytes, 2 were written"));
    EXPECT_THAT(Names(out.path()), IsEmpty());
  }
  { auto writer = SafetensorsWriter::Create(out.path() / "m", {{"a", DType::kU8, Shape{4}}}); }
  EXPECT_THAT(Names(out.path()), IsEmpty());
}

TEST(SafetensorsWriter, ShortAndFailingWrites) {
  TemporaryFolder out;
  int calls = 0;
  auto trickle = [&](int fd, const void* data, size_t n, off_t at) -> ssize_t {
    if (++calls % 3 == 0) { errno = EINTR; return -1; }
    return ::pwrite(fd, data, std::min<size_t>(n, 7), at);
  };
  auto slow = SafetensorsWriter::Create(out.path() / "slow", {{"a", DType::kU8, Shape{100}}}, {.pwrite = trickle});
  ASSERT_TRUE(slow->Write("a", AsBytes(Text('a', 100))));
  ASSERT_TRUE(slow->Finish());
  EXPECT_TRUE(ReadFile(out.path() / "slow" / "model.safetensors").ends_with(Text('a', 100)));
  for (int n = 0; n < 3; ++n) {  // header, tensor, index
    int count = 0;
    auto full = [&](int fd, const void* data, size_t bytes, off_t at) -> ssize_t {
      if (count++ == n) { errno = ENOSPC; return -1; }
      return ::pwrite(fd, data, bytes, at);
    };
    auto writer = SafetensorsWriter::Create(out.path() / "m", {{"a", DType::kU8, Shape{100}}}, {.pwrite = full});
    std::string error = writer ? "" : writer.error().ToString();
    if (writer) {
      base::Status s = writer->Write("a", AsBytes(Text('a', 100)));
      if (s) s = writer->AddFile("config.json", "{}");
      EXPECT_FALSE(writer->Finish());  // fails even where the caller goes on
      ASSERT_FALSE(s) << n;
      error = s.error().ToString();
    }
    EXPECT_THAT(error, HasSubstr("No space left on device (free some space or write elsewhere)"));
    EXPECT_FALSE(fs::exists(out.path() / "m"));
  }
}

// A process killed at any point leaves either the whole checkpoint or none under the target's name, and the next writer cleans up.
TEST(SafetensorsWriter, KilledAtEveryStage) {
  TemporaryFolder out;
  fs::path target = out.path() / "m";
  for (std::string stage : {"created", "written", "sync", "index", "rename", "done"}) {
    pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto die = [&](std::string_view now) { if (now == stage) ::kill(::getpid(), SIGKILL); };
      auto writer = SafetensorsWriter::Create(target, {{"a", DType::kU8, Shape{100}}, {"b", DType::kU8, Shape{100}}}, {.max_shard_bytes = 100, .before_step = die});
      die("created");
      for (const char* name : {"a", "b"}) { (void)writer->Write(name, AsBytes(Text(*name, 100))); die("written"); }
      (void)writer->AddFile("config.json", "{}");
      (void)writer->Finish();
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << stage;
    bool published = stage == "done";
    EXPECT_EQ(fs::exists(target), published) << stage;
    EXPECT_EQ(Names(out.path()).size(), 1u) << stage;  // the target, or one abandoned folder, or the one of the stage before cleaned up
    if (!published) continue;
    auto c = Checkpoint::Open(target);
    ASSERT_TRUE(c) << c.error().ToString();
    EXPECT_EQ(c->tensors().size(), 2u);
    fs::remove_all(target);
  }
}

TEST(SafetensorsWriter, TwoLivingWritersOfOneTargetDoNotHarmEachOther) {
  TemporaryFolder out;
  auto first = SafetensorsWriter::Create(out.path() / "m", {{"a", DType::kU8, Shape{1}}});
  auto second = SafetensorsWriter::Create(out.path() / "m", {{"a", DType::kU8, Shape{1}}});
  ASSERT_TRUE(first && second);
  EXPECT_EQ(Names(out.path()).size(), 2u);
  ASSERT_TRUE(first->Write("a", AsBytes("1")));
  ASSERT_TRUE(second->Write("a", AsBytes("2")));
  ASSERT_TRUE(first->Finish());
  EXPECT_FALSE(second->Finish());
  EXPECT_TRUE(ReadFile(out.path() / "m" / "model.safetensors").ends_with("1"));
  EXPECT_THAT(Names(out.path()), ElementsAre("m"));
}

}  // namespace
}  // namespace halfbyte::checkpoint
