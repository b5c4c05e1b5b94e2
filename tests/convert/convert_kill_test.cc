// A conversion that ends early, in whatever way, shows nothing: killed at every stage, a read or a write that fails, a damaged source.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>

#include "convert/convert_support.h"
#include "platform/read_faults.h"

namespace halfbyte::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// A tiny model on disk, its conversion in one piece, and a target.
class ConvertKill : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directory(t_.path() / "in");
    TinyModel m({.layers = 2});
    t_.Write("in/config.json", m.config.Dump());
    t_.Write("in/model.safetensors", checkpoint::SafetensorsBytes(m.tensors));
    t_.Write("in/tokenizer.json", "{}");
    MustQuantize(in(), t_.path() / "whole", Modelopt());
  }
  fs::path in() const { return t_.path() / "in"; }
  fs::path out() const { return t_.path() / "out"; }
  // Names beside the source and the whole conversion: the target, and what is left of attempts.
  std::vector<std::string> Leftovers() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(t_.path()))
      if (std::string name = entry.path().filename(); name != "in" && name != "whole") names.push_back(name);
    return names;
  }
  void ExpectWhole() const {
    ExpectSameTensors(ReadFolder(t_.path() / "whole"), ReadFolder(out()));
    for (const char* name : {"config.json", "hf_quant_config.json", "tokenizer.json", "model.safetensors"}) EXPECT_EQ(FileText(t_.path() / "whole" / name), FileText(out() / name)) << name;
  }
  // Runs the conversion in a process that `run` and `files` kill; true if it was killed.
  bool Killed(quant::ExportRun run, checkpoint::CheckpointOptions files = {}) {
    const pid_t child = ::fork();
    if (child == 0) {
      (void)Quantize(in(), out(), Modelopt(), std::move(run), std::move(files));
      ::_exit(0);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  }
  TemporaryFolder t_;
};

void KillMe() { ::kill(::getpid(), SIGKILL); }

TEST_F(ConvertKill, AtEveryWriteAndStepOfTheEnd) {
  // The nth write, until the conversion needs fewer: codes, scales, copies, small files.
  int n = 0;
  for (;; ++n) {
    ASSERT_LT(n, 400);
    auto count = std::make_shared<std::atomic<int>>(0);
    quant::ExportRun run;
    run.writer.pwrite = [=](int fd, const void* data, size_t bytes, off_t offset) -> ssize_t {
      if ((*count)++ == n) {
        if (::pwrite(fd, data, bytes / 2, offset) < 0) return -1;  // half of it is on disk
        KillMe();
      }
      return ::pwrite(fd, data, bytes, offset);
    };
    if (!Killed(run)) break;
    ASSERT_FALSE(fs::exists(out())) << "killed at write " << n;
  }
  EXPECT_GT(n, 60);
  ExpectWhole();
  EXPECT_THAT(Leftovers(), testing::ElementsAre("out")) << "the last run removed what the killed ones left";

  for (const char* step : {"sync", "index", "rename", "done"}) {
    fs::remove_all(out());
    quant::ExportRun run;
    run.writer.before_step = [step](std::string_view now) { if (now == step) KillMe(); };
    EXPECT_TRUE(Killed(run)) << step;
    if (std::string_view(step) == "done") ExpectWhole();  // the rename was the last thing to happen
    else EXPECT_FALSE(fs::exists(out())) << step;
  }
}

TEST_F(ConvertKill, AtReads) {
  for (int n : {3, 10, 25}) {
    checkpoint::CheckpointOptions files;
    auto count = std::make_shared<std::atomic<int>>(0);
    files.file.pread = [=](int fd, void* data, size_t bytes, off_t offset) -> ssize_t {
      if ((*count)++ == n) KillMe();
      return ::pread(fd, data, bytes, offset);
    };
    EXPECT_TRUE(Killed({}, files)) << n;
    EXPECT_FALSE(fs::exists(out())) << n;
  }
  MustQuantize(in(), out(), Modelopt());
  EXPECT_THAT(Leftovers(), testing::ElementsAre("out"));
}

TEST_F(ConvertKill, AFailingReadOrWriteLeavesNothing) {
  // Every read of a conversion in turn: headers, weights, copies.
  auto reads = std::make_shared<std::atomic<int>>(0);
  checkpoint::CheckpointOptions counted;
  counted.file.pread = [=](int fd, void* data, size_t bytes, off_t offset) -> ssize_t { ++*reads; return ::pread(fd, data, bytes, offset); };
  ASSERT_TRUE(Quantize(in(), out(), Modelopt(), {}, counted));
  fs::remove_all(out());
  ASSERT_GT(*reads, 30);
  for (int n = 0; n < *reads; ++n) {
    checkpoint::CheckpointOptions files;
    files.file.pread = platform::FailNthRead(n, EIO);
    const auto result = Quantize(in(), out(), Modelopt(), {}, files);
    ASSERT_FALSE(result) << n;
    EXPECT_EQ(result.error().code(), base::ErrorCode::kIo) << result.error().ToString();
    EXPECT_THAT(Leftovers(), testing::IsEmpty()) << n;
  }
  for (int n = 0; n < 60; n += 7) {
    quant::ExportRun run;
    auto count = std::make_shared<std::atomic<int>>(0);
    run.writer.pwrite = [=](int fd, const void* data, size_t bytes, off_t offset) -> ssize_t {
      if ((*count)++ == n) { errno = ENOSPC; return -1; }
      return ::pwrite(fd, data, bytes, offset);
    };
    const auto result = Quantize(in(), out(), Modelopt(), run);
    ASSERT_FALSE(result) << n;
    EXPECT_THAT(result.error().ToString(), HasSubstr("No space left"));
    EXPECT_THAT(Leftovers(), testing::IsEmpty()) << n;
  }
}

TEST_F(ConvertKill, ADamagedSourceLeavesNothing) {
  TinyModel m;
  std::string& weights = m.at("model.layers.0.mlp.experts.1.up_proj.weight").data;
  weights[7] = '\x7f';
  weights[6] = '\xc0';  // NaN
  t_.Write("in/model.safetensors", checkpoint::SafetensorsBytes(m.tensors));
  t_.Write("in/config.json", m.config.Dump());
  const auto result = Quantize(in(), out(), Modelopt());
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().ToString(), HasSubstr("model.layers.0.mlp.experts.1.up_proj.weight (layer 0, expert 1, experts.up): 1 NaN"));
  EXPECT_THAT(Leftovers(), testing::IsEmpty());
}

TEST_F(ConvertKill, AnExistingTargetIsNotTouched) {
  t_.Write("out/mine.txt", "mine");
  const auto result = Quantize(in(), out(), Modelopt());
  ASSERT_FALSE(result);
  EXPECT_EQ(FileText(out() / "mine.txt"), "mine");
  EXPECT_FALSE(Quantize(in(), in(), Modelopt()));
}

}  // namespace
}  // namespace halfbyte::test
