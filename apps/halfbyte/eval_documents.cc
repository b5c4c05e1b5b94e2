#include "eval_documents.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "input.h"

namespace halfbyte::app {

base::Result<std::unique_ptr<engine::ModelRunner>> ScoringRunner(model::LoadedModel loaded, const std::string& kv_cache_dtype, const Documents& documents) {
  constexpr int64_t kRowsAhead = 4096;  // cache for some steps' worth of short documents beside the longest one
  size_t longest = 1;
  for (const auto& d : documents) longest = std::max(longest, d.size());
  engine::StateOptions options;
  options.sequences = 64;
  options.max_tokens = static_cast<int64_t>(longest);
  options.cache_tokens = static_cast<int64_t>(longest) + kRowsAhead;
  options.kv_dtype = KvDtype(kv_cache_dtype);
  return engine::ModelRunner::Create(std::move(loaded.model), options);
}

double NegativeLogLikelihood(const float* row, int64_t vocab, int32_t token) {
  const double top = *std::max_element(row, row + vocab);
  double sum = 0;
  for (int64_t i = 0; i < vocab; ++i) sum += std::exp(static_cast<double>(row[i]) - top);
  return top + std::log(sum) - static_cast<double>(row[token]);
}

base::Result<Documents> ReadDocuments(const std::string& path, std::string_view flag, const text::Tokenizer& tokenizer) {
  HB_ASSIGN_OR_RETURN(const std::string text, ReadInput(path, flag, kDocumentsLimit));
  std::istringstream lines(text);
  Documents out;
  int64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    HB_ASSIGN_OR_RETURN_AT(const base::Json row, base::Json::Parse(line), base::StrCat(path, " line ", number));
    HB_ASSIGN_OR_RETURN_AT(const std::string document, row.GetString("text"), base::StrCat(path, " line ", number));
    std::vector<int32_t> ids = tokenizer.Encode(document, false);
    if (ids.size() >= 2) out.push_back(std::move(ids));
  }
  if (out.empty()) return base::Fail(base::ErrorCode::kInvalidArgument, path, ": no document of at least two tokens");
  return out;
}

}  // namespace halfbyte::app
