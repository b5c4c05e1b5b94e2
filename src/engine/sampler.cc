#include "engine/sampler.h"

#include <cmath>

#include "base/check.h"
#include "engine/philox.h"

namespace halfbyte::engine {

// The logits after masks, bias and penalties: the row itself where nothing changes it, else a copy.
std::span<const float> Sampler::Adjust(const SampleInput& in) {
  const SamplingParams& p = *in.params;
  const bool penalties = HasPenalties(p);
  if (!penalties && p.logit_bias.empty() && in.forbidden.empty() && in.allowed.empty()) return in.logits;
  adjusted_.assign(in.logits.begin(), in.logits.end());
  for (size_t t = 0; t < in.allowed.size() * 64 && t < adjusted_.size(); ++t)
    if (!(in.allowed[t / 64] >> (t % 64) & 1)) adjusted_[t] = -INFINITY;
  for (const int32_t t : in.forbidden) adjusted_[static_cast<size_t>(t)] = -INFINITY;
  for (const auto& [token, bias] : p.logit_bias) adjusted_[static_cast<size_t>(token)] += bias;
  if (penalties) {
    HB_CHECK(in.history != nullptr, "penalties need the history");
    in.history->Penalize(p, adjusted_);
  }
  return adjusted_;
}

base::Result<Sampled> Sampler::Sample(const SampleInput& in) {
  const SamplingParams& p = *in.params;
  // The model's own row is judged first, so that a broken row is never blamed on a mask.
  HB_ASSIGN_OR_RETURN(Peak peak, FindPeak(in.logits));
  const std::span<const float> logits = Adjust(in);
  if (logits.data() != in.logits.data()) {
    auto adjusted_peak = FindPeak(logits);
    if (!adjusted_peak) return base::Fail(base::ErrorCode::kInvalidArgument, "min_tokens, logit_bias and the output's structure together leave no token to choose from");
    peak = *adjusted_peak;
  }
  Sampled result;
  if (IsGreedy(p)) {
    result.token = peak.id;
  } else {
    distribution_.Build(logits, peak.value, p);
    result.token = distribution_.Draw(UniformDraw(p.seed, p.stream, in.index));
  }
  if (p.logprobs >= 0) {
    HB_ASSIGN_OR_RETURN(result.logprobs, ComputeLogprobs(in.logits, result.token, p.logprobs));
  }
  return result;
}

}  // namespace halfbyte::engine
