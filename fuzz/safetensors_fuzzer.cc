// A whole safetensors file: what is accepted must cover the data section exactly, tensor by tensor.
#include "base/check.h"
#include "checkpoint/safetensors_header.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace halfbyte;
  std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  auto length = checkpoint::ParseHeaderLength(bytes.first(std::min<size_t>(size, 8)), size);
  if (!length) {
    (void)length.error().ToError().ToString();
    return 0;
  }
  HB_CHECK(*length <= size - 8);
  uint64_t data_bytes = size - 8 - *length;
  auto header = checkpoint::ParseHeader(std::string_view(reinterpret_cast<const char*>(data) + 8, *length), data_bytes);
  if (!header) {
    (void)header.error().ToError().ToString();
    return 0;
  }
  uint64_t covered = 0;
  for (const checkpoint::HeaderTensor& t : header->tensors) {
    HB_CHECK(t.begin == covered && t.end >= t.begin);
    base::Result<int64_t> wanted = tensor::TensorBytes(t.dtype, t.shape);
    HB_CHECK(wanted && static_cast<uint64_t>(*wanted) == t.end - t.begin);
    covered = t.end;
  }
  HB_CHECK(covered == data_bytes);
  return 0;
}
