#include "platform/file_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

namespace halfbyte::platform {
namespace {

using base::ErrorCode;
using base::Fail;

const char* KindOf(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "no regular file";
}

}  // namespace

base::Result<ReadOnlyFile> ReadOnlyFile::Open(const std::filesystem::path& path, FileOptions options) {
  // O_NONBLOCK makes the open of a FIFO return at once; it means nothing for regular files.
  int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (options.follow_last_link ? 0 : O_NOFOLLOW);
  int fd = -1;
  do fd = ::open(path.c_str(), flags); while (fd < 0 && errno == EINTR);
  if (fd < 0) {
    ErrorCode code = errno == ENOENT || errno == ENOTDIR ? ErrorCode::kNotFound : errno == ENXIO || errno == ELOOP ? ErrorCode::kBadFile : ErrorCode::kIo;
    return Fail(code, path.string(), ": ", std::strerror(errno));
  }
  ReadOnlyFile file;
  file.fd_ = fd;
  file.path_ = path;
  struct stat info;
  if (::fstat(fd, &info) != 0) return Fail(ErrorCode::kIo, path.string(), ": ", std::strerror(errno));
  if (!S_ISREG(info.st_mode)) return Fail(ErrorCode::kBadFile, path.string(), " is ", KindOf(info.st_mode), ", a regular file is wanted");
  file.size_ = static_cast<uint64_t>(info.st_size);
  if (options.sequential) ::posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);  // advice only: its failure changes nothing
  file.options_ = std::move(options);
  return file;
}

ReadOnlyFile::ReadOnlyFile(ReadOnlyFile&& other) noexcept { *this = std::move(other); }
ReadOnlyFile& ReadOnlyFile::operator=(ReadOnlyFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(size_, other.size_);
  std::swap(path_, other.path_);
  std::swap(options_, other.options_);
  return *this;
}
ReadOnlyFile::~ReadOnlyFile() { if (fd_ >= 0) ::close(fd_); }

base::Status ReadOnlyFile::ReadAt(uint64_t offset, std::span<std::byte> out) const {
  size_t done = 0;
  while (done < out.size()) {
    size_t want = std::min(out.size() - done, kReadPiece);
    off_t at = static_cast<off_t>(offset + done);
    ssize_t got = options_.pread ? options_.pread(fd_, out.data() + done, want, at) : ::pread(fd_, out.data() + done, want, at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Fail(ErrorCode::kIo, path_.string(), ": reading ", want, " bytes at ", offset + done, ": ", std::strerror(errno));
    if (got == 0)
      return Fail(base::Error(ErrorCode::kBadFile, base::StrCat(path_.string(), " ends after ", offset + done, " bytes, ", out.size(), " bytes at ", offset, " were asked for"))
                      .Hint("the file is truncated or changed while it was read; download it again"));
    if (options_.drop_behind) ::posix_fadvise(fd_, at, got, POSIX_FADV_DONTNEED);
    done += static_cast<size_t>(got);
  }
  return {};
}

base::Result<std::string> ReadWholeFile(const std::filesystem::path& path, uint64_t limit, FileOptions options) {
  HB_ASSIGN_OR_RETURN(ReadOnlyFile file, ReadOnlyFile::Open(path, std::move(options)));
  if (file.size() > limit) return Fail(ErrorCode::kBadFile, path.string(), " has ", file.size(), " bytes, at most ", limit, " are read");
  std::string text(file.size(), '\0');
  HB_RETURN_IF_ERROR(file.ReadAt(0, std::as_writable_bytes(std::span(text.data(), text.size()))));
  return text;
}

base::Status ReadAll(std::span<const ReadRequest> requests, int parallel) {
  std::vector<ReadRequest> pieces;
  for (const ReadRequest& r : requests)
    for (size_t at = 0; at < r.out.size(); at += kReadPiece)
      pieces.push_back({r.file, r.offset + at, r.out.subspan(at, std::min(kReadPiece, r.out.size() - at))});

  std::atomic<size_t> next = 0;
  std::mutex mutex;
  size_t failed_piece = pieces.size();
  base::Status status;
  auto work = [&] {
    for (size_t i = next++; i < pieces.size(); i = next++) {
      base::Status s = pieces[i].file->ReadAt(pieces[i].offset, pieces[i].out);
      if (s) continue;
      std::lock_guard lock(mutex);
      if (i < failed_piece) { failed_piece = i; status = std::move(s); }
      next = pieces.size();
    }
  };
  size_t helpers = std::min<size_t>(static_cast<size_t>(std::max(parallel, 1)), pieces.size());
  std::vector<std::jthread> threads;
  for (size_t t = 1; t < helpers; ++t) threads.emplace_back(work);
  work();
  threads.clear();  // joins
  return status;
}

}  // namespace halfbyte::platform
