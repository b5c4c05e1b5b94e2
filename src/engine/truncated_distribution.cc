#include "engine/truncated_distribution.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "engine/logits_scan.h"

namespace halfbyte::engine {
namespace {

constexpr float kBucketsPerNat = 8.0f;

}  // namespace

void TruncatedDistribution::Build(std::span<const float> logits, float peak, const SamplingParams& params) {
  logits_ = logits;
  cut_.bucket = kBuckets;
  cut_.count = 0;
  FillBuckets(peak, 1.0f / params.temperature);
  if (params.min_p > 0) CutByMinP(params.min_p);
  if (params.top_k > 0 && static_cast<size_t>(params.top_k) < logits.size()) CutByTopK(static_cast<size_t>(params.top_k));
  if (params.top_p < 1) CutByTopP(params.top_p);
}

void TruncatedDistribution::FillBuckets(float peak, float inverse_temperature) {
  const size_t n = logits_.size();
  weights_.resize(n);
  bucket_of_.resize(n);
  ExpWeights(logits_, peak, inverse_temperature, weights_.data());
  bucket_weight_.fill(0);
  bucket_count_.fill(0);
  Buckets(logits_, peak, inverse_temperature * kBucketsPerNat, bucket_of_.data());
  for (size_t i = 0; i < n; ++i) {
    const size_t b = bucket_of_[i];
    bucket_weight_[b] += weights_[i];
    ++bucket_count_[b];
  }
}

void TruncatedDistribution::SortBucket(size_t bucket) {
  cut_.sorted.clear();
  for (size_t i = 0; i < bucket_of_.size(); ++i)
    if (bucket_of_[i] == bucket) cut_.sorted.push_back(static_cast<int32_t>(i));
  std::sort(cut_.sorted.begin(), cut_.sorted.end(), [this](int32_t a, int32_t b) {
    const float la = logits_[static_cast<size_t>(a)], lb = logits_[static_cast<size_t>(b)];
    return la != lb ? la > lb : a < b;
  });
}

void TruncatedDistribution::CutByMinP(float min_p) {
  // The bucket is found from the logarithm, the cut inside it from the weights themselves; a rounding of the logarithm across a border
  // is caught by starting one bucket earlier.
  const double distance = -std::log(static_cast<double>(min_p)) * kBucketsPerNat;
  const size_t guess = static_cast<size_t>(std::min(distance, static_cast<double>(kBuckets - 1)));
  for (size_t b = guess > 0 ? guess - 1 : 0; b < kBuckets; ++b) {
    SortBucket(b);
    size_t count = 0;
    while (count < cut_.sorted.size() && weights_[static_cast<size_t>(cut_.sorted[count])] >= min_p) ++count;
    if (count == cut_.sorted.size() && b < std::min(guess + 1, kBuckets - 1)) continue;
    cut_.bucket = b;
    cut_.count = count;
    return;
  }
}

void TruncatedDistribution::CutByTopK(size_t k) {
  size_t before = 0;
  for (size_t b = 0; b < cut_.bucket && b < kBuckets; ++b) {
    if (before + bucket_count_[b] >= k) {
      SortBucket(b);
      cut_.bucket = b;
      cut_.count = k - before;
      return;
    }
    before += bucket_count_[b];
  }
  if (cut_.bucket < kBuckets) cut_.count = std::min(cut_.count, k - before);
}

double TruncatedDistribution::KeptWeight() const {
  double sum = 0;
  for (size_t b = 0; b < std::min(cut_.bucket, kBuckets); ++b) sum += bucket_weight_[b];
  for (size_t i = 0; i < cut_.count; ++i) sum += weights_[static_cast<size_t>(cut_.sorted[i])];
  return sum;
}

void TruncatedDistribution::CutByTopP(double top_p) {
  const double wanted = top_p * KeptWeight();
  double before = 0;
  size_t b = 0;
  while (b < std::min(cut_.bucket, kBuckets) && before + bucket_weight_[b] < wanted) before += bucket_weight_[b++];
  if (b == kBuckets) return;  // only by rounding: the sum of all buckets is KeptWeight() itself
  size_t limit = cut_.count;
  if (b != cut_.bucket) {
    SortBucket(b);
    cut_.bucket = b;
    limit = cut_.sorted.size();
  }
  size_t count = 0;
  while (count < limit && before < wanted) before += weights_[static_cast<size_t>(cut_.sorted[count++])];
  cut_.count = count;
}

int32_t TruncatedDistribution::Draw(double u) {
  const double target = u * KeptWeight();
  double before = 0;
  size_t b = 0;
  int32_t last = -1;  // the token to give where rounding walks past the end
  while (b < std::min(cut_.bucket, kBuckets) && before + bucket_weight_[b] <= target) before += bucket_weight_[b++];
  if (b < std::min(cut_.bucket, kBuckets)) {
    for (size_t i = 0; i < bucket_of_.size(); ++i) {
      if (bucket_of_[i] != b || weights_[i] == 0) continue;
      last = static_cast<int32_t>(i);
      before += weights_[i];
      if (before > target) break;
    }
  } else {
    for (size_t i = 0; i < cut_.count; ++i) {
      const size_t token = static_cast<size_t>(cut_.sorted[i]);
      if (weights_[token] == 0) break;
      last = cut_.sorted[i];
      before += weights_[token];
      if (before > target) break;
    }
  }
  if (last >= 0) return last;
  // u so close to 1 that the buckets' rounded sums end before it: the last kept token that has a weight.
  for (size_t i = bucket_of_.size(); i-- > 0;)
    if (bucket_of_[i] < cut_.bucket && weights_[i] > 0) return static_cast<int32_t>(i);
  HB_CHECK(cut_.count > 0, "no token is kept");
  return cut_.sorted[0];
}

std::vector<int32_t> TruncatedDistribution::Kept() const {
  std::vector<int32_t> kept(cut_.sorted.begin(), cut_.sorted.begin() + static_cast<std::ptrdiff_t>(cut_.count));
  for (size_t i = 0; i < bucket_of_.size(); ++i)
    if (bucket_of_[i] < cut_.bucket) kept.push_back(static_cast<int32_t>(i));
  std::sort(kept.begin(), kept.end());
  return kept;
}

}  // namespace halfbyte::engine
