// Memory that an op needs while it runs: kept between ops, grown on demand, not zeroed.
#pragma once

#include "base/check.h"
#include "tensor/buffer.h"

namespace halfbyte::kernels::cpu {

class Scratch {
 public:
  // At least `bytes`, aligned to 64; what was there is lost when it grows.
  std::byte* Get(int64_t bytes) {
    if (static_cast<int64_t>(buffer_.bytes()) < bytes) {
      buffer_ = {};
      auto made = tensor::Buffer::Host(static_cast<size_t>(bytes + bytes / 2));
      HB_CHECK(made.has_value(), "no memory for ", bytes, " bytes of working space");
      buffer_ = std::move(*made);
    }
    return buffer_.as<std::byte>();
  }

 private:
  tensor::Buffer buffer_;
};

// The calling thread's own, for what a kernel needs inside a task. Valid until its next call on this thread.
inline std::byte* ThreadScratch(int64_t bytes) {
  thread_local Scratch scratch;
  return scratch.Get(bytes);
}

}  // namespace halfbyte::kernels::cpu
