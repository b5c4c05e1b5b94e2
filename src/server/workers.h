// Threads for what must happen neither on the thread of the sockets nor on that of the model: JSON, templates, tokenization, text.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace halfbyte::server {

class Workers {
 public:
  explicit Workers(int threads);
  ~Workers() { Stop(); }
  // After Stop nothing is taken any more: false.
  bool Post(std::function<void()> job);
  // Runs what was posted, then joins.
  void Stop();

 private:
  void Run();
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> jobs_;
  int sleeping_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace halfbyte::server
