#include "checkpoint/atomic_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace halfbyte::checkpoint::internal {
namespace {

namespace fs = std::filesystem;
using base::ErrorCode;
using base::Fail;
using base::StrCat;

int OpenFolder(const fs::path& path) { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }

// Temporary folders that nobody locks belong to processes that were killed. The caller holds the parent's lock, so none is just being made.
void RemoveAbandoned(const fs::path& parent, const std::string& prefix) {
  std::error_code ec;
  std::vector<fs::path> abandoned;
  for (fs::directory_iterator i(parent, ec), end; !ec && i != end; i.increment(ec)) {
    if (!i->path().filename().string().starts_with(prefix)) continue;
    int fd = OpenFolder(i->path());
    if (fd < 0) continue;
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) abandoned.push_back(i->path());
    ::close(fd);
  }
  for (const fs::path& path : abandoned) fs::remove_all(path, ec);
}

}  // namespace

tl::unexpected<base::Error> SystemError(std::string_view what, const fs::path& path, int error) {
  base::Error e(ErrorCode::kIo, StrCat(what, " ", path.string(), ": ", std::strerror(error)));
  if (error == ENOSPC || error == EDQUOT) return Fail(std::move(e).Hint("free some space or write elsewhere"));
  return Fail(std::move(e));
}

base::Status SyncPath(const fs::path& path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return SystemError("opening", path, errno);
  int failed = ::fsync(fd) == 0 ? 0 : errno;
  ::close(fd);
  // Folders of some network file systems cannot be synced; they write through.
  if (failed != 0 && failed != EINVAL) return SystemError("syncing", path, failed);
  return {};
}

base::Result<AtomicFolder> AtomicFolder::Create(const fs::path& target) {
  std::error_code ec;
  AtomicFolder folder;
  folder.target_ = fs::absolute(target, ec).lexically_normal();
  if (!folder.target_.has_filename()) folder.target_ = folder.target_.parent_path();  // "out/"
  if (ec || !folder.target_.has_filename()) return Fail(ErrorCode::kInvalidArgument, "\"", target.string(), "\" is no name for a new folder");
  if (fs::exists(folder.target_, ec) && !(fs::is_directory(folder.target_, ec) && fs::is_empty(folder.target_, ec)))
    return Fail(base::Error(ErrorCode::kInvalidArgument, StrCat(folder.target_.string(), " exists already")).Hint("name a new folder, or remove this one first"));
  fs::path parent = folder.target_.parent_path();
  fs::create_directories(parent, ec);
  if (ec) return Fail(ErrorCode::kIo, "making ", parent.string(), ": ", ec.message());

  std::string prefix = StrCat(".", folder.target_.filename().string(), ".partial-");
  int parent_fd = OpenFolder(parent);
  if (parent_fd >= 0 && ::flock(parent_fd, LOCK_EX) == 0) RemoveAbandoned(parent, prefix);
  std::string name = (parent / (prefix + "XXXXXX")).string();
  bool made = ::mkdtemp(name.data()) != nullptr;
  int error = errno;
  if (made) {
    folder.temporary_ = name;
    folder.lock_ = OpenFolder(folder.temporary_);
    if (folder.lock_ >= 0) ::flock(folder.lock_, LOCK_EX | LOCK_NB);
  }
  if (parent_fd >= 0) ::close(parent_fd);
  if (!made) return SystemError("making a folder in", parent, error);
  return folder;
}

AtomicFolder::AtomicFolder(AtomicFolder&& other) noexcept { *this = std::move(other); }
AtomicFolder& AtomicFolder::operator=(AtomicFolder&& other) noexcept {
  std::swap(target_, other.target_);
  std::swap(temporary_, other.temporary_);
  std::swap(lock_, other.lock_);
  return *this;
}
AtomicFolder::~AtomicFolder() {
  std::error_code ec;
  if (!temporary_.empty()) fs::remove_all(temporary_, ec);
  if (lock_ >= 0) ::close(lock_);
}

base::Status AtomicFolder::Publish() {
  // mkdtemp makes private folders; the finished one is as public as any other the user makes.
  mode_t mask = ::umask(0);
  ::umask(mask);
  ::chmod(temporary_.c_str(), 0777 & ~mask);
  HB_RETURN_IF_ERROR(SyncPath(temporary_));
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) return SystemError("renaming the finished folder to", target_, errno);
  temporary_.clear();
  return SyncPath(target_.parent_path());
}

}  // namespace halfbyte::checkpoint::internal
