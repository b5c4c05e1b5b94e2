#include "quant/ordered_work.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace halfbyte::quant {

base::Status RunInOrder(size_t tasks, int threads, const std::function<NumberedTask()>& make, const std::function<void()>& after) {
  std::atomic<size_t> next{0}, failed_at{SIZE_MAX};
  std::mutex mutex;  // of error
  std::optional<base::Error> error;
  auto work = [&] {
    const NumberedTask run = make();
    for (;;) {
      const size_t i = next++;
      if (i >= tasks || failed_at != SIZE_MAX) return;
      if (base::Status status = run(i); !status) {
        std::lock_guard lock(mutex);
        if (i < failed_at) { failed_at = i; error = std::move(status).error(); }
        return;
      }
      if (after) after();
    }
  };
  {
    std::vector<std::jthread> others;
    for (int i = 1; i < std::max(1, threads); ++i) others.emplace_back(work);
    work();
  }
  if (error) return base::Fail(std::move(*error));
  return {};
}

}  // namespace halfbyte::quant
