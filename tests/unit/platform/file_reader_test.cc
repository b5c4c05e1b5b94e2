#include "platform/file_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <numeric>
#include <vector>

#include "platform/read_faults.h"

namespace halfbyte::platform {
namespace {

using base::ErrorCode;
using testing::HasSubstr;

class FileReader : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / base::StrCat("file_reader_", ::getpid(), "_", testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    content_.resize(100'000);
    for (size_t i = 0; i < content_.size(); ++i) content_[i] = static_cast<char>(i * 31 + i / 256);
    std::ofstream(path(), std::ios::binary) << content_;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path path() const { return folder_ / "data"; }
  std::string Read(const ReadOnlyFile& file, uint64_t offset, size_t bytes) {
    std::string out(bytes, '?');
    base::Status s = file.ReadAt(offset, std::as_writable_bytes(std::span(out)));
    return s ? out : "error: " + s.error().ToString();
  }
  std::filesystem::path folder_;
  std::string content_;
};

TEST_F(FileReader, ReadsRanges) {
  auto file = ReadOnlyFile::Open(path(), {.drop_behind = true});
  ASSERT_TRUE(file) << file.error().ToString();
  EXPECT_EQ(file->size(), content_.size());
  EXPECT_EQ(Read(*file, 0, content_.size()), content_);
  EXPECT_EQ(Read(*file, 777, 4096), content_.substr(777, 4096));
  EXPECT_EQ(Read(*file, content_.size(), 0), "");
}

TEST_F(FileReader, ContinuesShortAndInterruptedReads) {
  auto file = ReadOnlyFile::Open(path(), {.pread = ShortReads(1000)});
  EXPECT_EQ(Read(*file, 5, 50'000), content_.substr(5, 50'000));
  auto interrupted = ReadOnlyFile::Open(path(), {.pread = FailNthRead(0, EINTR)});
  EXPECT_EQ(Read(*interrupted, 5, 50'000), content_.substr(5, 50'000));
}

TEST_F(FileReader, ReportsFailuresAndTheEndOfTheFile) {
  auto broken = ReadOnlyFile::Open(path(), {.pread = FailNthRead(0, EIO)});
  EXPECT_THAT(Read(*broken, 64, 8), HasSubstr("reading 8 bytes at 64: Input/output error"));
  auto file = ReadOnlyFile::Open(path());
  EXPECT_THAT(Read(*file, content_.size() - 3, 8), HasSubstr("ends after 100000 bytes"));
}

TEST_F(FileReader, RefusesWhatIsNoRegularFileWithoutBlocking) {
  ASSERT_EQ(::mkfifo((folder_ / "fifo").c_str(), 0600), 0);
  for (const char* name : {"fifo", "."}) {
    auto file = ReadOnlyFile::Open(folder_ / name);
    ASSERT_FALSE(file);
    EXPECT_EQ(file.error().code(), ErrorCode::kBadFile) << name;
    EXPECT_THAT(file.error().ToString(), HasSubstr("a regular file is wanted"));
  }
  EXPECT_EQ(ReadOnlyFile::Open("/dev/null").error().code(), ErrorCode::kBadFile);
  EXPECT_EQ(ReadOnlyFile::Open(folder_ / "none").error().code(), ErrorCode::kNotFound);
  std::filesystem::create_symlink("data", folder_ / "link");
  EXPECT_TRUE(ReadOnlyFile::Open(folder_ / "link"));
  EXPECT_FALSE(ReadOnlyFile::Open(folder_ / "link", {.follow_last_link = false}));
}

TEST_F(FileReader, ReadWholeFileHasALimit) {
  EXPECT_EQ(*ReadWholeFile(path(), content_.size()), content_);
  EXPECT_THAT(ReadWholeFile(path(), content_.size() - 1).error().ToString(), HasSubstr("at most 99999 are read"));
}

TEST_F(FileReader, ReadAllFillsEveryRequestOnManyThreads) {
  constexpr size_t kBytes = 3 * kReadPiece + 12345;  // four pieces
  std::string large(kBytes, '\0');
  for (size_t i = 0; i < kBytes; ++i) large[i] = static_cast<char>(i ^ (i >> 9));
  std::ofstream(folder_ / "large", std::ios::binary) << large;
  for (int parallel : {1, 3, 16}) {
    auto file = ReadOnlyFile::Open(folder_ / "large", {.pread = ShortReads(1 << 20)});
    std::string a(kBytes - 7, '?'), b(100, '?');
    std::vector<ReadRequest> requests = {{&*file, 7, std::as_writable_bytes(std::span(a))}, {&*file, 50, std::as_writable_bytes(std::span(b))}, {&*file, 0, {}}};
    base::Status s = ReadAll(requests, parallel);
    ASSERT_TRUE(s) << s.error().ToString();
    EXPECT_TRUE(a == large.substr(7)) << parallel;
    EXPECT_TRUE(b == large.substr(50, 100)) << parallel;
  }
}

TEST_F(FileReader, ReadAllGivesTheFailureOfAnyPiece) {
  for (int n = 0; n < 4; ++n) {
    auto file = ReadOnlyFile::Open(path(), {.pread = FailNthRead(n, EIO)});
    std::vector<std::string> out(4, std::string(10, '?'));
    std::vector<ReadRequest> requests;
    for (size_t i = 0; i < out.size(); ++i) requests.push_back({&*file, i * 10, std::as_writable_bytes(std::span(out[i]))});
    base::Status s = ReadAll(requests, 2);
    ASSERT_FALSE(s) << n;
    EXPECT_EQ(s.error().code(), ErrorCode::kIo);
  }
}

}  // namespace
}  // namespace halfbyte::platform
