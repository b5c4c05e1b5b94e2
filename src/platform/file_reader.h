// Positional reads of model files into the caller's buffers.
//
// pread and not mmap: a mapped 60 GB checkpoint counts as resident memory while it is converted, a truncated file kills the process
// with SIGBUS, and faults of 4 KiB read network storage slowly. Every byte is asked for once, in large pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include <sys/types.h>

#include "base/result.h"

namespace halfbyte::platform {

// The system call behind every read: as pread(2). Tests put one here that fails or is short (platform/read_faults.h).
using PreadFunction = std::function<ssize_t(int fd, void* out, size_t bytes, off_t offset)>;

struct FileOptions {
  bool follow_last_link = true;  // false: a symbolic link as the last component is refused (the caller resolved it already)
  bool sequential = true;        // tells the kernel to read ahead
  // Tells the kernel to forget pages once they were read, so that a load does not push everybody else's files out of memory.
  // Off by default: a model that is loaded twice comes from memory the second time.
  bool drop_behind = false;
  PreadFunction pread;           // empty: the system's
};

// A regular file opened for reading. Movable; reads may run on any number of threads at once.
class ReadOnlyFile {
 public:
  // Never blocks: a FIFO, socket, device or folder is refused (kBadFile) without waiting for a writer.
  static base::Result<ReadOnlyFile> Open(const std::filesystem::path& path, FileOptions options = {});
  ReadOnlyFile(ReadOnlyFile&& other) noexcept;
  ReadOnlyFile& operator=(ReadOnlyFile&& other) noexcept;
  ~ReadOnlyFile();

  const std::filesystem::path& path() const { return path_; }
  uint64_t size() const { return size_; }  // as it was when the file was opened

  // Fills `out` from `offset` on. Short reads and EINTR are continued; the end of the file before `out` is full is kBadFile
  // ("ends after 10 bytes"), a failing system call kIo.
  base::Status ReadAt(uint64_t offset, std::span<std::byte> out) const;

 private:
  ReadOnlyFile() = default;
  int fd_ = -1;
  uint64_t size_ = 0;
  std::filesystem::path path_;
  FileOptions options_;
};

// The whole file as text; kBadFile where it is larger than `limit` bytes.
base::Result<std::string> ReadWholeFile(const std::filesystem::path& path, uint64_t limit, FileOptions options = {});

// One piece of a file and where it goes. file and out must outlive the read.
struct ReadRequest {
  const ReadOnlyFile* file = nullptr;
  uint64_t offset = 0;
  std::span<std::byte> out;
};

// Largest single pread. 8 MiB: from there on the call's cost is below 0.1 % of the copy, and a share of it fits a network file system's window.
constexpr size_t kReadPiece = size_t{8} << 20;

// Carries out all requests on up to `parallel` threads (I/O waits, so this may exceed the cores), split into pieces of kReadPiece and
// started in the order given. Returns the error of the earliest failing piece; pieces after a failure may be left unread.
base::Status ReadAll(std::span<const ReadRequest> requests, int parallel);

}  // namespace halfbyte::platform
