// The tokens that temperature, min_p, top_k and top_p leave, and a draw from them; without sorting the vocabulary.
//
// Every token falls into one of 256 buckets by how far its scaled logit is below the best one (an eighth of a nat a bucket; the last one holds
// the rest). Buckets are ordered, so a cut is a bucket and a number of tokens of it, and only the tokens of the bucket in which a cut falls are sorted.
//
// Order of the filters (vLLM's): temperature, min_p, top_k, top_p; top_p takes its share of what the former two left. Tokens of equal logits
// are ordered by id, so top_k keeps exactly k and top_p the fewest that reach the share (at least one).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/sampling_params.h"

namespace halfbyte::engine {

class TruncatedDistribution {
 public:
  // peak: the largest of the logits, which are finite or -inf. Keeps a reference to `logits`; memory is reused from call to call.
  void Build(std::span<const float> logits, float peak, const SamplingParams& params);

  // The token at share u of the kept weight, u in [0, 1): by bucket, in a bucket by id (in the cut bucket by logit).
  int32_t Draw(double u);

  // For tests: the kept tokens in ascending order of ids.
  std::vector<int32_t> Kept() const;

 private:
  static constexpr size_t kBuckets = 256;
  // Tokens of buckets below `bucket` are kept, and the first `count` of `sorted` (that bucket's tokens, best first).
  struct Cut {
    size_t bucket = kBuckets;
    size_t count = 0;
    std::vector<int32_t> sorted;
  };

  void FillBuckets(float peak, float inverse_temperature);
  void SortBucket(size_t bucket);  // into cut_.sorted
  void CutByMinP(float min_p);
  void CutByTopK(size_t k);
  void CutByTopP(double top_p);
  double KeptWeight() const;

  std::span<const float> logits_;
  std::vector<float> weights_;      // [V] exp of the scaled distance to the best, in (0, 1]
  std::vector<uint8_t> bucket_of_;  // [V]
  std::array<double, kBuckets> bucket_weight_{};
  std::array<size_t, kBuckets> bucket_count_{};
  Cut cut_;
};

}  // namespace halfbyte::engine
