#include "checkpoint/checkpoint.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <iterator>
#include <optional>
#include <set>
#include <tuple>

#include "base/check.h"
#include "checkpoint/safetensors_header.h"
#include "checkpoint/shard_index.h"
#include "platform/parallel.h"

namespace halfbyte::checkpoint {

using base::ErrorCode;
using base::Fail;
using base::StrCat;

namespace {

constexpr uint64_t kMaxIndexBytes = uint64_t{512} << 20;

// "a, b, c and 7 more"
std::string Some(const std::vector<std::string>& names) {
  constexpr size_t kShown = 5;
  std::string out;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) out += (i ? ", " : "") + names[i];
  return names.size() > kShown ? StrCat(out, " and ", names.size() - kShown, " more") : out;
}

// Names like model-00002-of-00005.safetensors say how many there must be: what is missing of them, where no index says it.
std::vector<std::string> MissingParts(const std::vector<std::string>& names) {
  std::set<std::string> present(names.begin(), names.end()), missing;
  for (const std::string& name : names) {
    // ...-NNNNN-of-NNNNN.safetensors, counted from the end
    constexpr std::string_view kTail = "00000-of-00000.safetensors";
    if (name.size() < kTail.size()) continue;
    std::string stem = name.substr(0, name.size() - kTail.size()), tail = name.substr(stem.size());
    bool fits = true;
    for (size_t i = 0; i < kTail.size(); ++i) fits = fits && (kTail[i] == '0' ? std::isdigit(static_cast<unsigned char>(tail[i])) != 0 : tail[i] == kTail[i]);
    if (!fits) continue;
    int count = std::stoi(tail.substr(9, 5));
    for (int i = 1; i <= count; ++i) {
      std::string number = std::to_string(i);
      std::string part = StrCat(stem, std::string(5 - number.size(), '0'), number, tail.substr(5));
      if (!present.count(part)) missing.insert(part);
    }
  }
  return {missing.begin(), missing.end()};
}

}  // namespace

struct Checkpoint::Shard {
  std::string name;
  platform::ReadOnlyFile file;
  SafetensorsHeader header;
  uint64_t data_begin;  // byte of the file where the data section starts
};

base::Result<Checkpoint::Shard> Checkpoint::OpenShard(const std::string& name, const CheckpointOptions& options) const {
  HB_ASSIGN_OR_RETURN(platform::ReadOnlyFile file, folder_.OpenFile(name, options.file));
  auto refuse = [&](const HeaderError& e) { return Fail(e.ToError().At((folder_.path() / name).string())); };
  std::byte first[8];
  if (file.size() >= 8) HB_RETURN_IF_ERROR(file.ReadAt(0, first));
  tl::expected<uint64_t, HeaderError> length = ParseHeaderLength(std::span(first, file.size() >= 8 ? 8 : 0), file.size());
  if (!length) return refuse(length.error());
  std::string json(*length, '\0');
  HB_RETURN_IF_ERROR(file.ReadAt(8, std::as_writable_bytes(std::span(json))));
  uint64_t data_begin = 8 + *length;
  tl::expected<SafetensorsHeader, HeaderError> header = ParseHeader(json, file.size() - data_begin);
  if (!header) return refuse(header.error());
  return Shard{name, std::move(file), std::move(*header), data_begin};
}

// In parallel: opening 163 files one after the other takes long on network storage. The first failing name's error is returned.
base::Result<std::vector<Checkpoint::Shard>> Checkpoint::OpenShards(const std::vector<std::string>& names, const CheckpointOptions& options) const {
  std::vector<std::optional<base::Result<Shard>>> results(names.size());
  platform::ParallelFor(static_cast<int64_t>(names.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) results[static_cast<size_t>(i)] = OpenShard(names[static_cast<size_t>(i)], options);
  });
  std::vector<Shard> shards;
  for (auto& result : results) {
    HB_ASSIGN_OR_RETURN(Shard shard, std::move(*result));
    shards.push_back(std::move(shard));
  }
  return shards;
}

base::Result<Checkpoint> Checkpoint::Open(const std::filesystem::path& folder, CheckpointOptions options) {
  Checkpoint checkpoint;
  HB_ASSIGN_OR_RETURN(checkpoint.folder_, ModelFolder::Open(folder));
  HB_ASSIGN_OR_RETURN(checkpoint.configs_, ReadModelConfigs(checkpoint.folder_, options.file));
  HB_RETURN_IF_ERROR(checkpoint.folder_.Has(kIndexFileName) ? checkpoint.OpenIndexed(options) : checkpoint.OpenUnindexed(options));
  checkpoint.Finish();
  return checkpoint;
}

base::Status Checkpoint::OpenIndexed(const CheckpointOptions& options) {
  HB_ASSIGN_OR_RETURN(std::string text, folder_.ReadText(kIndexFileName, kMaxIndexBytes, options.file));
  HB_ASSIGN_OR_RETURN_AT(ShardIndex index, ParseShardIndex(text), (folder_.path() / kIndexFileName).string());

  std::vector<std::string> missing;
  for (const std::string& name : index.files) if (!folder_.Has(name)) missing.push_back(name);
  if (!missing.empty())
    return Fail(base::Error(ErrorCode::kNotFound, StrCat(folder_.path().string(), " lacks ", missing.size(), " of the ", index.files.size(), " files that its index names: ", Some(missing)))
                    .Hint("the download may be incomplete"));

  HB_ASSIGN_OR_RETURN(std::vector<Shard> shards, OpenShards(index.files, options));
  std::vector<std::string> strays;
  size_t found = 0;
  for (size_t f = 0; f < shards.size(); ++f) {
    for (size_t t = 0; t < shards[f].header.tensors.size(); ++t) {
      auto at = index.file_of.find(shards[f].header.tensors[t].name);
      if (at == index.file_of.end()) { strays.push_back(shards[f].header.tensors[t].name); continue; }
      if (at->second != static_cast<int>(f)) continue;  // another file's copy counts
      Add(static_cast<int>(f), shards[f], t);
      ++found;
    }
  }
  if (found != index.file_of.size()) {
    for (const TensorEntry& e : tensors_) index.file_of.erase(e.name);
    std::vector<std::string> absent;
    for (const auto& [name, file] : index.file_of) absent.push_back(StrCat(name, " (", index.files[static_cast<size_t>(file)], ")"));
    std::sort(absent.begin(), absent.end());
    return Fail(ErrorCode::kBadFile, (folder_.path() / kIndexFileName).string(), " names ", absent.size(), " tensors that their files do not have: ", Some(absent));
  }
  if (!strays.empty()) warnings_.push_back(StrCat(strays.size(), " tensors stand in the files but not in the index and are left out: ", Some(strays)));
  for (Shard& shard : shards) { file_names_.push_back(std::move(shard.name)); files_.push_back(std::move(shard.file)); }
  return {};
}

base::Status Checkpoint::OpenUnindexed(const CheckpointOptions& options) {
  HB_ASSIGN_OR_RETURN(std::vector<std::string> names, folder_.List(".safetensors"));
  if (names.empty())
    return Fail(base::Error(ErrorCode::kNotFound, StrCat(folder_.path().string(), " has no *.safetensors file")).Hint("only safetensors checkpoints are read; the download may be incomplete"));
  auto counts = [](const std::string& name) { return name.starts_with("model") || name.starts_with("mtp"); };
  bool any_model = std::any_of(names.begin(), names.end(), [](const std::string& name) { return name.starts_with("model"); });
  std::vector<std::string> aside;
  if (any_model) {
    std::copy_if(names.begin(), names.end(), std::back_inserter(aside), std::not_fn(counts));
    std::erase_if(names, std::not_fn(counts));
  }
  if (std::vector<std::string> missing = MissingParts(names); !missing.empty())
    return Fail(base::Error(ErrorCode::kNotFound, StrCat(folder_.path().string(), " lacks ", missing.size(), " parts of the model: ", Some(missing))).Hint("the download may be incomplete"));

  HB_ASSIGN_OR_RETURN(std::vector<Shard> shards, OpenShards(names, options));
  std::unordered_map<std::string_view, const Shard*> owner;
  auto twice = [&](const std::string& tensor, const std::string& file) {
    return Fail(base::Error(ErrorCode::kBadFile, StrCat(folder_.path().string(), ": ", tensor, " stands in both ", owner[tensor]->name, " and ", file, ", and no index says which counts"))
                    .Hint("remove the file that does not belong to the model"));
  };
  for (size_t f = 0; f < shards.size(); ++f) {
    for (size_t t = 0; t < shards[f].header.tensors.size(); ++t) {
      const std::string& name = shards[f].header.tensors[t].name;
      if (!owner.emplace(name, &shards[f]).second) return twice(name, shards[f].name);
      Add(static_cast<int>(f), shards[f], t);
    }
  }
  for (const std::string& name : aside) {
    base::Result<Shard> shard = OpenShard(name, options);  // one that cannot be read is not this model's and does no harm
    if (shard) for (const HeaderTensor& t : shard->header.tensors) if (owner.count(t.name)) return twice(t.name, name);
  }
  if (!aside.empty()) warnings_.push_back(StrCat(aside.size(), " files are no part of the model and are left out: ", Some(aside)));
  for (Shard& shard : shards) { file_names_.push_back(std::move(shard.name)); files_.push_back(std::move(shard.file)); }
  return {};
}

void Checkpoint::Add(int file, const Shard& shard, size_t tensor) {
  const HeaderTensor& t = shard.header.tensors[tensor];
  tensors_.push_back({t.name, t.dtype, t.shape, file, shard.data_begin + t.begin, t.end - t.begin});
}

void Checkpoint::Finish() {
  std::sort(tensors_.begin(), tensors_.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::tie(a.file, a.begin, a.size, a.name) < std::tie(b.file, b.begin, b.size, b.name);
  });
  by_name_.reserve(tensors_.size());
  for (size_t i = 0; i < tensors_.size(); ++i) by_name_.emplace(tensors_[i].name, i);
}

const TensorEntry* Checkpoint::Find(std::string_view name) const {
  auto at = by_name_.find(name);
  return at == by_name_.end() ? nullptr : &tensors_[at->second];
}

uint64_t Checkpoint::total_bytes() const {
  uint64_t bytes = 0;
  for (const TensorEntry& e : tensors_) bytes += e.size;
  return bytes;
}

base::Status Checkpoint::Read(const TensorEntry& entry, std::span<std::byte> out) const {
  HB_CHECK(out.size() == entry.size, entry.name, " has ", entry.size, " bytes, the buffer ", out.size());
  return ReadRange(entry, 0, out);
}

base::Status Checkpoint::ReadRange(const TensorEntry& entry, uint64_t offset, std::span<std::byte> out) const {
  HB_CHECK(offset <= entry.size && out.size() <= entry.size - offset, entry.name, ": ", out.size(), " bytes at ", offset, " of ", entry.size);
  size_t file = static_cast<size_t>(entry.file);
  base::Status status = files_[file].ReadAt(entry.begin + offset, out);
  if (!status) return Fail(std::move(status.error()).At(StrCat("tensor ", entry.name)).At(file_names_[file]));
  return {};
}

}  // namespace halfbyte::checkpoint
