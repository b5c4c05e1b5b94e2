// A made-up model whose next token depends on everything that scheduling can get wrong: the tokens before, their positions, the class of each row
// (prompt or generated), the order of blocks, and what the cache and the slot hold. Its "K and V" of a row is a 64-bit digest of the row before it, of
// an older row that is still in sight, of the token and of the class; the logits are drawn from the digest of the row.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "engine/request.h"
#include "engine/sampler.h"
#include "engine/step_runner.h"

namespace halfbyte::engine {

inline uint64_t MixDigest(uint64_t a, uint64_t b) {
  uint64_t h = a * 0x9E3779B97F4A7C15 ^ (b + 0x7F4A7C15);
  h = (h ^ (h >> 31)) * 0xD6E8FEB86659FD93;
  return h ^ (h >> 29);
}

// The older row that a row looks at: any one in sight.
inline int64_t LookBack(int64_t position, int64_t window) {
  const int64_t first = window > 0 ? std::max<int64_t>(0, position - window + 1) : 0;
  return first + static_cast<int64_t>(MixDigest(static_cast<uint64_t>(position), 77) % static_cast<uint64_t>(position - first));
}

inline uint64_t RowDigest(uint64_t before, uint64_t older, int32_t token, bool prompt, int64_t position) {
  return MixDigest(MixDigest(before, older), MixDigest(static_cast<uint64_t>(token) * 2 + prompt, static_cast<uint64_t>(position)));
}

inline void DigestLogits(uint64_t digest, std::vector<float>& logits) {
  for (size_t t = 0; t < logits.size(); ++t) logits[t] = static_cast<float>(MixDigest(digest, t) >> 40) * 0x1p-21f;
}

class FakeModel : public StepRunner {
 public:
  explicit FakeModel(StateGeometry geometry, int64_t vocab = 29, int64_t max_positions = 4096) {
    traits_ = {vocab, max_positions, {0}, geometry};
    cache_.resize(static_cast<size_t>(geometry.blocks * geometry.block_tokens));
    slots_.resize(static_cast<size_t>(geometry.slots));
  }

  const ModelTraits& traits() const override { return traits_; }
  int64_t steps() const { return steps_; }
  int64_t most_rows() const { return most_rows_; }
  int64_t most_logit_rows() const { return most_logit_rows_; }
  uint64_t weights = 1;            // another number is another model
  int64_t fail_at_step = -1;       // this step is an error
  int64_t nan_at_step = -1;        // the first row of logits of this step is NaN

  base::Result<kernels::Matrix> Run(const model::Step& step) override {
    const int64_t now = steps_++;
    if (now == fail_at_step) return base::Fail(base::ErrorCode::kInternal, "the device fell over");
    most_rows_ = std::max(most_rows_, static_cast<int64_t>(step.tokens.size()));
    most_logit_rows_ = std::max(most_logit_rows_, static_cast<int64_t>(step.logit_rows.size()));
    std::vector<uint64_t> digests(step.tokens.size());
    int64_t row = 0;
    for (const kernels::SequenceRows& s : step.sequences) {
      EXPECT_EQ(s.first_row, row);
      EXPECT_GT(s.rows, 0);
      const bool prompt = row < step.prompt_rows;
      EXPECT_TRUE(!prompt || row + s.rows <= step.prompt_rows) << "rows of both classes in one sequence";
      for (int64_t r = 0; r < s.rows; ++r, ++row) digests[static_cast<size_t>(row)] = RunRow(s, step.tokens[static_cast<size_t>(row)], s.first_position + r, r, prompt);
    }
    EXPECT_EQ(row, static_cast<int64_t>(step.tokens.size()));
    const size_t v = static_cast<size_t>(traits_.vocab);
    logits_.resize(step.logit_rows.size() * v);
    std::vector<float> one(v);
    for (size_t i = 0; i < step.logit_rows.size(); ++i) {
      EXPECT_TRUE(i == 0 || step.logit_rows[i - 1] < step.logit_rows[i]);
      DigestLogits(digests[static_cast<size_t>(step.logit_rows[i])], one);
      std::copy(one.begin(), one.end(), logits_.begin() + static_cast<std::ptrdiff_t>(i * v));
    }
    if (now == nan_at_step && !logits_.empty()) logits_[v / 2] = std::numeric_limits<float>::quiet_NaN();
    return kernels::Matrix(logits_.data(), tensor::DType::kF32, static_cast<int64_t>(step.logit_rows.size()), traits_.vocab);
  }

  base::Status ClearSlot(int64_t slot) override { slots_.at(static_cast<size_t>(slot)) = {}; return {}; }
  base::Status CopyBlock(int64_t from, int64_t to) override {
    const int64_t n = traits_.state.block_tokens;
    std::copy_n(cache_.begin() + from * n, n, cache_.begin() + to * n);
    return {};
  }
  base::Status CopySlot(int64_t from, int64_t to) override { slots_.at(static_cast<size_t>(to)) = slots_.at(static_cast<size_t>(from)); return {}; }

  // What a request gives when it runs alone, from the definition: no blocks, no chunks, no scheduler.
  struct Alone {
    std::vector<int32_t> tokens;
    FinishReason reason = FinishReason::kLength;
  };
  Alone RunAlone(const Request& request, int64_t max_length) const {
    std::vector<uint64_t> rows, recurrent;
    const auto add = [&](int32_t token, bool prompt) {
      const int64_t p = static_cast<int64_t>(rows.size());
      rows.push_back(p == 0 ? First(token, prompt) : RowDigest(rows.back(), rows[static_cast<size_t>(LookBack(p, traits_.state.window))], token, prompt, p));
      recurrent.push_back(p == 0 ? First(token, prompt) : RowDigest(recurrent.back(), recurrent.back(), token, prompt, p));
    };
    for (const int32_t t : request.prompt) add(t, true);
    Alone result;
    Sampler sampler;
    TokenHistory history;
    history.AddPrompt(request.prompt);
    std::vector<float> logits(static_cast<size_t>(traits_.vocab));
    const int64_t room = max_length - static_cast<int64_t>(request.prompt.size());
    const int64_t most = std::min(request.max_tokens.value_or(room), room);
    std::vector<int32_t> ends = request.stop_ids;
    if (!request.ignore_eos) ends.insert(ends.end(), traits_.eos.begin(), traits_.eos.end());
    while (static_cast<int64_t>(result.tokens.size()) < most) {
      DigestLogits(MixDigest(traits_.state.paged ? rows.back() : 0, traits_.state.fixed ? recurrent.back() : 0), logits);
      SampleInput in{logits, &request.sampling, &history, {}, {}, result.tokens.size()};
      if (static_cast<int64_t>(result.tokens.size()) < request.min_tokens) in.forbidden = ends;
      const int32_t token = sampler.Sample(in)->token;
      history.AddGenerated(token);
      result.tokens.push_back(token);
      if (std::find(ends.begin(), ends.end(), token) != ends.end()) { result.reason = FinishReason::kStop; break; }
      add(token, false);
    }
    return result;
  }

 private:
  struct Entry { uint64_t digest = 0; int64_t position = -1; };
  struct Slot { uint64_t digest = 0; int64_t positions = 0; };

  uint64_t First(int32_t token, bool prompt) const { return RowDigest(weights, 0, token, prompt, 0); }

  // What the cache says about a position; a wrong block shows as a wrong position.
  uint64_t Read(const kernels::SequenceRows& s, int64_t position) {
    const int64_t n = traits_.state.block_tokens;
    const Entry& e = cache_.at(static_cast<size_t>(s.blocks[position / n] * n + position % n));
    EXPECT_EQ(e.position, position) << "the block holds another position";
    return e.digest;
  }

  uint64_t RunRow(const kernels::SequenceRows& s, int32_t token, int64_t p, int64_t row_of_chunk, bool prompt) {
    const StateGeometry& g = traits_.state;
    uint64_t digest = 0, recurrent = 0;
    if (g.paged) {
      digest = p == 0 ? First(token, prompt) : RowDigest(Read(s, p - 1), Read(s, LookBack(p, g.window)), token, prompt, p);
      cache_.at(static_cast<size_t>(s.blocks[p / g.block_tokens] * g.block_tokens + p % g.block_tokens)) = {digest, p};
    }
    if (g.fixed) {
      Slot& slot = slots_.at(static_cast<size_t>(s.slot));
      EXPECT_EQ(slot.positions, p) << "the slot is at another position";
      EXPECT_TRUE(!prompt || row_of_chunk > 0 || p % 64 == 0) << "a prompt chunk of a recurrent model begins between multiples of 64";
      recurrent = p == 0 ? First(token, prompt) : RowDigest(slot.digest, slot.digest, token, prompt, p);
      slot = {recurrent, p + 1};
    }
    return MixDigest(digest, recurrent);
  }

  ModelTraits traits_;
  std::vector<Entry> cache_;
  std::vector<Slot> slots_;
  std::vector<float> logits_;
  int64_t steps_ = 0, most_rows_ = 0, most_logit_rows_ = 0;
};

}  // namespace halfbyte::engine
