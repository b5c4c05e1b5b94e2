// What the control groups of this process leave it. Limits are set on any ancestor, so every folder from the process's own group up to the root counts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace halfbyte::platform {

struct CgroupLimits {
  // Bytes until the tightest group is full; nothing where no group has a limit. Pages of files count as free, since the kernel drops them before it
  // refuses memory to anybody: a container that has just downloaded a model has all of it in its page cache.
  std::optional<uint64_t> memory_left;
  std::optional<double> cpus;  // the smallest quota / period
};

// membership: /proc/self/cgroup; mount: where the hierarchies are (v2, or a folder a controller of v1). What cannot be read is no limit.
CgroupLimits ReadCgroupLimits(const std::filesystem::path& membership = "/proc/self/cgroup", const std::filesystem::path& mount = "/sys/fs/cgroup");

}  // namespace halfbyte::platform
