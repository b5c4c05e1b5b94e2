// The Exchange of a connection: what threads leave for the thread of the sockets.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>

#include "server/http.h"

namespace halfbyte::server {

class QueuedExchange final : public Exchange {
 public:
  // `wake` may be called from any thread and makes the connection look at Take() soon; it is called once for all that came since.
  QueuedExchange(HttpRequest request, size_t max_waiting, std::function<void()> wake);

  const HttpRequest& request() const override { return request_; }
  void Send(HttpResponse response) override;
  void Begin(HttpResponse head) override;
  void Write(std::string piece) override;
  void End() override;
  bool begun() const override;
  void WhenGone(std::function<void()> f) override;
  bool gone() const override { return gone_; }

  // For the connection. What is there to be sent now.
  struct Output {
    std::optional<HttpResponse> head;  // the first time
    bool streamed = false;             // as chunks; else `head` has the whole body
    std::string bytes;
    bool ended = false;
    bool overflow = false;             // more waits than a client may leave unread
  };
  Output Take();
  void SetGone();

 private:
  void Poke(std::unique_lock<std::mutex>& lock);

  const HttpRequest request_;
  const size_t max_waiting_;
  const std::function<void()> wake_;
  mutable std::mutex mutex_;
  bool begun_ = false, head_taken_ = false, streamed_ = false, ended_ = false, poked_ = false, overflow_ = false, complete_ = false;
  HttpResponse head_;
  std::string waiting_;
  std::function<void()> when_gone_;
  std::atomic<bool> gone_{false};
};

}  // namespace halfbyte::server
