// The demo model against transformers: stored logits, greedy answers to word problems, perplexity. The data is in the repository (tests/data/demo).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "base/check.h"
#include "base/json.h"
#include "golden/golden_models.h"
#include "support/golden_file.h"
#include "text/tokenizer.h"

namespace halfbyte::golden {
namespace {

using model::Arithmetic;

const std::filesystem::path kDemo = HALFBYTE_SOURCE_DIR "/models/demo";
const std::filesystem::path kData = HALFBYTE_TEST_DATA "/demo";

std::vector<base::Json> Lines(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::vector<base::Json> rows;
  for (std::string line; std::getline(in, line);) rows.push_back(*base::Json::Parse(line));
  return rows;
}

std::vector<int32_t> Ids(const base::Json& list) {
  std::vector<int32_t> ids;
  for (const base::Json& id : list.as_array()) ids.push_back(static_cast<int32_t>(id.as_int()));
  return ids;
}

TEST(Demo, StoredLogits) {
  const test::GoldenFile expected = test::ReadGolden(kData / "expected.safetensors");
  std::vector<int32_t> ids;
  for (int64_t id : expected.at("input_ids").As<int64_t>()) ids.push_back(static_cast<int32_t>(id));
  const std::vector<float> want = expected.at("last_logits").As<float>();
  for (const Form& form : {Form{"reference", "none", Arithmetic::kExact}, Form{"cpu", "none", Arithmetic::kExact}}) {
    const std::vector<float> all = Logits(kDemo, form, {ids})[0];
    EXPECT_LE(MaxError({all.end() - static_cast<int64_t>(want.size()), all.end()}, want), form.device == std::string("cpu") ? 1e-3 : 2e-4) << form.ToString();
  }
}

TEST(Demo, GreedyAnswers) {
  std::vector<std::vector<int32_t>> prompts, want;
  for (const base::Json& row : Lines(kData / "problems.jsonl")) {
    prompts.push_back(Ids(*row.Find("prompt_tokens")));
    want.push_back(Ids(*row.Find("greedy_tokens")));
  }
  ASSERT_EQ(prompts.size(), 25u);
  EXPECT_EQ(Greedy(kDemo, {"cpu", "none", Arithmetic::kExact}, prompts, 110, true), want);
}

std::vector<std::vector<int32_t>> WordProblems() {
  const auto tokenizer = text::Tokenizer::FromFolder(kDemo);
  HB_CHECK(tokenizer.has_value(), tokenizer.error().ToString());
  std::vector<std::vector<int32_t>> documents;
  for (const base::Json& row : Lines(kData / "problem-documents.jsonl")) documents.push_back(tokenizer->Encode(row.Find("text")->as_string(), false));
  return documents;
}

// ln sum exp, in FP64.
double LogSum(const float* row, int64_t vocab) {
  const double top = *std::max_element(row, row + vocab);
  double sum = 0;
  for (int64_t v = 0; v < vocab; ++v) sum += std::exp(row[v] - top);
  return top + std::log(sum);
}

// Documents are scored from their second token on.
struct Score {
  double perplexity = 0, mean_kl = 0;  // KL(none || form), in nats
  int64_t tokens = 0;
};

// none: the logits of every document in source precision; empty: no KL.
Score ScoreDocuments(const Form& form, const std::vector<std::vector<int32_t>>& documents, const std::vector<std::vector<float>>& none) {
  Score s;
  double nll = 0;
  VisitLogits(kDemo, form, documents, [&](const engine::ScoredRows& p) {
    const auto& d = documents[p.document];
    const int64_t vocab = p.logits.cols;
    for (int64_t r = 0; r < p.logits.rows && p.first_position + r + 1 < static_cast<int64_t>(d.size()); ++r, ++s.tokens) {
      const float* row = p.logits.row<float>(r);
      const double log_z = LogSum(row, vocab);
      nll += log_z - row[d[static_cast<size_t>(p.first_position + r + 1)]];
      if (none.empty()) continue;
      const float* other = none[p.document].data() + (p.first_position + r) * vocab;
      const double other_log_z = LogSum(other, vocab);
      for (int64_t v = 0; v < vocab; ++v) s.mean_kl += std::exp(other[v] - other_log_z) * ((other[v] - other_log_z) - (row[v] - log_z));
    }
  });
  s.perplexity = std::exp(nll / static_cast<double>(s.tokens));
  s.mean_kl /= static_cast<double>(s.tokens);
  return s;
}

TEST(Demo, PerplexityInSourcePrecision) {
  const auto documents = WordProblems();
  const base::Json want = Lines(kData / "perplexity.json").at(0);
  const double perplexity = want.Find("perplexity")->as_double();
  const Score exact = ScoreDocuments({"cpu", "none", Arithmetic::kExact}, documents, {});
  EXPECT_EQ(exact.tokens, want.Find("tokens_scored")->as_int());
  EXPECT_NEAR(exact.perplexity, perplexity, 0.001 * perplexity);
  EXPECT_NEAR(ScoreDocuments({"cpu", "none", Arithmetic::kRounded}, documents, {}).perplexity, perplexity, 0.005 * perplexity);
}

TEST(Demo, PerplexityAndDivergenceOfTheModes) {
  const auto documents = WordProblems();
  const base::Json want = Lines(kData / "modes.json").at(0);
  const auto none = Logits(kDemo, {"cpu", "none", Arithmetic::kExact}, documents);
  for (auto [mode, key] : {std::pair{"w4a16", "w4a16"}, {"nvfp4_online", "w4a4_token"}, {"modelopt_fp4", "w4a4_tensor"}}) {
    const double perplexity = want.Find(key)->Find("perplexity")->as_double(), kl = want.Find(key)->Find("mean_kl_from_none")->as_double();
    const Score exact = ScoreDocuments({"cpu", mode, Arithmetic::kExact}, documents, none);
    EXPECT_NEAR(exact.perplexity, perplexity, 0.001 * perplexity) << mode;
    EXPECT_NEAR(exact.mean_kl, kl, 0.03 * kl) << mode;
    const Score rounded = ScoreDocuments({"cpu", mode, Arithmetic::kRounded}, documents, {});
    EXPECT_NEAR(rounded.perplexity, perplexity, 0.005 * perplexity) << mode;
    std::printf("%s: perplexity %.6f (stored %.6f), KL %.6f (stored %.6f), rounded perplexity %.6f\n", mode, exact.perplexity, perplexity, exact.mean_kl, kl, rounded.perplexity);
  }
}

}  // namespace
}  // namespace halfbyte::golden
