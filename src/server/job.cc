#include "server/job.h"

#include <algorithm>
#include <iterator>

#include "server/api_error.h"

namespace halfbyte::server {

namespace {
constexpr size_t kMaxSequences = 2048;  // of one request; each costs some kilobytes before it is even queued
// Events of a turn on the worker. Where text is slower than the model (many logprobs), a job's events pile up; taken whole they would make everybody's wait grow with
// the pile. An event with 20 logprobs takes about 0.1 ms.
constexpr size_t kTurn = 64;
}  // namespace

std::string SseEvent(const base::Json& json) { return base::StrCat("data: ", json.Dump(), "\n\n"); }

Job::Job(Context& context, std::shared_ptr<Exchange> exchange, JobPlan plan, std::unique_ptr<Dialect> dialect)
    : context_(context), exchange_(std::move(exchange)), plan_(std::move(plan)), dialect_(std::move(dialect)) {
  const size_t choices = plan_.prompts.size() * static_cast<size_t>(plan_.n);
  for (size_t i = 0; i < choices; ++i)
    running_.push_back({Choice(static_cast<int>(i), context_.tokenizer ? &*context_.tokenizer : nullptr, plan_.choice), {}, false, {}, {}});
  unfinished_ = choices;
}

Job::~Job() {
  std::lock_guard lock(context_.mutex);
  auto it = context_.jobs.find(plan_.id);
  if (it != context_.jobs.end() && it->second.expired()) context_.jobs.erase(it);
}

void Job::Start(Context& context, std::shared_ptr<Exchange> exchange, JobPlan plan, std::unique_ptr<Dialect> dialect) {
  if (plan.prompts.size() * static_cast<size_t>(plan.n) > kMaxSequences)
    return exchange->Send(ErrorResponse({400, base::StrCat("n: ", plan.prompts.size(), " prompts times n make more than ", kMaxSequences, " sequences"), "n", "invalid_value"}));
  std::shared_ptr<Job> job(new Job(context, std::move(exchange), std::move(plan), std::move(dialect)));
  {
    std::lock_guard lock(context.mutex);
    context.jobs[job->plan_.id] = job;
  }
  std::weak_ptr<Job> weak = job;
  job->exchange_->WhenGone([weak, &context] {
    if (auto job = weak.lock()) {
      job->Cancel();
      context.metrics.ClientGone();  // after it: once a hang-up is counted, its sequences end before the next step
    }
  });
  job->Submit();
}

void Job::Submit() {
  {
    std::lock_guard lock(context_.mutex);
    if (!context_.released.empty()) return exchange_->Send(ErrorResponse({503, "the model's memory is released (/resume_memory_occupation)", "", "memory_released"}));
  }
  if (context_.options.request_timeout > 0)
    plan_.request.deadline = start_ + std::chrono::duration_cast<engine::Clock::duration>(std::chrono::duration<double>(context_.options.request_timeout));
  std::optional<base::Error> error;
  for (size_t i = 0; i < running_.size() && !error; ++i) {
    engine::Request request = plan_.request;
    request.prompt = plan_.prompts[i / static_cast<size_t>(plan_.n)];
    request.sampling.stream = i;
    request.on_event = [self = shared_from_this(), i](engine::Event&& event) { self->OnEvent(static_cast<int>(i), std::move(event)); };
    auto id = context_.engine->Submit(std::move(request));
    if (!id) {
      error = id.error();
      break;
    }
    bool cancelled;
    {
      std::lock_guard lock(mutex_);
      ids_.push_back(*id);
      cancelled = cancelled_;
    }
    if (cancelled) context_.engine->Cancel(*id);
  }
  if (error) {
    Cancel();
    exchange_->Send(ErrorResponse(FromError(*error)));
    return;  // scheduled_ stays: nobody reads the events of the others
  }
  context_.texts.Post([self = shared_from_this()] { self->Drain(); });
}

void Job::Cancel() {
  std::vector<engine::RequestId> ids;
  {
    std::lock_guard lock(mutex_);
    cancelled_ = true;
    ids = ids_;
  }
  for (engine::RequestId id : ids) context_.engine->Cancel(id);
}

void Job::OnEvent(int choice, engine::Event&& event) {
  bool post;
  {
    std::lock_guard lock(mutex_);
    inbox_.push_back({choice, std::move(event)});
    post = !scheduled_;
    scheduled_ = true;
  }
  if (post) context_.texts.Post([self = shared_from_this()] { self->Drain(); });
}

// One turn: what comes after it is left for the next, so that a job that is as fast as the model does not keep the worker from the others.
void Job::Drain() {
  std::vector<Item> items;
  {
    std::lock_guard lock(mutex_);
    const auto end = inbox_.begin() + static_cast<std::ptrdiff_t>(std::min(kTurn, inbox_.size()));
    items.assign(std::make_move_iterator(inbox_.begin()), std::make_move_iterator(end));
    inbox_.erase(inbox_.begin(), end);
  }
  std::string out;
  for (Item& item : items) Handle(item, out);
  if (!out.empty()) {
    if (!exchange_->begun()) exchange_->Begin({200, "text/event-stream; charset=utf-8", "", {{"cache-control", "no-cache"}, {"x-accel-buffering", "no"}, {"x-request-id", plan_.id}}});
    exchange_->Write(std::move(out));
  }
  if (unfinished_ == 0) exchange_->End();
  {
    std::lock_guard lock(mutex_);
    scheduled_ = !inbox_.empty();
    if (!scheduled_) return;
  }
  if (!context_.texts.Post([self = shared_from_this()] { self->Drain(); })) Drain();  // no more turns are given: the server is stopping
}

void Job::Handle(Item& item, std::string& out) {
  Running& r = running_[static_cast<size_t>(item.choice)];
  engine::Event& e = item.event;
  for (engine::PositionLogprobs& p : e.prompt_logprobs) r.prompt_logprobs.push_back(std::move(p));
  if (e.token) {
    const double since = std::chrono::duration<double>(e.time - (r.choice.tokens() ? r.last : start_)).count();
    if (r.choice.tokens()) context_.metrics.InterTokenLatency(since);
    else context_.metrics.TimeToFirstToken(since);
    r.last = e.time;
    const bool end = e.finish && e.finish->end_token;
    Piece piece = r.choice.Push(*e.token, std::move(e.logprobs), end);
    r.usage.completion = r.choice.tokens();
    if (r.choice.stopped() && !e.finish) context_.engine->Cancel(e.request);
    Emit(r, std::move(piece), out);
  }
  if (e.finish) End(r, *e.finish, out);
}

void Job::Emit(Running& r, Piece piece, std::string& out) {
  if (failed_ || piece.empty() || exchange_->gone()) return;
  if (!r.prompt_told) {
    r.prompt_told = true;
    if (plan_.request.prompt_logprobs >= 0) dialect_->Prompt(piece.index, std::move(r.prompt_logprobs));
  }
  out += dialect_->Take(std::move(piece), r.usage);
}

void Job::End(Running& r, engine::Finish& finish, std::string& out) {
  r.usage.prompt = finish.usage.prompt_tokens;
  r.usage.cached = finish.usage.cached_tokens;
  finish.usage.completion_tokens = r.usage.completion;
  const bool stopped = r.choice.stopped();
  if (!stopped && finish.error) {
    const bool late = plan_.request.deadline && engine::Clock::now() >= *plan_.request.deadline;
    Fail(late ? ApiError{504, "the request ran out of time (--request-timeout)", "", "timeout"} : FromError(*finish.error), out);
  }
  Emit(r, r.choice.Finish(engine::FinishReasonName(finish.reason)), out);
  context_.metrics.Finished(finish, stopped ? "stop" : engine::FinishReasonName(finish.reason), std::chrono::duration<double>(engine::Clock::now() - start_).count());
  if (--unfinished_ == 0) Complete(out);
}

void Job::Complete(std::string& out) {
  if (failed_) return;
  TokenUsage usage;
  for (size_t i = 0; i < running_.size(); ++i) {
    usage.completion += running_[i].usage.completion;
    if (i % static_cast<size_t>(plan_.n)) continue;  // the choices of one prompt share it
    usage.prompt += running_[i].usage.prompt;
    usage.cached += running_[i].usage.cached;
  }
  if (plan_.stream) {
    out += dialect_->Tail(usage);
    return;
  }
  HttpResponse response;
  response.body = dialect_->Whole(usage).Dump();
  response.headers.emplace_back("x-request-id", plan_.id);
  exchange_->Send(std::move(response));
}

// Before anything was sent: an answer with its status. In a stream: an event with the error, then the end.
void Job::Fail(const ApiError& error, std::string& out) {
  if (failed_) return;
  failed_ = true;
  Cancel();
  if (!exchange_->begun() && out.empty()) {
    exchange_->Send(ErrorResponse(error));
    return;
  }
  out += SseEvent(ErrorJson(error));
  out += kSseDone;
}

}  // namespace halfbyte::server
