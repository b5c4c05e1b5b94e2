#include "tensor/buffer.h"

#include <cstring>

#include "base/check.h"
#include "platform/memory.h"

namespace halfbyte::tensor {

base::Result<Buffer> Buffer::Host(size_t bytes) {
  HB_ASSIGN_OR_RETURN(void* data, platform::AllocateHost(bytes));
  return Buffer(data, bytes, [](void* p, size_t n) { platform::FreeHost(p, n); });
}

void Buffer::CopyHost(const Buffer& other) {
  HB_CHECK(bytes_ == other.bytes_, bytes_, " bytes from ", other.bytes_);
  if (bytes_) std::memcpy(data_, other.data_, bytes_);
}

void Buffer::DropHost() {
  if (data_) platform::DropHostPages(data_, bytes_);
}

}  // namespace halfbyte::tensor
