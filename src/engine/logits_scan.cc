// GCC vectorizes these loops, the whole cost of sampling, at -O3 only, and those with a choice in them only where it need not keep
// floating-point exceptions (values stay what they are).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-trapping-math")
#endif
#include "engine/logits_scan.h"

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>

#include "base/check.h"

namespace halfbyte::engine {
namespace {

constexpr size_t kBlock = 1024;

// Max of a block; `wild` is set where an element is NaN or +inf. Sixteen running maxima, because a compiler may not reorder a single
// one (it has to respect NaN) and would go through the row an element at a time.
float BlockMax(const float* x, size_t n, bool& wild) {
  constexpr size_t kLanes = 16;
  float lane[kLanes];
  int32_t bad[kLanes] = {};
  for (float& m : lane) m = -INFINITY;
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (size_t j = 0; j < kLanes; ++j) {
      lane[j] = x[i + j] > lane[j] ? x[i + j] : lane[j];
      bad[j] |= x[i + j] <= FLT_MAX ? 0 : 1;
    }
  }
  for (; i < n; ++i) {
    lane[0] = x[i] > lane[0] ? x[i] : lane[0];
    bad[0] |= x[i] <= FLT_MAX ? 0 : 1;
  }
  float m = -INFINITY;
  for (size_t j = 0; j < kLanes; ++j) {
    m = lane[j] > m ? lane[j] : m;
    wild |= bad[j] != 0;
  }
  return m;
}

// exp(x) for x <= 0. x = n ln2 + r, |r| <= ln2/2, with ln2 in two parts; exp(r) by its Taylor polynomial of degree 6 (remainder 1.2e-7).
inline float ExpOfNegative(float x) {
  const float clamped = x < -87.0f ? -87.0f : x;
  const float shifted = clamped * 1.44269504f + 12582912.0f;  // 1.5 * 2^23: rounds to the nearest integer in the low bits
  const float n = shifted - 12582912.0f;
  const float r = (clamped - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.0f / 720.0f;
  p = p * r + 1.0f / 120.0f;
  p = p * r + 1.0f / 24.0f;
  p = p * r + 1.0f / 6.0f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const uint32_t scale = (std::bit_cast<uint32_t>(shifted) - 0x4B400000u + 127u) << 23;
  const float result = p * std::bit_cast<float>(scale);
  return x < -87.0f ? 0.0f : result;
}

}  // namespace

base::Result<Peak> FindPeak(std::span<const float> logits) {
  bool wild = false;
  float best = -INFINITY;
  size_t best_block = 0;
  for (size_t begin = 0; begin < logits.size(); begin += kBlock) {
    const float m = BlockMax(logits.data() + begin, std::min(kBlock, logits.size() - begin), wild);
    if (m > best) { best = m; best_block = begin; }
  }
  if (wild || best == -INFINITY) {
    return base::Fail(base::Error(base::ErrorCode::kInternal, wild ? "the model gave a logit that is not a finite number"
                                                                   : "the model gave no token a chance: every logit is -inf")
                          .Hint("the weights or the arithmetic are at fault, not the request; compare with --device reference"));
  }
  size_t id = best_block;
  while (logits[id] != best) ++id;
  return Peak{best, static_cast<int32_t>(id)};
}

void ExpWeights(std::span<const float> logits, float max, float inverse_temperature, float* out) {
  const float* x = logits.data();
  for (size_t i = 0, n = logits.size(); i < n; ++i) out[i] = ExpOfNegative((x[i] - max) * inverse_temperature);
}

void Buckets(std::span<const float> logits, float max, float scale, uint8_t* out) {
  const float* x = logits.data();
  for (size_t i = 0, n = logits.size(); i < n; ++i) {
    const float distance = (max - x[i]) * scale;  // +inf for a logit of -inf
    out[i] = static_cast<uint8_t>(static_cast<int32_t>(distance < 255.0f ? distance : 255.0f));
  }
}

double LogSumExp(std::span<const float> logits, float max) {
  float weights[kBlock];
  double sums[4] = {};  // four chains of additions, which would otherwise wait for each other
  for (size_t begin = 0; begin < logits.size(); begin += kBlock) {
    const size_t n = std::min(kBlock, logits.size() - begin);
    ExpWeights(logits.subspan(begin, n), max, 1.0f, weights);
    std::fill(weights + n, weights + (n + 3) / 4 * 4, 0.0f);
    for (size_t i = 0; i < n; i += 4)
      for (size_t j = 0; j < 4; ++j) sums[j] += weights[i + j];
  }
  return static_cast<double>(max) + std::log((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

base::Result<PositionLogprobs> ComputeLogprobs(std::span<const float> logits, int32_t token, int32_t n) {
  HB_CHECK(token >= 0 && static_cast<size_t>(token) < logits.size(), "token ", token);
  HB_ASSIGN_OR_RETURN(const Peak peak, FindPeak(logits));
  const double norm = LogSumExp(logits, peak.value);
  PositionLogprobs result;
  const float own = logits[static_cast<size_t>(token)];
  result.logprob = static_cast<float>(own - norm);
  for (const float l : logits) result.rank += l > own;

  // A heap whose front is the worst kept token; nearly every logit fails the one comparison with it.
  struct Entry { float logit; int32_t id; };
  const auto better = [](const Entry& a, const Entry& b) { return a.logit > b.logit || (a.logit == b.logit && a.id < b.id); };
  std::vector<Entry> heap;
  const size_t wanted = std::min(static_cast<size_t>(std::max(n, 0)), logits.size());
  for (size_t i = 0; wanted > 0 && i < logits.size(); ++i) {
    if (heap.size() == wanted) {
      if (logits[i] <= heap.front().logit) continue;
      std::pop_heap(heap.begin(), heap.end(), better);
      heap.pop_back();
    }
    heap.push_back({logits[i], static_cast<int32_t>(i)});
    std::push_heap(heap.begin(), heap.end(), better);
  }
  std::sort(heap.begin(), heap.end(), better);
  for (const Entry& e : heap) result.top.push_back({e.id, static_cast<float>(e.logit - norm)});
  return result;
}

}  // namespace halfbyte::engine
