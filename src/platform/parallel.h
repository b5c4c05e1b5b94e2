// One pool of worker threads for everything that computes (oneTBB underneath).
//
// Not OpenMP: its spinning workers collapse where a core is shared (85 -> 1-5 GFLOP/s measured on a 2-core guest), while a
// oneTBB fork-join costs 0.3-1.9 us there. Results never depend on the number of threads: callers split work by shape only.
#pragma once

#include <cstdint>
#include <functional>
#include <type_traits>

namespace halfbyte::platform {

// Threads this process may use: the smaller of its affinity mask and its cgroup's CPU quota (rounded up), at least 1.
int AllowedThreads();

// Sets the number of threads of the pool (>= 1). Call before the first ParallelFor, or between two.
void SetThreads(int threads);
int Threads();

namespace internal {
void ParallelForImpl(int64_t n, int64_t grain, void (*body)(void*, int64_t, int64_t), void* context);
}

// body(begin, end) over disjoint ranges that cover [0, n), each of at least `grain` items but the last; returns when all are done.
// Nested calls are fine. The body must not throw.
template <typename Body>
void ParallelFor(int64_t n, int64_t grain, Body&& body) {
  if (n <= 0) return;
  if (n <= grain) { body(int64_t{0}, n); return; }
  internal::ParallelForImpl(n, grain, [](void* b, int64_t begin, int64_t end) { (*static_cast<std::remove_reference_t<Body>*>(b))(begin, end); },
                            const_cast<void*>(static_cast<const void*>(&body)));
}

}  // namespace halfbyte::platform
