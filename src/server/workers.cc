#include "server/workers.h"

namespace halfbyte::server {

Workers::Workers(int threads) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
}

void Workers::Stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& t : threads_)
    if (t.joinable()) t.join();
}

bool Workers::Post(std::function<void()> job) {
  bool wake;
  {
    std::lock_guard lock(mutex_);
    if (stopping_) return false;
    jobs_.push_back(std::move(job));
    wake = sleeping_ > 0;
  }
  if (wake) wake_.notify_one();
  return true;
}

void Workers::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    while (jobs_.empty() && !stopping_) {
      ++sleeping_;
      wake_.wait(lock);
      --sleeping_;
    }
    if (jobs_.empty()) return;
    std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job();
    job = nullptr;
    lock.lock();
  }
}

}  // namespace halfbyte::server
