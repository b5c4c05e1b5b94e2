// Documents for the eval commands, and what is computed from rows of logits.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/model_runner.h"
#include "engine/score.h"
#include "model_options.h"
#include "text/tokenizer.h"

namespace halfbyte::app {

using Documents = std::vector<std::vector<int32_t>>;

// {"text"} a line, encoded as it stands without added special tokens; documents of fewer than two tokens are left out. flag: that named the file.
base::Result<Documents> ReadDocuments(const std::string& path, std::string_view flag, const text::Tokenizer& tokenizer);

// A loaded model with a cache for scoring `documents`, several at a time.
base::Result<std::unique_ptr<engine::ModelRunner>> ScoringRunner(model::LoadedModel loaded, const std::string& kv_cache_dtype, const Documents& documents);

// -ln of the softmax of row[token], in FP64.
double NegativeLogLikelihood(const float* row, int64_t vocab, int32_t token);

}  // namespace halfbyte::app
