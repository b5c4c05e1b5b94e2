#include "checkpoint/safetensors_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "base/check.h"
#include "base/json.h"
#include "checkpoint/atomic_folder.h"
#include "checkpoint/model_folder.h"
#include "checkpoint/safetensors_header.h"
#include "checkpoint/shard_index.h"
#include "platform/file_reader.h"

namespace halfbyte::checkpoint {
namespace {

namespace fs = std::filesystem;
using base::ErrorCode;
using base::Fail;
using base::Json;
using base::StrCat;
using internal::SystemError;
using tensor::DType;

// The order of the safetensors library: by alignment, widest first; its list from the front.
constexpr std::array kTypeOrder = {DType::kU64, DType::kI64, DType::kF64, DType::kF32, DType::kU32, DType::kI32, DType::kBF16, DType::kF16, DType::kU16,
                                   DType::kI16, DType::kF8E8M0, DType::kF8E4M3, DType::kF8E5M2, DType::kI8, DType::kU8, DType::kF4, DType::kBool};

size_t TypeRank(DType dtype) { return static_cast<size_t>(std::find(kTypeOrder.begin(), kTypeOrder.end(), dtype) - kTypeOrder.begin()); }

uint64_t Bytes(const TensorDeclaration& t) { return static_cast<uint64_t>(*tensor::TensorBytes(t.dtype, t.shape)); }  // of a checked declaration

// Greedy, in the order given: a shard is closed when the next tensor would overfill it.
std::vector<std::vector<TensorDeclaration>> Distribute(std::vector<TensorDeclaration> tensors, uint64_t most) {
  std::vector<std::vector<TensorDeclaration>> shards(1);
  uint64_t filled = 0;
  for (TensorDeclaration& t : tensors) {
    uint64_t bytes = Bytes(t);
    if (!shards.back().empty() && (bytes > most || filled > most - bytes)) { shards.emplace_back(); filled = 0; }
    filled += bytes;
    shards.back().push_back(std::move(t));
  }
  return shards;
}

std::string ShardName(size_t i, size_t count) {
  if (count == 1) return "model.safetensors";
  char name[64];
  std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", i + 1, count);
  return name;
}

base::Status CheckDeclarations(const std::vector<TensorDeclaration>& tensors) {
  std::unordered_map<std::string_view, int> seen;
  for (const TensorDeclaration& t : tensors) {
    if (t.name.empty() || t.name == "__metadata__") return Fail(ErrorCode::kInvalidArgument, "\"", t.name, "\" is no name for a tensor");
    if (!seen.emplace(t.name, 0).second) return Fail(ErrorCode::kInvalidArgument, "the tensor ", t.name, " would be written twice");
    base::Result<int64_t> bytes = tensor::TensorBytes(t.dtype, t.shape);
    if (!bytes) return Fail(std::move(bytes.error()).At(t.name));
  }
  return {};
}

}  // namespace

std::string SafetensorsHeaderBytes(std::vector<TensorDeclaration>& tensors, const std::map<std::string, std::string>& metadata, std::vector<uint64_t>& begin) {
  std::sort(tensors.begin(), tensors.end(), [](const TensorDeclaration& a, const TensorDeclaration& b) {
    return TypeRank(a.dtype) != TypeRank(b.dtype) ? TypeRank(a.dtype) < TypeRank(b.dtype) : a.name < b.name;
  });
  Json::Object header;
  if (!metadata.empty()) {
    Json::Object texts;
    for (const auto& [key, value] : metadata) texts.emplace_back(key, Json(value));
    header.emplace_back("__metadata__", Json(std::move(texts)));
  }
  uint64_t offset = 0;
  begin.clear();
  for (const TensorDeclaration& t : tensors) {
    Json shape = Json::MakeArray();
    for (int64_t d : t.shape.dims()) shape.Push(d);
    Json offsets = Json::MakeArray();
    begin.push_back(offset);
    offsets.Push(offset);
    offset += Bytes(t);
    offsets.Push(offset);
    header.emplace_back(t.name, Json(Json::Object{{"dtype", Json(tensor::DTypeName(t.dtype))}, {"shape", std::move(shape)}, {"data_offsets", std::move(offsets)}}));
  }
  std::string json = Json(std::move(header)).Dump();
  json.resize((json.size() + 7) / 8 * 8, ' ');
  std::string out(8, '\0');
  for (size_t i = 0; i < 8; ++i) out[i] = static_cast<char>(json.size() >> (8 * i));
  out += json;
  for (uint64_t& b : begin) b += out.size();
  return out;
}

struct SafetensorsWriter::State {
  struct Shard {
    std::string name;
    int fd = -1;
  };
  struct Place {
    size_t shard;
    uint64_t begin, size;  // bytes of the shard's file
    std::atomic<uint64_t> written = 0;
  };

  State(internal::AtomicFolder f, WriterOptions o) : folder(std::move(f)), options(std::move(o)) {}
  ~State() { for (Shard& s : shards) if (s.fd >= 0) ::close(s.fd); }

  base::Status Layout(std::vector<std::vector<TensorDeclaration>> contents);
  base::Status WriteAt(const Shard& shard, const void* data, size_t bytes, uint64_t offset);
  base::Status WriteSmallFile(std::string_view name, std::string_view content);
  base::Status SyncShards();
  base::Status Remember(base::Status status) {
    if (status) return status;
    std::lock_guard lock(mutex);
    if (!failure) failure = status.error();
    return status;
  }
  void Step(std::string_view step) const { if (options.before_step) options.before_step(step); }

  internal::AtomicFolder folder;
  WriterOptions options;
  std::vector<Shard> shards;
  std::unordered_map<std::string, Place> places;
  uint64_t total_bytes = 0;
  std::mutex mutex;  // of failure
  std::optional<base::Error> failure;
};

base::Status SafetensorsWriter::State::Layout(std::vector<std::vector<TensorDeclaration>> contents) {
  for (size_t s = 0; s < contents.size(); ++s) {
    std::vector<uint64_t> begin;
    std::string header = SafetensorsHeaderBytes(contents[s], options.metadata, begin);
    if (header.size() - 8 > kMaxHeaderBytes) return Fail(ErrorCode::kInvalidArgument, "a shard with ", contents[s].size(), " tensors has a header above the format's limit; use smaller shards");
    uint64_t size = header.size();
    for (size_t t = 0; t < contents[s].size(); ++t) {
      uint64_t bytes = Bytes(contents[s][t]);
      Place& place = places[contents[s][t].name];
      place.shard = s;
      place.begin = begin[t];
      place.size = bytes;
      size += bytes;
      total_bytes += bytes;
    }
    Shard& shard = shards.emplace_back(Shard{ShardName(s, contents.size())});
    fs::path path = folder.path() / shard.name;
    shard.fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (shard.fd < 0) return SystemError("making", path, errno);
    // Reserve the space now, where the file system can: better than a full disk after an hour.
    if (::fallocate(shard.fd, 0, 0, static_cast<off_t>(size)) != 0) {
      if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG) return SystemError(StrCat("reserving ", size, " bytes for"), path, errno);
      if (::ftruncate(shard.fd, static_cast<off_t>(size)) != 0) return SystemError("sizing", path, errno);
    }
    HB_RETURN_IF_ERROR(WriteAt(shard, header.data(), header.size(), 0));
  }
  return {};
}

base::Status SafetensorsWriter::State::WriteAt(const Shard& shard, const void* data, size_t bytes, uint64_t offset) {
  const char* from = static_cast<const char*>(data);
  for (size_t done = 0; done < bytes;) {
    off_t at = static_cast<off_t>(offset + done);
    ssize_t n = options.pwrite ? options.pwrite(shard.fd, from + done, bytes - done, at) : ::pwrite(shard.fd, from + done, bytes - done, at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return SystemError("writing", folder.path() / shard.name, n < 0 ? errno : EIO);
    done += static_cast<size_t>(n);
  }
  return {};
}

base::Status SafetensorsWriter::State::WriteSmallFile(std::string_view name, std::string_view content) {
  fs::path path = folder.path() / name;
  Shard file{std::string(name), ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)};
  if (file.fd < 0) return SystemError("making", path, errno);
  base::Status status = WriteAt(file, content.data(), content.size(), 0);
  if (status && ::fsync(file.fd) != 0) status = SystemError("syncing", path, errno);
  ::close(file.fd);
  return status;
}

base::Status SafetensorsWriter::State::SyncShards() {
  for (Shard& shard : shards) {
    fs::path path = folder.path() / shard.name;
    if (::fsync(shard.fd) != 0) return SystemError("syncing", path, errno);
    int fd = std::exchange(shard.fd, -1);
    if (::close(fd) != 0) return SystemError("closing", path, errno);
  }
  return {};
}

SafetensorsWriter::SafetensorsWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
SafetensorsWriter::SafetensorsWriter(SafetensorsWriter&&) noexcept = default;
SafetensorsWriter& SafetensorsWriter::operator=(SafetensorsWriter&&) noexcept = default;
SafetensorsWriter::~SafetensorsWriter() = default;

base::Result<SafetensorsWriter> SafetensorsWriter::Create(const fs::path& target, std::vector<TensorDeclaration> tensors, WriterOptions options) {
  HB_RETURN_IF_ERROR(CheckDeclarations(tensors));
  if (options.max_shard_bytes == 0) return Fail(ErrorCode::kInvalidArgument, "the largest shard must have more than 0 bytes");
  HB_ASSIGN_OR_RETURN(internal::AtomicFolder folder, internal::AtomicFolder::Create(target));
  auto contents = Distribute(std::move(tensors), options.max_shard_bytes);
  auto state = std::make_unique<State>(std::move(folder), std::move(options));
  HB_RETURN_IF_ERROR(state->Layout(std::move(contents)));
  return SafetensorsWriter(std::move(state));
}

base::Status SafetensorsWriter::Write(std::string_view name, std::span<const std::byte> data, uint64_t offset) {
  auto at = state_->places.find(std::string(name));
  HB_CHECK(at != state_->places.end(), "the tensor ", name, " was not declared");
  State::Place& place = at->second;
  HB_CHECK(offset <= place.size && data.size() <= place.size - offset, name, ": ", data.size(), " bytes at ", offset, " of ", place.size);
  HB_RETURN_IF_ERROR(state_->Remember(state_->WriteAt(state_->shards[place.shard], data.data(), data.size(), place.begin + offset)));
  place.written += data.size();
  return {};
}

base::Status SafetensorsWriter::AddFile(std::string_view name, std::string_view content) {
  HB_RETURN_IF_ERROR(CheckPlainFileName(name));
  HB_RETURN_IF_ERROR(state_->Remember(state_->WriteSmallFile(name, content)));
  return {};
}

base::Status SafetensorsWriter::CopyFile(std::string_view name, const fs::path& from) {
  HB_RETURN_IF_ERROR(CheckPlainFileName(name));
  HB_ASSIGN_OR_RETURN(platform::ReadOnlyFile source, platform::ReadOnlyFile::Open(from));
  fs::path path = state_->folder.path() / name;
  State::Shard file{std::string(name), ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)};
  if (file.fd < 0) return state_->Remember(SystemError("making", path, errno));
  std::vector<std::byte> piece(std::min<uint64_t>(source.size(), 1 << 20));
  base::Status status;
  for (uint64_t at = 0; status && at < source.size(); at += piece.size()) {
    piece.resize(std::min<uint64_t>(piece.size(), source.size() - at));
    status = source.ReadAt(at, piece);
    if (status) status = state_->WriteAt(file, piece.data(), piece.size(), at);
  }
  if (status && ::fsync(file.fd) != 0) status = SystemError("syncing", path, errno);
  ::close(file.fd);
  return state_->Remember(std::move(status));
}

base::Status SafetensorsWriter::Finish() {
  std::unique_ptr<State> state = std::move(state_);  // whatever happens, nothing temporary outlives this call
  HB_CHECK(state != nullptr, "the writer is finished already");
  if (state->failure) return Fail(*state->failure);
  for (const auto& [name, place] : state->places)
    if (place.written != place.size) return Fail(ErrorCode::kInternal, "the tensor ", name, " has ", place.size, " bytes, ", place.written.load(), " were written");
  state->Step("sync");
  HB_RETURN_IF_ERROR(state->SyncShards());
  state->Step("index");
  if (state->shards.size() > 1) {
    std::vector<std::pair<std::string, std::string>> file_of;
    for (const auto& [name, place] : state->places) file_of.emplace_back(name, state->shards[place.shard].name);
    HB_RETURN_IF_ERROR(state->WriteSmallFile(kIndexFileName, WriteShardIndex(file_of, state->total_bytes)));
  }
  state->Step("rename");
  HB_RETURN_IF_ERROR(state->folder.Publish());
  state->Step("done");
  return {};
}

uint64_t SafetensorsWriter::total_bytes() const { return state_->total_bytes; }
int SafetensorsWriter::shards() const { return static_cast<int>(state_->shards.size()); }
const fs::path& SafetensorsWriter::folder() const { return state_->folder.path(); }

}  // namespace halfbyte::checkpoint
