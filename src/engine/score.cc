#include "engine/score.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace halfbyte::engine {
namespace {

constexpr int64_t kLeastRows = 64;  // also the multiple at which chunks of recurrent models end

}  // namespace

Scorer::Scorer(StepRunner& runner, std::span<const std::vector<int32_t>> documents, const ScoreOptions& options)
    : runner_(runner), documents_(documents),
      rows_(std::max(kLeastRows, std::min(options.rows, options.logit_bytes / (4 * std::max<int64_t>(runner.traits().vocab, 1))))),
      states_(runner, PrefixCache::kOff) {}

base::Status Scorer::CheckDocument(size_t index) const {
  const std::vector<int32_t>& ids = documents_[index];
  const ModelTraits& traits = runner_.traits();
  const int64_t n = static_cast<int64_t>(ids.size());
  if (n > traits.max_positions)
    return base::Fail(base::ErrorCode::kInvalidArgument, "document ", index, " has ", n, " tokens, the model takes ", traits.max_positions);
  if (traits.state.BlocksFor(n) > traits.state.blocks && traits.state.paged)
    return base::Fail(base::ErrorCode::kInvalidArgument, "document ", index, " has ", n, " tokens, the KV cache holds ", traits.state.blocks * traits.state.block_tokens);
  for (const int32_t t : ids)
    if (t < 0 || t >= traits.vocab)
      return base::Fail(base::ErrorCode::kInvalidArgument, "document ", index, " holds token ", t, ", the vocabulary is [0, ", traits.vocab, ")");
  return {};
}

// Opens documents while the step has rows for them and the cache holds them whole beside the ones that are open.
base::Status Scorer::OpenMore() {
  int64_t rows = 0;
  for (const Open& o : open_) rows += static_cast<int64_t>(documents_[o.document].size()) - o.state.tokens;
  for (; next_document_ < documents_.size() && rows < rows_; ++next_document_) {
    const std::vector<int32_t>& ids = documents_[next_document_];
    if (ids.empty()) continue;
    HB_RETURN_IF_ERROR(CheckDocument(next_document_));
    const int64_t blocks = states_.geometry().BlocksFor(static_cast<int64_t>(ids.size()));
    if (!open_.empty() && reserved_blocks_ + blocks > states_.geometry().blocks) break;
    Open o{next_document_, {}};
    HB_ASSIGN_OR_RETURN(const bool opened, states_.Open(o.state, ids));
    if (!opened) break;
    reserved_blocks_ += blocks;
    rows += static_cast<int64_t>(ids.size());
    open_.push_back(std::move(o));
  }
  return {};
}

void Scorer::AddRows(Open& open) {
  const std::vector<int32_t>& ids = documents_[open.document];
  const int64_t begin = open.state.tokens, first_row = static_cast<int64_t>(tokens_.size()), size = static_cast<int64_t>(ids.size());
  int64_t end = std::min(size, begin + rows_ - first_row);
  if (states_.geometry().fixed && end < size) end = end / kLeastRows * kLeastRows;
  if (end <= begin) return;
  const bool reserved = states_.Reserve(open.state, end);
  HB_CHECK(reserved, "the document was opened because it fits");
  tokens_.insert(tokens_.end(), ids.begin() + begin, ids.begin() + end);
  sequences_.push_back({first_row, end - begin, begin, open.state.blocks.data(), open.state.slot});
  pieces_.push_back({open.document, begin, {}});
}

base::Result<std::span<const ScoredRows>> Scorer::Next() {
  tokens_.clear();
  sequences_.clear();
  pieces_.clear();
  HB_RETURN_IF_ERROR(OpenMore());
  for (Open& o : open_) AddRows(o);
  if (pieces_.empty()) return pieces_;
  std::vector<int64_t> every_row(tokens_.size());
  std::iota(every_row.begin(), every_row.end(), 0);
  HB_ASSIGN_OR_RETURN(const kernels::Matrix logits, runner_.Run({tokens_, sequences_, static_cast<int64_t>(tokens_.size()), every_row}));
  // The oldest documents come first in both lists, and only they may have got no rows.
  for (size_t i = 0, o = 0; i < pieces_.size(); ++i) {
    while (open_[o].document != pieces_[i].document) ++o;
    const kernels::SequenceRows& s = sequences_[i];
    pieces_[i].logits = logits.Rows(s.first_row, s.first_row + s.rows);
    states_.Advance(open_[o].state, s.first_position + s.rows, documents_[open_[o].document], s.first_position + s.rows);
  }
  std::erase_if(open_, [this](Open& o) {
    const int64_t size = static_cast<int64_t>(documents_[o.document].size());
    if (o.state.tokens < size) return false;
    reserved_blocks_ -= states_.geometry().BlocksFor(size);
    states_.Close(o.state);
    return true;
  });
  return pieces_;
}

}  // namespace halfbyte::engine
