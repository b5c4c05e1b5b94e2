#include "platform/memory.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <sys/mman.h>

#include "platform/cgroup.h"

namespace halfbyte::platform {
namespace {

// From here on an allocation is its own mapping: zeroed by the kernel, given back at once, backed by huge pages if there are any.
constexpr size_t kMappedFrom = 4u << 20;
constexpr size_t kHugePage = 2u << 20;

size_t MappedBytes(size_t bytes) { return (bytes + kHugePage - 1) / kHugePage * kHugePage; }

// "VmHWM:    1234 kB" of a /proc file, in bytes; 0 where it is not there.
uint64_t ProcField(const char* path, const std::string& field) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);)
    if (line.compare(0, field.size(), field) == 0) return std::strtoull(line.c_str() + field.size(), nullptr, 10) * 1024;
  return 0;
}

}  // namespace

base::Result<void*> AllocateHost(size_t bytes) {
  if (bytes < kMappedFrom) {
    void* p = std::aligned_alloc(64, (std::max<size_t>(bytes, 1) + 63) / 64 * 64);
    if (!p) return base::Fail(base::ErrorCode::kOutOfMemory, "cannot allocate ", bytes, " bytes");
    std::memset(p, 0, bytes);
    return p;
  }
  // Map one huge page more than needed, to be able to start at a huge-page boundary.
  size_t want = MappedBytes(bytes), mapped = want + kHugePage;
  void* raw = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED) return base::Fail(base::ErrorCode::kOutOfMemory, "cannot allocate ", bytes, " bytes: ", std::strerror(errno));
  auto begin = reinterpret_cast<uintptr_t>(raw), aligned = (begin + kHugePage - 1) / kHugePage * kHugePage;
  if (aligned > begin) munmap(raw, aligned - begin);
  if (size_t tail = begin + mapped - (aligned + want)) munmap(reinterpret_cast<void*>(aligned + want), tail);
  madvise(reinterpret_cast<void*>(aligned), want, MADV_HUGEPAGE);  // advice only: without it the pages are small
  return reinterpret_cast<void*>(aligned);
}

void FreeHost(void* data, size_t bytes) {
  if (bytes < kMappedFrom) std::free(data);
  else munmap(data, MappedBytes(bytes));
}

uint64_t AvailableMemory() {
  const uint64_t available = ProcField("/proc/meminfo", "MemAvailable:");
  return std::min(available, ReadCgroupLimits().memory_left.value_or(available));
}

uint64_t PeakResidentBytes() { return ProcField("/proc/self/status", "VmHWM:"); }
uint64_t ResidentBytes() { return ProcField("/proc/self/status", "VmRSS:"); }

void DropHostPages(void* data, size_t bytes) {
  constexpr uintptr_t kPage = 4096;
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(data) + kPage - 1) / kPage * kPage, end = (reinterpret_cast<uintptr_t>(data) + bytes) / kPage * kPage;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace halfbyte::platform
