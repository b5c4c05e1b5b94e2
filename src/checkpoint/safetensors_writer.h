// Writes a sharded safetensors checkpoint that appears whole or not at all.
//
//   declare all tensors -> Create: shards and byte positions are settled, files are laid out in a temporary folder beside the target
//   Write (any order, any threads, any pieces) and AddFile                          bounded memory: data goes straight to its place
//   Finish: every byte was written? -> fsync files -> index, configs -> fsync folder -> rename to the target
//
// Whatever ends before the rename (an error, a kill, a full disk) leaves no target; the temporary folder is removed by the destructor, or by
// the next Create for the same target where the process was killed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace halfbyte::checkpoint {

struct TensorDeclaration {
  std::string name;
  tensor::DType dtype;
  tensor::Shape shape;
};

struct WriterOptions {
  // A shard holds at most this many bytes of data; one larger tensor has a shard of its own. Hugging Face's default.
  uint64_t max_shard_bytes = 5'000'000'000;
  // Every file's "__metadata__". Loaders of transformers refuse files without a format.
  std::map<std::string, std::string> metadata = {{"format", "pt"}};
  // For tests only: the system call behind every write (empty: pwrite), and a call before each step of Finish ("sync", "index", "rename", "done").
  std::function<ssize_t(int fd, const void* data, size_t bytes, off_t offset)> pwrite;
  std::function<void(std::string_view step)> before_step;
};

// One file's bytes before its data: u64 length and the JSON, padded with spaces to a multiple of 8. Tensors come out sorted as the safetensors library
// sorts them (wide types first, then by name), so that files equal what it would write; `begin` receives each tensor's byte of the file.
std::string SafetensorsHeaderBytes(std::vector<TensorDeclaration>& tensors, const std::map<std::string, std::string>& metadata, std::vector<uint64_t>& begin);

class SafetensorsWriter {
 public:
  // Tensors are put into shards in the order given. Refused: a target that exists and is no empty folder, a repeated or reserved name, a
  // shape that overflows. A disk that is too small is noticed here, where the file system can reserve space.
  static base::Result<SafetensorsWriter> Create(const std::filesystem::path& target, std::vector<TensorDeclaration> tensors, WriterOptions options = {});
  SafetensorsWriter(SafetensorsWriter&&) noexcept;
  SafetensorsWriter& operator=(SafetensorsWriter&&) noexcept;
  ~SafetensorsWriter();  // without Finish: nothing remains

  // Bytes of a tensor from `offset` on. Thread-safe. Each byte must be written once; what was not written is an error of Finish. A failure of
  // the system is remembered, so that Finish fails even where the caller missed it.
  base::Status Write(std::string_view name, std::span<const std::byte> data, uint64_t offset = 0);
  // A small file beside the tensors: config.json, tokenizer.json, ...
  base::Status AddFile(std::string_view name, std::string_view content);
  // The same, copied without holding it in memory.
  base::Status CopyFile(std::string_view name, const std::filesystem::path& from);

  // Makes the checkpoint visible under the target's name. The writer is done afterwards, whatever the answer.
  base::Status Finish();

  uint64_t total_bytes() const;  // data of all tensors
  int shards() const;
  const std::filesystem::path& folder() const;  // the temporary one

 private:
  struct State;
  explicit SafetensorsWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace halfbyte::checkpoint
