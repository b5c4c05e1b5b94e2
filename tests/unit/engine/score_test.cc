#include "engine/score.h"

#include <gtest/gtest.h>

#include "fake_model.h"

namespace halfbyte::engine {
namespace {

struct Case { StateGeometry geometry; int64_t rows; };

std::vector<std::vector<int32_t>> Documents() {
  std::vector<std::vector<int32_t>> documents;
  for (int64_t n : {5, 0, 1, 200, 64, 63, 150, 33, 0, 17, 17, 199, 2}) {
    auto& d = documents.emplace_back();
    for (int64_t i = 0; i < n; ++i) d.push_back(static_cast<int32_t>(MixDigest(static_cast<uint64_t>(n), static_cast<uint64_t>(i)) % 29));
  }
  return documents;
}

// Each row's logits say everything about the tokens before it: they must be those of a run of the document alone, in order, once.
void CheckAll(FakeModel& model, const std::vector<std::vector<int32_t>>& documents, const ScoreOptions& options) {
  Scorer scorer(model, documents, options);
  std::vector<int64_t> seen(documents.size());
  for (;;) {
    const auto pieces = scorer.Next();
    ASSERT_TRUE(pieces) << pieces.error().ToString();
    if (pieces->empty()) break;
    for (const ScoredRows& p : *pieces) {
      EXPECT_EQ(p.first_position, seen[p.document]);
      EXPECT_GT(p.logits.rows, 0);
      seen[p.document] += p.logits.rows;
      const std::vector<int32_t>& ids = documents[p.document];
      for (int64_t r : {int64_t{0}, p.logits.rows - 1}) {
        Request request;  // greedy: the first token of the answer to this prefix is the row's argmax
        request.prompt.assign(ids.begin(), ids.begin() + p.first_position + r + 1);
        request.max_tokens = 1;
        const std::span<const float> row(p.logits.row<float>(r), static_cast<size_t>(p.logits.cols));
        EXPECT_EQ(FindPeak(row)->id, model.RunAlone(request, 4000).tokens.at(0));
      }
    }
  }
  for (size_t i = 0; i < documents.size(); ++i) EXPECT_EQ(seen[i], static_cast<int64_t>(documents[i].size()));
}

TEST(Scorer, EveryRowOfEveryDocumentOnce) {
  const auto documents = Documents();
  for (const Case& c : {Case{{.block_tokens = 16, .blocks = 13}, 64}, Case{{.block_tokens = 16, .blocks = 100}, 512},
                        Case{{.block_tokens = 16, .blocks = 40, .slots = 2, .fixed = true}, 100}, Case{{.slots = 3, .paged = false, .fixed = true}, 70},
                        Case{{.block_tokens = 32, .blocks = 20, .window = 20}, 90}}) {
    FakeModel model(c.geometry);
    CheckAll(model, documents, {.rows = c.rows});
    EXPECT_LE(model.most_rows(), c.rows);
  }
}

TEST(Scorer, LogitMemoryBoundsTheRowsOfAStep) {
  FakeModel model({.block_tokens = 16, .blocks = 100}, 29);
  CheckAll(model, Documents(), {.rows = 512, .logit_bytes = 29 * 4 * 80});
  EXPECT_EQ(model.most_logit_rows(), 80);
}

TEST(Scorer, DocumentsThatDoNotFitAreNamed) {
  FakeModel model({.block_tokens = 16, .blocks = 2});
  const std::vector<std::vector<int32_t>> long_one = {{1, 2}, std::vector<int32_t>(33, 1)}, bad_token = {{1, 29}};
  Scorer a(model, long_one);
  const auto got = a.Next();
  ASSERT_FALSE(got);
  EXPECT_NE(got.error().message().find("document 1 has 33 tokens"), std::string::npos) << got.error().message();
  Scorer b(model, bad_token);
  EXPECT_FALSE(b.Next());
}

TEST(Scorer, AFailedStepIsAnError) {
  FakeModel model({.block_tokens = 16, .blocks = 100});
  model.fail_at_step = 0;
  const auto documents = Documents();
  EXPECT_FALSE(Scorer(model, documents).Next());
}

}  // namespace
}  // namespace halfbyte::engine
