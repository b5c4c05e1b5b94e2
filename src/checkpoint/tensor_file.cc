#include "checkpoint/tensor_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <unistd.h>

#include "base/check.h"
#include "checkpoint/safetensors_writer.h"

namespace halfbyte::checkpoint {

base::Status WriteTensorFile(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors) {
  // A rename replaces whatever bears the name: a device or a FIFO must not be lost to a result.
  std::error_code ignored;
  const std::filesystem::file_status there = std::filesystem::symlink_status(path, ignored);
  if (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there))
    return base::Fail(base::Error(base::ErrorCode::kInvalidArgument, base::StrCat(path.string(), " is there and is not a regular file")).Hint("name a file to be written"));
  std::vector<TensorDeclaration> declared;
  std::map<std::string_view, const NamedTensor*> by_name;
  for (const NamedTensor& t : tensors) {
    declared.push_back({t.name, t.dtype, t.shape});
    const bool fresh = by_name.emplace(t.name, &t).second;
    const base::Result<int64_t> bytes = tensor::TensorBytes(t.dtype, t.shape);
    HB_CHECK(fresh && bytes && static_cast<int64_t>(t.data.size()) == *bytes, t.name, ": ", t.data.size(), " bytes for ", t.shape.ToString());
  }
  std::vector<uint64_t> begin;
  const std::string header = SafetensorsHeaderBytes(declared, {}, begin);  // puts `declared` into the file's order
  const std::string temporary = path.string() + ".partial";
  std::FILE* file = std::fopen(temporary.c_str(), "wb");
  auto fail = [&](const char* what) {
    const int error = errno;
    if (file) std::fclose(file);
    std::remove(temporary.c_str());
    return base::Fail(base::ErrorCode::kIo, what, " ", temporary, ": ", std::strerror(error));
  };
  if (!file) return fail("cannot create");
  bool ok = std::fwrite(header.data(), 1, header.size(), file) == header.size();
  for (const TensorDeclaration& t : declared) {
    const std::vector<std::byte>& data = by_name.at(t.name)->data;
    ok = ok && std::fwrite(data.data(), 1, data.size(), file) == data.size();
  }
  if (!ok || std::fflush(file) != 0 || fsync(fileno(file)) != 0) return fail("cannot write");
  if (std::fclose(file) != 0) { file = nullptr; return fail("cannot close"); }
  file = nullptr;
  if (std::rename(temporary.c_str(), path.c_str()) != 0) return fail("cannot rename");
  return {};
}

}  // namespace halfbyte::checkpoint
