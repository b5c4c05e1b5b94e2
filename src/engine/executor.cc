#include "engine/executor.h"

#include "base/check.h"
#include "base/log.h"
#include "platform/parallel.h"

namespace halfbyte::engine {
namespace {

double SecondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

}  // namespace

void Executor::Assemble() {
  tokens_.clear();
  sequences_.clear();
  logit_rows_.clear();
  readings_.clear();
  prompt_rows_ = 0;
  for (size_t w = 0; w < plan_.size(); ++w) {
    const Work& work = plan_[w];
    const Sequence& s = *work.sequence;
    const int64_t first_row = static_cast<int64_t>(tokens_.size());
    sequences_.push_back({first_row, work.end - work.begin, work.begin, s.state.blocks.data(), s.state.slot});
    tokens_.insert(tokens_.end(), s.tokens.begin() + work.begin, s.tokens.begin() + work.end);
    if (work.prompt) prompt_rows_ = static_cast<int64_t>(tokens_.size());
    for (int64_t p = work.begin; p < work.end; ++p) {
      const bool at_end = p + 1 == static_cast<int64_t>(s.tokens.size());
      const bool sample = at_end && work.samples();
      const bool prompt = work.all_logits && p + 1 < s.prompt_tokens();
      if (!sample && !prompt) continue;
      logit_rows_.push_back(first_row + p - work.begin);
      readings_.push_back({w, p, sample, Sampled{}, PositionLogprobs{}});
    }
  }
}

// Runs in parallel with the reading of other rows.
void Executor::ReadRow(const Work& work, std::span<const float> logits, Reading& reading) const {
  const Sequence& s = *work.sequence;
  if (!reading.sample) {
    reading.prompt = ComputeLogprobs(logits, s.tokens[static_cast<size_t>(reading.position) + 1], s.request.prompt_logprobs);
    return;
  }
  thread_local Sampler sampler;
  SampleInput input{logits, &s.request.sampling, &s.history, {}, {}, static_cast<uint64_t>(s.generated())};
  if (s.generated() < s.request.min_tokens) input.forbidden = s.end_tokens;
  if (s.request.constraint) input.allowed = s.request.constraint->Allowed();
  reading.sampled = sampler.Sample(input);
}

void Executor::Deliver() {
  const Clock::time_point now = Clock::now();
  size_t r = 0;
  for (size_t w = 0; w < plan_.size(); ++w) {
    const Work& work = plan_[w];
    Sequence& s = *work.sequence;
    Event prompt_event;
    const base::Error* error = nullptr;
    Reading* sample = nullptr;
    for (; r < readings_.size() && readings_[r].work == w; ++r) {
      Reading& reading = readings_[r];
      if (reading.sample) sample = &reading;
      if (reading.sample ? !reading.sampled : !reading.prompt) {
        if (!error) error = reading.sample ? &reading.sampled.error() : &reading.prompt.error();
      } else if (!reading.sample) {
        prompt_event.prompt_logprobs.push_back(std::move(*reading.prompt));
      }
    }
    if (error) {
      if (error->code() == base::ErrorCode::kInternal) {
        ++counters_.broken_rows;
        scheduler_.DistrustCache();
      }
      scheduler_.Fail(s, *error, now);
      continue;
    }
    scheduler_.Advance(work);
    if (!prompt_event.prompt_logprobs.empty() && s.request.on_event) {
      prompt_event.request = s.id;
      prompt_event.time = now;
      s.request.on_event(std::move(prompt_event));
    }
    if (sample) {
      ++counters_.sampled_tokens;
      scheduler_.Append(s, sample->sampled->token, std::move(sample->sampled->logprobs), now);
    } else if (work.last) {
      scheduler_.EndWithoutTokens(s, now);
    }
  }
}

bool Executor::Prepare() {
  plan_ = scheduler_.Plan(Clock::now());
  return !plan_.empty();
}

void Executor::Execute() {
  Assemble();
  const Clock::time_point start = Clock::now();
  const auto logits = runner_.Run({tokens_, sequences_, prompt_rows_, logit_rows_});
  ++counters_.steps;
  counters_.run_seconds += SecondsSince(start);
  if (!logits) {
    ++counters_.failed_steps;
    base::LogError("a step of ", tokens_.size(), " rows failed: ", logits.error().ToString());
    for (const Work& work : plan_) scheduler_.Fail(*work.sequence, logits.error(), Clock::now());
    return;
  }
  HB_CHECK(logits->rows == static_cast<int64_t>(logit_rows_.size()), logits->rows, " rows of logits for ", logit_rows_.size());
  const Clock::time_point sampling = Clock::now();
  platform::ParallelFor(static_cast<int64_t>(readings_.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      Reading& reading = readings_[static_cast<size_t>(i)];
      ReadRow(plan_[reading.work], {logits->row<float>(i), static_cast<size_t>(logits->cols)}, reading);
    }
  });
  counters_.sample_seconds += SecondsSince(sampling);
  Deliver();
}

}  // namespace halfbyte::engine
