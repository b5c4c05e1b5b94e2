// Control groups as files: both versions, limits on ancestors, the page cache, and the shapes that containers have.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "platform/cgroup.h"

namespace halfbyte::platform {
namespace {

namespace fs = std::filesystem;

class Cgroup : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "halfbyte_cgroup_XXXXXX";
    ASSERT_TRUE(::mkdtemp(name.data()));
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  void Write(const std::string& name, const std::string& text) {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text;
  }
  CgroupLimits Read() const { return ReadCgroupLimits(folder_ / "membership", folder_ / "fs"); }

  fs::path folder_;
};

TEST_F(Cgroup, NoLimitsAnywhere) {
  EXPECT_FALSE(Read().memory_left);
  EXPECT_FALSE(Read().cpus);
  Write("membership", "0::/user.slice\n");
  Write("fs/user.slice/memory.max", "max\n");
  Write("fs/user.slice/memory.current", "5000\n");
  Write("fs/user.slice/cpu.max", "max 100000\n");
  EXPECT_FALSE(Read().memory_left);
  EXPECT_FALSE(Read().cpus);
}

TEST_F(Cgroup, TheTightestAncestorCounts) {
  Write("membership", "0::/a/b\n");
  Write("fs/a/b/memory.max", "9000\n");
  Write("fs/a/b/memory.current", "1000\n");
  Write("fs/a/b/cpu.max", "800000 100000\n");
  Write("fs/a/memory.max", "5000\n");
  Write("fs/a/memory.current", "3000\n");
  Write("fs/a/cpu.max", "150000 100000\n");
  EXPECT_EQ(Read().memory_left, 2000u);
  EXPECT_EQ(Read().cpus, 1.5);
}

TEST_F(Cgroup, PagesOfFilesAreFree) {
  Write("membership", "0::/\n");
  Write("fs/memory.max", "10000\n");
  Write("fs/memory.current", "9500\n");
  EXPECT_EQ(Read().memory_left, 500u);
  Write("fs/memory.stat", "anon 1500\nfile 8000\ninactive_file 6000\nactive_file 2000\nslab 0\n");
  EXPECT_EQ(Read().memory_left, 8500u);
  Write("fs/memory.current", "12000\n");
  Write("fs/memory.stat", "inactive_file 0\n");
  EXPECT_EQ(Read().memory_left, 0u);
}

// Without a namespace of its own a container sees the host's path and its own group as the root.
TEST_F(Cgroup, APathThatIsNotThereLeavesTheRoot) {
  Write("membership", "0::/system.slice/docker-abc.scope\n");
  Write("fs/memory.max", "4000\n");
  Write("fs/memory.current", "1000\n");
  Write("fs/cpu.max", "50000 100000\n");
  EXPECT_EQ(Read().memory_left, 3000u);
  EXPECT_EQ(Read().cpus, 0.5);
}

TEST_F(Cgroup, Version1) {
  Write("membership", "7:memory:/job\n4:cpu,cpuacct:/job\n1:name=systemd:/elsewhere\n");
  Write("fs/memory/job/memory.limit_in_bytes", "8000\n");
  Write("fs/memory/job/memory.usage_in_bytes", "7000\n");
  Write("fs/memory/job/memory.stat", "cache 9\ntotal_inactive_file 1000\ntotal_active_file 500\n");
  Write("fs/memory/memory.limit_in_bytes", "9223372036854771712\n");
  Write("fs/memory/memory.usage_in_bytes", "1\n");
  Write("fs/cpu/job/cpu.cfs_quota_us", "300000\n");
  Write("fs/cpu/job/cpu.cfs_period_us", "100000\n");
  Write("fs/cpu/cpu.cfs_quota_us", "-1\n");
  Write("fs/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Read().memory_left, 2500u);
  EXPECT_EQ(Read().cpus, 3.0);
}

}  // namespace
}  // namespace halfbyte::platform
