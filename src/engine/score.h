// Scorer: the logits of every position of given documents, a bounded number of rows at a time, several documents a step.
//
//   Scorer scorer(runner, documents);
//   for (;;) {
//     HB_ASSIGN_OR_RETURN(const auto pieces, scorer.Next());
//     if (pieces.empty()) break;
//     for (const ScoredRows& p : pieces) ...
//   }
// All rows are prompt rows. The logits do not depend on how documents are packed into steps. Two scorers over the same documents, options and state
// geometry give the same pieces in the same order: that is how two models are compared row by row without storing either's logits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/sequence_state.h"
#include "engine/step_runner.h"

namespace halfbyte::engine {

struct ScoreOptions {
  int64_t rows = 512;                       // of a step
  int64_t logit_bytes = int64_t{128} << 20;  // most that one step's logits may take (at least 64 rows are run all the same)
};

// Logits of positions [first_position, first_position + logits.rows) of documents[document]; row i tells about the token at first_position + i + 1.
struct ScoredRows {
  size_t document = 0;
  int64_t first_position = 0;
  kernels::Matrix logits;  // F32 [n, V]
};

class Scorer {
 public:
  // Both are borrowed. The runner's blocks and slots are used from the first on: nobody else may use it meanwhile.
  Scorer(StepRunner& runner, std::span<const std::vector<int32_t>> documents, const ScoreOptions& options = {});

  // The next step's rows, each document's in order of positions; empty when all documents are done. Valid until the next call. kInvalidArgument: a document
  // that is longer than the model or its cache allows, or holds a token that the vocabulary does not have. Empty documents have no rows.
  base::Result<std::span<const ScoredRows>> Next();

 private:
  struct Open {
    size_t document = 0;
    SequenceState state;
  };

  base::Status CheckDocument(size_t index) const;
  base::Status OpenMore();
  void AddRows(Open& open);

  StepRunner& runner_;
  std::span<const std::vector<int32_t>> documents_;
  int64_t rows_ = 0;  // of a step
  SequenceStates states_;
  size_t next_document_ = 0;
  std::vector<Open> open_;
  int64_t reserved_blocks_ = 0;  // that the open documents will have taken when they are whole
  std::vector<int32_t> tokens_;
  std::vector<kernels::SequenceRows> sequences_;
  std::vector<ScoredRows> pieces_;
};

}  // namespace halfbyte::engine
