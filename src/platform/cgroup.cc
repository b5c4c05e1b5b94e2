#include "platform/cgroup.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

namespace halfbyte::platform {
namespace {

namespace fs = std::filesystem;

// The groups of one hierarchy that this process is in, its own first. In a container without a namespace of its own the path is the host's and is not
// there; the root always is, and there it is the container's group.
std::vector<fs::path> Folders(const fs::path& root, std::string path) {
  std::vector<fs::path> out;
  for (; path.size() > 1; path.resize(path.rfind('/'))) out.push_back(root.string() + path);
  out.push_back(root);
  return out;
}

// Lines are "0::/path" (v2) and "4:cpu,cpuacct:/path" (v1).
std::string PathOf(const fs::path& membership, std::string_view controller) {
  std::ifstream in(membership);
  for (std::string line; std::getline(in, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string names = "," + line.substr(first + 1, second - first - 1) + ",";
    if (controller.empty() ? names == ",," : names.find("," + std::string(controller) + ",") != names.npos) return line.substr(second + 1);
  }
  return "";
}

// The first number of a file; nothing where there is none ("max").
std::optional<double> Number(const fs::path& file, int skip_words = 0) {
  std::ifstream in(file);
  for (std::string word; skip_words > 0; --skip_words) in >> word;
  double v;
  return in >> v ? std::optional(v) : std::nullopt;
}

double Field(const fs::path& file, const std::string& name) {
  std::ifstream in(file);
  std::string word;
  for (double v; in >> word >> v;)
    if (word == name) return v;
  return 0;
}

template <typename T>
void Tighten(std::optional<T>& limit, T v) { limit = limit ? std::min(*limit, v) : v; }

void AddMemory(CgroupLimits& limits, std::optional<double> cap, std::optional<double> used, double of_files) {
  constexpr double kNoLimit = 0x1p60;  // v1 writes the largest page-aligned number for "none"
  if (!cap || !used || *cap >= kNoLimit) return;
  Tighten(limits.memory_left, static_cast<uint64_t>(std::max(0.0, *cap - std::max(0.0, *used - of_files))));
}
void AddCpus(CgroupLimits& limits, std::optional<double> quota, std::optional<double> period) {
  if (quota && period && *quota > 0 && *period > 0) Tighten(limits.cpus, *quota / *period);
}

}  // namespace

CgroupLimits ReadCgroupLimits(const fs::path& membership, const fs::path& mount) {
  CgroupLimits limits;
  for (const fs::path& f : Folders(mount, PathOf(membership, ""))) {
    const double of_files = Field(f / "memory.stat", "inactive_file") + Field(f / "memory.stat", "active_file");
    AddMemory(limits, Number(f / "memory.max"), Number(f / "memory.current"), of_files);
    AddCpus(limits, Number(f / "cpu.max"), Number(f / "cpu.max", 1));
  }
  for (const fs::path& f : Folders(mount / "memory", PathOf(membership, "memory"))) {
    const double of_files = Field(f / "memory.stat", "total_inactive_file") + Field(f / "memory.stat", "total_active_file");
    AddMemory(limits, Number(f / "memory.limit_in_bytes"), Number(f / "memory.usage_in_bytes"), of_files);
  }
  for (const fs::path& f : Folders(mount / "cpu", PathOf(membership, "cpu"))) AddCpus(limits, Number(f / "cpu.cfs_quota_us"), Number(f / "cpu.cfs_period_us"));
  return limits;
}

}  // namespace halfbyte::platform
