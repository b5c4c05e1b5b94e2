#include "platform/parallel.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <sched.h>
#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#include <thread>
#include <vector>

#include "platform/cgroup.h"

#if defined(__SANITIZE_THREAD__)
#define HALFBYTE_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HALFBYTE_THREAD_SANITIZER 1
#endif
#endif

namespace halfbyte::platform {
namespace {

struct Pool {
  std::unique_ptr<tbb::global_control> limit;
  std::unique_ptr<tbb::task_arena> arena;
  int threads = 0;
};
std::mutex g_mutex;
std::atomic<Pool*> g_pool{nullptr};

Pool& MakePool(int threads) {
  // One pool for each number of threads that was ever set, kept for the process's life: a ParallelFor of another thread may still be inside
  // the old one, and tests that go back and forth must not pile up arenas. Never destroyed, so that it outlives every static object.
  static auto& pools = *new std::map<int, Pool>;
  Pool& pool = pools[threads];
  // Of several global_controls oneTBB obeys the smallest, so the old limit has to go before the new one comes.
  if (Pool* old = g_pool) old->limit.reset();
  pool.limit = std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism, threads);
  if (!pool.arena) {
    pool.arena = std::make_unique<tbb::task_arena>(threads);
    pool.threads = threads;
  }
  g_pool = &pool;
  return pool;
}

Pool& GetPool() {
  if (Pool* p = g_pool) return *p;
  std::lock_guard lock(g_mutex);
  if (Pool* p = g_pool) return *p;
  return MakePool(AllowedThreads());
}

}  // namespace

int AllowedThreads() {
  cpu_set_t set;
  int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  if (const auto cpus = ReadCgroupLimits().cpus) n = std::min(n, static_cast<int>(std::min(std::ceil(*cpus), 1e6)));
  return std::max(n, 1);
}

void SetThreads(int threads) {
  std::lock_guard lock(g_mutex);
  MakePool(std::max(threads, 1));
}

int Threads() { return GetPool().threads; }

void internal::ParallelForImpl(int64_t n, int64_t grain, void (*body)(void*, int64_t, int64_t), void* context) {
  Pool& pool = GetPool();
  if (pool.threads == 1) { body(context, 0, n); return; }
#if HALFBYTE_THREAD_SANITIZER
  // The installed oneTBB is not instrumented, so ThreadSanitizer takes every hand-over inside it for a race and would drown ours. Plain
  // threads show it the same concurrency of the bodies.
  grain = std::max<int64_t>(grain, 1);
  std::atomic<int64_t> next = 0;
  auto work = [&] { for (int64_t b = next.fetch_add(grain); b < n; b = next.fetch_add(grain)) body(context, b, std::min(b + grain, n)); };
  std::vector<std::thread> helpers;
  for (int t = 1; t < pool.threads; ++t) helpers.emplace_back(work);
  work();
  for (std::thread& t : helpers) t.join();
  return;
#endif
  pool.arena->execute([&] {
    tbb::parallel_for(tbb::blocked_range<int64_t>(0, n, std::max<int64_t>(grain, 1)),
                      [&](const tbb::blocked_range<int64_t>& r) { body(context, r.begin(), r.end()); }, tbb::simple_partitioner());
  });
}

}  // namespace halfbyte::platform
