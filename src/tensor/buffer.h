// Buffer: owned memory with a fixed address for its whole life (a reload writes in place), on the host or on a device.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <utility>

#include "base/result.h"

namespace halfbyte::tensor {

class Buffer {
 public:
  using Deleter = std::function<void(void*, size_t)>;

  Buffer() = default;
  Buffer(void* data, size_t bytes, Deleter deleter) : data_(data), bytes_(bytes), deleter_(std::move(deleter)) {}
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_); std::swap(bytes_, other.bytes_); std::swap(deleter_, other.deleter_);
    return *this;
  }
  ~Buffer() { if (data_) deleter_(data_, bytes_); }

  // Zeroed host memory, aligned to 64 bytes, on huge pages where it is large and the system offers them.
  static base::Result<Buffer> Host(size_t bytes);

  // Host memory only: the bytes of a buffer of the same size (HB_CHECK), and back to the system with the pages (platform::DropHostPages).
  void CopyHost(const Buffer& other);
  void DropHost();

  size_t bytes() const { return bytes_; }
  void* data() { return data_; }
  const void* data() const { return data_; }
  template <typename T> T* as() { return static_cast<T*>(data_); }
  template <typename T> const T* as() const { return static_cast<const T*>(data_); }
  template <typename T> std::span<T> span() { return {as<T>(), bytes_ / sizeof(T)}; }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
  Deleter deleter_;
};

}  // namespace halfbyte::tensor
