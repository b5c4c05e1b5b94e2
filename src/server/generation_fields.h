// The fields that say how text is generated, common to /v1/completions and /v1/chat/completions, and SGLang's sampling_params.
#pragma once

#include "server/context.h"
#include "server/fields.h"
#include "server/job.h"

namespace halfbyte::server {

// Sampling where the request is silent: generation_config.json, else OpenAI's (temperature 1, top_p 1).
engine::SamplingParams DefaultSampling(const base::Json& generation_config);

// temperature, top_p, top_k, min_p, penalties, logit_bias, seed, n, stop, stop_token_ids, ignore_eos, min_tokens, skip_special_tokens, stream, stream_options.
// max_tokens is the caller's: its names and defaults differ.
struct OpenAiCommon {
  bool include_usage = false;
};
OpenAiCommon ReadOpenAiCommon(Fields& fields, const Context& context, JobPlan& plan);

// SGLang's sampling_params object.
void ReadSglangSampling(Fields& fields, const Context& context, JobPlan& plan);

// "model": any name is taken when it is ours or empty; another is 404, as OpenAI has it.
void CheckModelName(Fields& fields, const Context& context);

// One warning a field name in the life of the process, so that a client's habit does not fill the log.
void WarnUnknown(const std::vector<std::string>& fields);

}  // namespace halfbyte::server
