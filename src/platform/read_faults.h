// Reads that go wrong on purpose, for the tests of everything that reads files (put one into FileOptions::pread).
#pragma once

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <memory>

#include "platform/file_reader.h"

namespace halfbyte::platform {

// The nth read (from 0, counted over all files and threads that share the returned function) fails with `error`; the others are real.
inline PreadFunction FailNthRead(int n, int error) {
  auto count = std::make_shared<std::atomic<int>>(0);
  return [=](int fd, void* out, size_t bytes, off_t offset) -> ssize_t {
    if ((*count)++ == n) { errno = error; return -1; }
    return ::pread(fd, out, bytes, offset);
  };
}

// The nth read and all later ones find the end of the file.
inline PreadFunction EndAtNthRead(int n) {
  auto count = std::make_shared<std::atomic<int>>(0);
  return [=](int fd, void* out, size_t bytes, off_t offset) -> ssize_t { return (*count)++ >= n ? 0 : ::pread(fd, out, bytes, offset); };
}

// Every read gives at most `most` bytes, as pipes and some network file systems do.
inline PreadFunction ShortReads(size_t most) {
  return [=](int fd, void* out, size_t bytes, off_t offset) -> ssize_t { return ::pread(fd, out, bytes < most ? bytes : most, offset); };
}

}  // namespace halfbyte::platform
