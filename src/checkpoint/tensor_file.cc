#include "checkpoint/tensor_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <unistd.h>

#include "base/json.h"

namespace halfbyte::checkpoint {

base::Status WriteTensorFile(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors) {
  using base::Json;
  // A rename replaces whatever bears the name: a device or a FIFO must not be lost to a result.
  std::error_code ignored;
  const std::filesystem::file_status there = std::filesystem::symlink_status(path, ignored);
  if (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there))
    return base::Fail(base::Error(base::ErrorCode::kInvalidArgument, base::StrCat(path.string(), " is there and is not a regular file")).Hint("name a file to be written"));
  Json header = Json::MakeObject();
  uint64_t offset = 0;
  for (const NamedTensor& t : tensors) {
    Json shape = Json::MakeArray(), offsets = Json::MakeArray(), entry = Json::MakeObject();
    for (int64_t d : t.shape.dims()) shape.Push(d);
    offsets.Push(offset);
    offset += t.data.size();
    offsets.Push(offset);
    entry.Set("dtype", tensor::DTypeName(t.dtype));
    entry.Set("shape", std::move(shape));
    entry.Set("data_offsets", std::move(offsets));
    header.Set(t.name, std::move(entry));
  }
  std::string text = header.Dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::string temporary = path.string() + ".partial";
  std::FILE* file = std::fopen(temporary.c_str(), "wb");
  auto fail = [&](const char* what) {
    const int error = errno;
    if (file) std::fclose(file);
    std::remove(temporary.c_str());
    return base::Fail(base::ErrorCode::kIo, what, " ", temporary, ": ", std::strerror(error));
  };
  if (!file) return fail("cannot create");
  const uint64_t length = text.size();
  bool ok = std::fwrite(&length, 8, 1, file) == 1 && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  for (const NamedTensor& t : tensors) ok = ok && std::fwrite(t.data.data(), 1, t.data.size(), file) == t.data.size();
  if (!ok || std::fflush(file) != 0 || fsync(fileno(file)) != 0) return fail("cannot write");
  if (std::fclose(file) != 0) { file = nullptr; return fail("cannot close"); }
  file = nullptr;
  if (std::rename(temporary.c_str(), path.c_str()) != 0) return fail("cannot rename");
  return {};
}

}  // namespace halfbyte::checkpoint
