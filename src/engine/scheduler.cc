#include "engine/scheduler.h"

#include <algorithm>

#include "base/check.h"

namespace halfbyte::engine {
namespace {

constexpr int64_t kRecurrentChunk = 64;  // prompt chunks of models with a fixed-size state end at multiples of it (design section 5)

Event At(Clock::time_point now) {
  Event event;
  event.time = now;
  return event;
}

template <typename T>
bool Contains(const std::vector<T>& v, T x) { return std::find(v.begin(), v.end(), x) != v.end(); }

}  // namespace

Scheduler::Scheduler(const SchedulerOptions& options, const ModelTraits& traits, SequenceStates& states) : options_(options), traits_(traits), states_(states) {
  const StateGeometry& g = states_.geometry();
  HB_CHECK(options_.max_batch > 0 && options_.prefill_rows > 0, "max_batch ", options_.max_batch, ", prefill_rows ", options_.prefill_rows);
  if (g.fixed) {
    options_.prefill_rows = std::max(options_.prefill_rows, kRecurrentChunk);
    options_.max_batch = std::min(options_.max_batch, g.slots);
  }
  options_.logit_rows = std::max(options_.logit_rows, g.fixed ? options_.max_batch + kRecurrentChunk : options_.max_batch + 1);
  max_length_ = traits_.max_positions;
  if (options_.max_length > 0) max_length_ = std::min(max_length_, options_.max_length);
  // The last token of an answer needs no state, so one more token than the pool holds is possible; a model whose widest
  // window is short reuses its blocks and is not bound by the pool at all.
  if (g.paged && Held(max_length_) > g.blocks) max_length_ = g.blocks * g.block_tokens;
}

// Blocks that a sequence of so many tokens owns at most, its last chunk included.
int64_t Scheduler::Held(int64_t tokens) const {
  const StateGeometry& g = states_.geometry();
  const int64_t all = g.BlocksFor(tokens);
  return g.window > 0 ? std::min(all, g.BlocksFor(g.window + options_.prefill_rows) + 1) : all;
}

base::Status Scheduler::Check(const Request& r) const {
  const auto invalid = [](auto&&... parts) { return base::Fail(base::ErrorCode::kInvalidArgument, parts...); };
  if (r.prompt.empty()) return invalid("the prompt has no tokens");
  for (const int32_t t : r.prompt)
    if (t < 0 || t >= traits_.vocab) return invalid("the prompt holds token ", t, ", the vocabulary is [0, ", traits_.vocab, ")");
  for (const int32_t t : r.stop_ids)
    if (t < 0 || t >= traits_.vocab) return invalid("stop id ", t, ", the vocabulary is [0, ", traits_.vocab, ")");
  if (r.max_tokens && *r.max_tokens < 0) return invalid("max_tokens is ", *r.max_tokens);
  if (r.min_tokens < 0 || (r.max_tokens && r.min_tokens > *r.max_tokens)) return invalid("min_tokens is ", r.min_tokens, ", it must be in [0, max_tokens]");
  if (r.prompt_logprobs < -1 || r.prompt_logprobs > traits_.vocab) return invalid("prompt_logprobs is ", r.prompt_logprobs);
  const int64_t prompt = static_cast<int64_t>(r.prompt.size());
  const int64_t answer = r.max_tokens && *r.max_tokens == 0 ? 0 : 1;
  if (prompt + answer > max_length_) return invalid("the prompt has ", prompt, " tokens; with the answer at most ", max_length_, " fit");
  return Validate(r.sampling, traits_.vocab);
}

base::Status Scheduler::Add(RequestId id, Request request) {
  HB_RETURN_IF_ERROR(Check(request));
  if (waiting() >= options_.max_queue) return base::Fail(base::ErrorCode::kUnavailable, "the queue is full: ", waiting(), " requests wait");
  auto sequence = std::make_unique<Sequence>();
  Sequence& s = *sequence;
  s.id = id;
  s.arrival = next_arrival_++;
  s.tokens = request.prompt;
  const int64_t room = max_length_ - static_cast<int64_t>(request.prompt.size());
  s.max_generated = std::min(request.max_tokens.value_or(room), room);
  s.end_tokens = request.stop_ids;
  if (!request.ignore_eos) s.end_tokens.insert(s.end_tokens.end(), traits_.eos.begin(), traits_.eos.end());
  if (HasPenalties(request.sampling)) s.history.AddPrompt(request.prompt);
  s.request = std::move(request);
  const bool is_new = sequences_.emplace(id, std::move(sequence)).second;
  HB_CHECK(is_new, "request ", id, " was added twice");
  waiting_.emplace(s.arrival, &s);
  return {};
}

void Scheduler::End(Sequence& s, Event event, FinishReason reason, bool end_token, std::optional<base::Error> error) {
  states_.Close(s.state);
  running_.erase(s.arrival);
  waiting_.erase(s.arrival);
  ++counters_.finished[static_cast<size_t>(reason)];
  event.request = s.id;
  event.finish = Finish{reason, end_token, s.usage(), std::move(error)};
  const auto node = sequences_.extract(s.id);
  if (s.request.on_event) s.request.on_event(std::move(event));
}

bool Scheduler::Cancel(RequestId id, std::optional<base::Error> why) {
  const auto it = sequences_.find(id);
  if (it == sequences_.end()) return false;
  End(*it->second, At(Clock::now()), FinishReason::kAbort, false, std::move(why));
  return true;
}

void Scheduler::CancelAll(const base::Error& why) {
  while (!sequences_.empty()) End(*sequences_.begin()->second, At(Clock::now()), FinishReason::kAbort, false, why);
}

void Scheduler::Expire(Clock::time_point now) {
  std::vector<RequestId> late;
  for (const auto& [id, s] : sequences_)
    if (s->request.deadline && *s->request.deadline <= now) late.push_back(id);
  for (const RequestId id : late) Cancel(id, base::Error(base::ErrorCode::kUnavailable, "the request ran out of time"));
}

// Whether the next in the queue can start without taking blocks that the running ones are about to need: those that their prompts still lack,
// and one each to grow into. Otherwise admissions and preemptions would chase each other.
bool Scheduler::Fits(const Sequence& s) const {
  if (running() >= options_.max_batch) return false;
  if (running_.empty()) return true;
  if (states_.geometry().fixed && states_.free_slots() == 0) return false;
  int64_t needed = Held(static_cast<int64_t>(s.tokens.size())) - states_.Shared(s.request.prompt);
  const int64_t most = Held(max_length_);
  for (const auto& [arrival, other] : running_) needed += 1 + std::min(states_.Missing(other->state, static_cast<int64_t>(other->tokens.size())), most);
  return needed <= states_.pool().available();
}

void Scheduler::Admit() {
  // Those that were preempted are older than those that never started, so the first decides.
  while (!waiting_.empty() && Fits(*waiting_.begin()->second)) {
    Sequence& s = *waiting_.begin()->second;
    if (held_ && !s.admitted_before) return;
    // Generated tokens may be looked up too where their blocks are shared.
    const bool all = states_.mode() == PrefixCache::kGenerated;
    const auto opened = states_.Open(s.state, all ? s.tokens : s.request.prompt, s.request.prompt_logprobs < 0);
    if (!opened) { Fail(s, opened.error(), Clock::now()); continue; }
    if (!*opened) return;
    if (!s.admitted_before) s.cached_tokens = s.state.tokens;
    counters_.cached_tokens += s.state.tokens;
    s.admitted_before = s.running = true;
    waiting_.erase(s.arrival);
    running_.emplace(s.arrival, &s);
  }
}

void Scheduler::Preempt(Sequence& s) {
  states_.Close(s.state);
  s.running = false;
  running_.erase(s.arrival);
  waiting_.emplace(s.arrival, &s);
  ++counters_.preemptions;
}

// Reserves positions [0, tokens), at the cost of younger sequences that have no rows in this step yet.
bool Scheduler::MakeRoom(Sequence& s, int64_t tokens) {
  while (!states_.Reserve(s.state, tokens)) {
    Sequence* victim = nullptr;
    for (auto it = running_.rbegin(); it != running_.rend() && it->first > s.arrival; ++it) {
      const bool planned = std::any_of(plan_.begin(), plan_.end(), [&](const Work& w) { return w.sequence == it->second; });
      if (!planned) { victim = it->second; break; }
    }
    if (!victim) return false;
    Preempt(*victim);
  }
  return true;
}

const std::vector<Work>& Scheduler::Plan(Clock::time_point now) {
  Expire(now);
  plan_.clear();
  prefill_left_ = options_.prefill_rows;
  logits_left_ = options_.logit_rows;
  PlanDecode();
  Admit();
  PlanPrefill();
  std::sort(plan_.begin(), plan_.end(), [](const Work& a, const Work& b) { return a.prompt != b.prompt ? a.prompt : a.sequence->arrival < b.sequence->arrival; });
  for (const Work& w : plan_) (w.prompt ? counters_.prompt_rows : counters_.generated_rows) += w.end - w.begin;
  HB_CHECK(!plan_.empty() || idle() || (held_ && quiet()), "requests wait and nothing can run");
  return plan_;
}

void Scheduler::PlanDecode() {
  // From the oldest on: those whose memory is taken are younger and come later in the map, or are gone from it.
  for (auto it = running_.begin(); it != running_.end();) {
    Sequence& s = *it->second;
    if (!s.decoding()) { ++it; continue; }
    if (MakeRoom(s, static_cast<int64_t>(s.tokens.size()))) {
      plan_.push_back({&s, s.state.tokens, static_cast<int64_t>(s.tokens.size()), false, false, true});
      --logits_left_;
      ++it;
    } else {
      // Everything younger is gone already: this one is the youngest and gives way itself.
      ++it;
      Preempt(s);
    }
  }
}

void Scheduler::PlanPrefill() {
  std::vector<Sequence*> order;
  for (const auto& [arrival, s] : running_)
    if (!s->decoding()) order.push_back(s);
  if (order.empty()) return;
  // The oldest: all rows but what shorter ones want of the second half.
  Sequence& oldest = *order.front();
  std::sort(order.begin() + 1, order.end(), [](const Sequence* a, const Sequence* b) {
    return a->pending() != b->pending() ? a->pending() < b->pending() : a->arrival < b->arrival;
  });
  int64_t shorter = 0;
  for (size_t i = 1; i < order.size() && order[i]->pending() < oldest.pending(); ++i) shorter += order[i]->pending();
  PlanRows(oldest, prefill_left_ - std::min(prefill_left_ / 2, shorter));
  for (size_t i = 1; i < order.size() && prefill_left_ > 0; ++i)
    if (order[i]->running) PlanRows(*order[i], prefill_left_);
}

// Up to `rows` rows of a sequence that catches up, of one class.
void Scheduler::PlanRows(Sequence& s, int64_t rows) {
  const int64_t begin = s.state.tokens, total = static_cast<int64_t>(s.tokens.size());
  const bool prompt = begin < s.prompt_tokens();
  const bool all_logits = prompt && s.request.prompt_logprobs >= 0 && begin >= s.reported_rows;
  // After a preemption the rows reported before are run again up to where they ended, without their logits.
  const bool again = prompt && s.request.prompt_logprobs >= 0 && !all_logits;
  const int64_t stop = again ? s.reported_rows : prompt ? s.prompt_tokens() : total;
  const bool recurrent = states_.geometry().fixed && prompt;
  if (recurrent) rows = std::max(rows, std::min(kRecurrentChunk, prefill_left_));
  if (all_logits) rows = std::min(rows, logits_left_);
  int64_t end = std::min(begin + rows, stop);
  if (recurrent && end < stop) end = end / kRecurrentChunk * kRecurrentChunk;
  if (end <= begin || logits_left_ <= 0 || !MakeRoom(s, end)) return;
  const Work work{&s, begin, end, prompt, all_logits, end == total};
  plan_.push_back(work);
  prefill_left_ -= end - begin;
  logits_left_ -= all_logits ? end - begin : (work.wants_last() ? 1 : 0);
}

void Scheduler::Advance(const Work& work) {
  Sequence& s = *work.sequence;
  if (work.all_logits) s.reported_rows = work.end;
  states_.Advance(s.state, work.end, s.tokens, s.prompt_tokens());
}

void Scheduler::Append(Sequence& s, int32_t token, std::optional<PositionLogprobs> logprobs, Clock::time_point now) {
  s.tokens.push_back(token);
  if (HasPenalties(s.request.sampling)) s.history.AddGenerated(token);
  if (s.request.constraint) s.request.constraint->Accept(token);
  Event event = At(now);
  event.request = s.id;
  event.token = token;
  event.logprobs = std::move(logprobs);
  if (Contains(s.end_tokens, token)) return End(s, std::move(event), FinishReason::kStop, true, std::nullopt);
  if (s.generated() >= s.max_generated) return End(s, std::move(event), FinishReason::kLength, false, std::nullopt);
  if (s.request.on_event) s.request.on_event(std::move(event));
}

void Scheduler::Fail(Sequence& s, base::Error error, Clock::time_point now) {
  End(s, At(now), FinishReason::kError, false, std::move(error));
}

void Scheduler::EndWithoutTokens(Sequence& s, Clock::time_point now) {
  End(s, At(now), FinishReason::kLength, false, std::nullopt);
}

bool Scheduler::quiet() const {
  return running_.empty() && std::none_of(waiting_.begin(), waiting_.end(), [](const auto& entry) { return entry.second->admitted_before; });
}

void Scheduler::ForgetStates() {
  while (!running_.empty()) Preempt(*running_.begin()->second);
  states_.Forget();
}

}  // namespace halfbyte::engine
