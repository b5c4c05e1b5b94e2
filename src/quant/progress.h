// Progress of a load or a conversion, told at most some ten times a second whoever has news.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>

#include "quant/unit_worker.h"

namespace halfbyte::quant {

struct LoadProgress {
  int64_t bytes_read = 0, bytes_total = 0;
  int64_t experts_done = 0, experts_total = 0;  // (layer, expert) pairs converted
  double seconds = 0;
};
using ProgressFunction = std::function<void(const LoadProgress&)>;  // called from workers, never twice at a time

class ProgressReporter {
 public:
  ProgressReporter(const ProgressFunction& report, const WorkCounters& counters, int64_t bytes_total, int64_t experts_total)
      : report_(report), counters_(counters), bytes_total_(bytes_total), experts_total_(experts_total) {}

  void Maybe() {
    if (!report_) return;
    int64_t now = static_cast<int64_t>(seconds() * 1000), due = next_;
    if (now >= due && next_.compare_exchange_strong(due, now + 100)) Report();
  }
  void Last() { if (report_) Report(); }
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  void Report() {
    std::lock_guard lock(mutex_);
    report_({counters_.bytes_read, bytes_total_, counters_.experts_done, experts_total_, seconds()});
  }

  const ProgressFunction& report_;
  const WorkCounters& counters_;
  const int64_t bytes_total_, experts_total_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::atomic<int64_t> next_{0};  // ms
  std::mutex mutex_;
};

}  // namespace halfbyte::quant
