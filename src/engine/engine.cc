#include "engine/engine.h"

#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <thread>

#include "base/log.h"

namespace halfbyte::engine {

// What the threads share. Callers leave messages; the engine's thread takes all of them between two steps, in order.
struct Engine::Shared {
  struct Add { RequestId id; Request request; };
  struct Drop { RequestId id; };
  struct Call {
    std::function<void(Shared&)> work;
    bool when_quiet;  // after the started requests have finished; no other request starts before
    std::shared_ptr<std::promise<bool>> done;
  };
  using Message = std::variant<Add, Drop, Call>;

  Shared(std::unique_ptr<StepRunner> r, const EngineOptions& o)
      : options(o), runner(std::move(r)), states(*runner, o.prefix_cache),
        scheduler({.max_batch = o.max_batch, .prefill_rows = o.prefill_chunk, .logit_rows = LogitRows(runner->traits().vocab), .max_length = o.max_model_len, .max_queue = o.max_queue},
                  runner->traits(), states),
        executor(*runner, scheduler) {}

  // Logits of one step take at most 128 MiB beyond those of the decode rows.
  static int64_t LogitRows(int64_t vocab) { return std::max<int64_t>(1, (int64_t{128} << 20) / (4 * std::max<int64_t>(vocab, 1))); }

  void Run();
  void Take(Message&& message);
  void RunQuietCalls();
  void Publish();
  bool Ask(std::function<void(Shared&)> work, bool when_quiet);

  const EngineOptions options;
  const std::unique_ptr<StepRunner> runner;
  SequenceStates states;  // from here on: the engine's thread only
  Scheduler scheduler;
  Executor executor;
  std::vector<Call> quiet_calls;
  bool paused = false;

  std::mutex mutex;
  std::condition_variable wake;
  std::deque<Message> inbox;         // guarded
  int64_t inbox_requests = 0;        // guarded; Add messages among them
  RequestId next_id = 1;             // guarded
  bool stopping = false;             // guarded
  EngineMetrics metrics;             // guarded; as of the last step
  std::thread thread;
};

void Engine::Shared::Take(Message&& message) {
  if (auto* add = std::get_if<Add>(&message)) {
    auto on_event = add->request.on_event;
    if (const auto added = scheduler.Add(add->id, std::move(add->request)); !added && on_event) {
      // The queue filled up between Submit's look at it and now.
      Event event;
      event.request = add->id;
      event.time = Clock::now();
      event.finish = Finish{FinishReason::kAbort, false, {}, added.error()};
      on_event(std::move(event));
    }
  } else if (auto* drop = std::get_if<Drop>(&message)) {
    scheduler.Cancel(drop->id);
  } else {
    auto& call = std::get<Call>(message);
    if (call.when_quiet) return quiet_calls.push_back(std::move(call));
    call.work(*this);
    call.done->set_value(true);
  }
}

void Engine::Shared::RunQuietCalls() {
  scheduler.Hold(paused || !quiet_calls.empty());
  if (quiet_calls.empty() || !scheduler.quiet()) return;
  for (Call& call : quiet_calls) {
    call.work(*this);
    call.done->set_value(true);
  }
  quiet_calls.clear();
  scheduler.Hold(paused);
}

void Engine::Shared::Publish() {
  const BlockPool& pool = states.pool();
  std::lock_guard lock(mutex);
  metrics = {scheduler.running(), scheduler.waiting(), pool.blocks(), pool.owned(), pool.cached(), states.geometry().block_tokens, scheduler.counters(), executor.counters()};
}

void Engine::Shared::Run() {
  for (bool more = false;;) {
    std::deque<Message> messages;
    {
      std::unique_lock lock(mutex);
      const auto news = [this] { return stopping || !inbox.empty(); };
      if (!more && scheduler.idle()) wake.wait(lock, news);
      else if (!more) wake.wait_for(lock, std::chrono::milliseconds(50), news);  // paused: deadlines pass all the same
      if (stopping) break;
      messages.swap(inbox);
      metrics.waiting += inbox_requests;
      inbox_requests = 0;
    }
    for (Message& m : messages) Take(std::move(m));
    RunQuietCalls();
    more = executor.Prepare();
    if (more) {
      Publish();  // who runs and who waits is known now, and a step may take long
      executor.Execute();
    }
    Publish();
    more |= !quiet_calls.empty();
  }
  scheduler.CancelAll(base::Error(base::ErrorCode::kCancelled, "the engine is shutting down"));
  // Nobody may wait for ever: messages that came in last are answered too.
  std::deque<Message> rest;
  {
    std::lock_guard lock(mutex);
    rest.swap(inbox);
  }
  for (Message& m : rest) Take(std::move(m));
  for (Call& call : quiet_calls) call.done->set_value(false);
  scheduler.CancelAll(base::Error(base::ErrorCode::kCancelled, "the engine is shutting down"));
  Publish();
}

Engine::Engine() = default;

std::unique_ptr<Engine> Engine::Create(std::unique_ptr<StepRunner> runner, const EngineOptions& options) {
  std::unique_ptr<Engine> engine(new Engine);
  engine->shared_ = std::make_unique<Shared>(std::move(runner), options);
  engine->shared_->Publish();
  engine->shared_->thread = std::thread([shared = engine->shared_.get()] { shared->Run(); });
  return engine;
}

Engine::~Engine() {
  {
    std::lock_guard lock(shared_->mutex);
    shared_->stopping = true;
  }
  shared_->wake.notify_one();
  shared_->thread.join();
}

const ModelTraits& Engine::traits() const { return shared_->runner->traits(); }
int64_t Engine::max_length() const { return shared_->scheduler.max_length(); }

base::Result<RequestId> Engine::Submit(Request request) {
  HB_RETURN_IF_ERROR(shared_->scheduler.Check(request));
  RequestId id;
  {
    std::lock_guard lock(shared_->mutex);
    if (shared_->stopping) return base::Fail(base::ErrorCode::kUnavailable, "the engine is shutting down");
    const int64_t waiting = shared_->metrics.waiting + shared_->inbox_requests;
    if (waiting >= shared_->options.max_queue) return base::Fail(base::ErrorCode::kUnavailable, "the queue is full: ", waiting, " requests wait");
    id = shared_->next_id++;
    shared_->inbox.push_back(Shared::Add{id, std::move(request)});
    ++shared_->inbox_requests;
  }
  shared_->wake.notify_one();
  return id;
}

void Engine::Cancel(RequestId id) {
  {
    std::lock_guard lock(shared_->mutex);
    if (shared_->stopping) return;
    shared_->inbox.push_back(Shared::Drop{id});
  }
  shared_->wake.notify_one();
}

base::Result<Generation> Engine::Generate(Request request, const std::function<bool(int32_t)>& on_token) {
  Generation result;
  // Shared, because the engine's thread may still be inside set_value when this one has seen the value and returns.
  const auto done = std::make_shared<std::promise<void>>();
  bool enough = false;
  const Clock::time_point start = Clock::now();
  request.on_event = [&, done](Event&& event) {
    for (PositionLogprobs& p : event.prompt_logprobs) result.prompt_logprobs.push_back(std::move(p));
    if (event.token && !enough) {
      if (result.tokens.empty()) result.first_token_seconds = std::chrono::duration<double>(event.time - start).count();
      result.tokens.push_back(*event.token);
      if (event.logprobs) result.logprobs.push_back(std::move(*event.logprobs));
      if (on_token && !on_token(*event.token) && !event.finish) {
        enough = true;
        Cancel(event.request);
      }
    }
    if (!event.finish) return;
    result.finish = std::move(*event.finish);
    result.total_seconds = std::chrono::duration<double>(event.time - start).count();
    done->set_value();
  };
  std::future<void> finished = done->get_future();
  HB_RETURN_IF_ERROR(Submit(std::move(request)));
  finished.wait();
  if (enough) {
    result.finish.reason = FinishReason::kStop;
    result.finish.error.reset();
  }
  result.finish.usage.completion_tokens = static_cast<int64_t>(result.tokens.size());
  return result;
}

// Leaves work for the engine's thread and waits until it is done; false where the engine stops first.
bool Engine::Shared::Ask(std::function<void(Shared&)> work, bool when_quiet) {
  const auto done = std::make_shared<std::promise<bool>>();
  std::future<bool> finished = done->get_future();
  {
    std::lock_guard lock(mutex);
    if (stopping) return false;
    inbox.push_back(Call{std::move(work), when_quiet, done});
  }
  wake.notify_one();
  return finished.get();
}

void Engine::BetweenSteps(const std::function<void()>& work) {
  shared_->Ask([&work](Shared&) { work(); }, false);
}

bool Engine::ChangeWeights(const std::function<void()>& work, Started started) {
  if (started == Started::kAbort) AbortAll(base::Error(base::ErrorCode::kCancelled, "the model's weights are being replaced"));
  return shared_->Ask([&work](Shared& shared) { shared.scheduler.ForgetStates(); work(); }, true);
}

void Engine::FlushCache() {
  shared_->Ask([](Shared& shared) { shared.states.Forget(); }, false);
}

void Engine::Pause(bool paused) {
  shared_->Ask([paused](Shared& shared) { shared.paused = paused; }, false);
}

void Engine::AbortAll(const base::Error& why) {
  shared_->Ask([&why](Shared& shared) { shared.scheduler.CancelAll(why); }, false);
}

EngineMetrics Engine::Metrics() const {
  std::lock_guard lock(shared_->mutex);
  return shared_->metrics;
}

}  // namespace halfbyte::engine
