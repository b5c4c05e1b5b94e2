#include "server/http_exchange.h"

namespace halfbyte::server {

QueuedExchange::QueuedExchange(HttpRequest request, size_t max_waiting, std::function<void()> wake)
    : request_(std::move(request)), max_waiting_(max_waiting), wake_(std::move(wake)) {}

void QueuedExchange::Poke(std::unique_lock<std::mutex>& lock) {
  if (poked_) return;
  poked_ = true;
  lock.unlock();
  wake_();
}

void QueuedExchange::Send(HttpResponse response) {
  std::unique_lock lock(mutex_);
  if (begun_) return;
  begun_ = ended_ = true;
  head_ = std::move(response);
  Poke(lock);
}

void QueuedExchange::Begin(HttpResponse head) {
  std::unique_lock lock(mutex_);
  if (begun_) return;
  begun_ = streamed_ = true;
  head_ = std::move(head);
  Poke(lock);
}

void QueuedExchange::Write(std::string piece) {
  std::unique_lock lock(mutex_);
  if (!streamed_ || ended_ || gone_ || overflow_) return;
  std::function<void()> f;
  if (waiting_.size() + piece.size() > max_waiting_) {
    // Counts as gone from here on: the connection itself may hang in a write for a while.
    overflow_ = true;
    gone_ = true;
    waiting_.clear();
    f.swap(when_gone_);
  } else {
    waiting_ += piece;
  }
  Poke(lock);
  if (lock) lock.unlock();
  if (f) f();
}

void QueuedExchange::End() {
  std::unique_lock lock(mutex_);
  if (!streamed_ || ended_) return;
  ended_ = true;
  Poke(lock);
}

bool QueuedExchange::begun() const {
  std::lock_guard lock(mutex_);
  return begun_;
}

void QueuedExchange::WhenGone(std::function<void()> f) {
  {
    std::lock_guard lock(mutex_);
    if (complete_) return;
    if (!gone_) {
      when_gone_ = std::move(f);
      return;
    }
  }
  f();
}

QueuedExchange::Output QueuedExchange::Take() {
  std::lock_guard lock(mutex_);
  Output out;
  poked_ = false;
  if (begun_ && !head_taken_) {
    out.head = std::move(head_);
    head_taken_ = true;
  }
  out.streamed = streamed_;
  out.bytes.swap(waiting_);
  out.ended = ended_;
  out.overflow = overflow_;
  if (ended_) {
    complete_ = true;
    when_gone_ = nullptr;
  }
  return out;
}

void QueuedExchange::SetGone() {
  std::function<void()> f;
  {
    std::lock_guard lock(mutex_);
    gone_ = true;
    f.swap(when_gone_);
    waiting_.clear();
  }
  if (f) f();
}

}  // namespace halfbyte::server
