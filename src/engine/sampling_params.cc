#include "engine/sampling_params.h"

#include <cmath>

namespace halfbyte::engine {
namespace {

base::Status CheckRange(const char* name, double value, double low, double high, bool open_low = false) {
  // Written so that NaN fails.
  if ((open_low ? value > low : value >= low) && value <= high) return {};
  return base::Fail(base::ErrorCode::kInvalidArgument, name, " is ", value, ", it must be in ", open_low ? "(" : "[", low, ", ", high, "]");
}

}  // namespace

base::Status Validate(const SamplingParams& p, int64_t vocab) {
  HB_RETURN_IF_ERROR(CheckRange("temperature", p.temperature, 0, 100));
  HB_RETURN_IF_ERROR(CheckRange("top_p", p.top_p, 0, 1, true));
  HB_RETURN_IF_ERROR(CheckRange("min_p", p.min_p, 0, 1));
  HB_RETURN_IF_ERROR(CheckRange("repetition_penalty", p.repetition_penalty, 0.01, 100));
  HB_RETURN_IF_ERROR(CheckRange("presence_penalty", p.presence_penalty, -100, 100));
  HB_RETURN_IF_ERROR(CheckRange("frequency_penalty", p.frequency_penalty, -100, 100));
  if (p.top_k < -1) return base::Fail(base::ErrorCode::kInvalidArgument, "top_k is ", p.top_k, ", it must be -1, 0 (both: off) or more");
  if (p.logprobs < -1 || p.logprobs > vocab)
    return base::Fail(base::ErrorCode::kInvalidArgument, "logprobs is ", p.logprobs, ", it must be in [-1, ", vocab, "]");
  if (static_cast<int64_t>(p.logit_bias.size()) > kMaxLogitBias)
    return base::Fail(base::ErrorCode::kInvalidArgument, "logit_bias has ", p.logit_bias.size(), " entries, at most ", kMaxLogitBias, " are taken");
  for (const auto& [token, bias] : p.logit_bias) {
    if (token < 0 || token >= vocab)
      return base::Fail(base::ErrorCode::kInvalidArgument, "logit_bias names token ", token, ", the vocabulary is [0, ", vocab, ")");
    HB_RETURN_IF_ERROR(CheckRange("logit_bias", bias, -100, 100));
  }
  return {};
}

}  // namespace halfbyte::engine
