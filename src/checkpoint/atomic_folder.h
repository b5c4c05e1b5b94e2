// A folder that is filled under a temporary name beside its target and becomes visible by one rename; internal to checkpoint.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/result.h"

namespace halfbyte::checkpoint::internal {

class AtomicFolder {
 public:
  // Refuses a target that exists and is no empty folder. Makes the target's parents. Removes temporary folders of the same target whose
  // process is gone (each living one holds a lock on its folder).
  static base::Result<AtomicFolder> Create(const std::filesystem::path& target);
  AtomicFolder(AtomicFolder&& other) noexcept;
  AtomicFolder& operator=(AtomicFolder&& other) noexcept;
  ~AtomicFolder();  // removes the temporary folder unless Publish succeeded

  const std::filesystem::path& path() const { return temporary_; }
  const std::filesystem::path& target() const { return target_; }
  // Syncs the folder, renames it to the target, syncs the parent.
  base::Status Publish();

 private:
  AtomicFolder() = default;
  std::filesystem::path target_, temporary_;  // temporary_ is empty once published or moved from
  int lock_ = -1;                             // an open descriptor of the temporary folder, locked
};

// fsync of a file or folder by name.
base::Status SyncPath(const std::filesystem::path& path);
// What errno says about an operation on a path; the hint speaks of space where that is the cause.
tl::unexpected<base::Error> SystemError(std::string_view what, const std::filesystem::path& path, int error);

}  // namespace halfbyte::checkpoint::internal
