#include "tensor/buffer.h"

#include "platform/memory.h"

namespace halfbyte::tensor {

base::Result<Buffer> Buffer::Host(size_t bytes) {
  HB_ASSIGN_OR_RETURN(void* data, platform::AllocateHost(bytes));
  return Buffer(data, bytes, [](void* p, size_t n) { platform::FreeHost(p, n); });
}

}  // namespace halfbyte::tensor
