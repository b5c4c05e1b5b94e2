// The state of one render that every operation may need: the heap, the counted limits and the clock.
#pragma once

#include <cstdint>
#include <string>

#include "text/jinja.h"
#include "text/jinja_error.h"
#include "text/jinja_objects.h"

namespace halfbyte::text::jinja {

class Runtime {
 public:
  explicit Runtime(const JinjaRenderOptions& options)
      : heap_(options.limits.max_memory, options.limits.max_steps), limits_(options.limits), now_(options.now),
        stack_base_(StackAddress()) {}
  virtual ~Runtime() = default;

  Heap& heap() { return heap_; }
  const JinjaLimits& limits() const { return limits_; }
  const std::optional<JinjaTime>& now() const { return now_; }

  // One step is about one operation; work on text counts one per 32 bytes, so that no chain of cheap-looking filters over a
  // long text escapes the limit.
  void Step(int64_t count = 1) { heap_.Step(count); }
  void StepBytes(size_t bytes) { Step(1 + static_cast<int64_t>(bytes / 32)); }

  // A text that grows piece by piece: throws before it outgrows the memory limit.
  void CheckGrowth(const std::string& text) {
    Step();
    heap_.CheckRoom(text.size());
  }

  Value String(std::string s) {
    StepBytes(s.size());
    return Value::String(heap_, std::move(s));
  }
  Value List(std::vector<Value> items) { return MakeList(heap_, std::move(items)); }
  Value Tuple(std::vector<Value> items) { return MakeTuple(heap_, std::move(items)); }

  int line = 0;             // of what is being evaluated
  bool autoescape = false;  // inside {% autoescape true %}

 private:
  friend class DepthGuard;
  static uintptr_t StackAddress() { return reinterpret_cast<uintptr_t>(__builtin_frame_address(0)); }

  Heap heap_;
  const JinjaLimits& limits_;
  const std::optional<JinjaTime>& now_;
  int depth_ = 0;
  uintptr_t stack_base_;
};

// Held by every function that recurses on a template's structure or on a value's. Levels are counted, and the stack that was
// really used is measured, because a level's frame is several times larger in a sanitizer build.
class DepthGuard {
 public:
  explicit DepthGuard(Runtime& r) : r_(r) {
    constexpr uintptr_t kMaxStack = 1 << 20;  // threads have 8 MiB; the caller may have used some of it
    uintptr_t here = Runtime::StackAddress();
    uintptr_t used = r.stack_base_ > here ? r.stack_base_ - here : here - r.stack_base_;
    if (r.depth_ >= r.limits_.max_depth || used > kMaxStack) FailLimit("the template nests or recurses too deeply");
    ++r.depth_;
  }
  ~DepthGuard() { --r_.depth_; }
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;

 private:
  Runtime& r_;
};

}  // namespace halfbyte::text::jinja
