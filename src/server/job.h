// Job: one HTTP request for text: its choices in the engine, their events in order on a worker, the answer in one of the dialects.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/choice.h"
#include "server/context.h"
#include "server/http.h"

namespace halfbyte::server {

struct TokenUsage {
  int64_t prompt = 0, completion = 0, cached = 0;
};

// How answers look. One object serves one job and is called by one thread at a time.
class Dialect {
 public:
  virtual ~Dialect() = default;
  // Logprobs of a prompt's positions, where they were asked for; before the first piece of the choice.
  virtual void Prompt(int index, std::vector<engine::PositionLogprobs> logprobs) { (void)index, (void)logprobs; }
  // What to send for a piece (streaming), or remembers it (not streaming: returns "").
  virtual std::string Take(Piece piece, const TokenUsage& choice_usage) = 0;
  // Ends a stream.
  virtual std::string Tail(const TokenUsage& usage) = 0;
  // The whole answer.
  virtual base::Json Whole(const TokenUsage& usage) = 0;
};

struct JobPlan {
  std::string id;
  std::vector<std::vector<int32_t>> prompts;
  int64_t n = 1;               // choices of each prompt; choice i belongs to prompt i / n
  engine::Request request;     // all but prompt, stream number and on_event
  ChoiceOptions choice;
  bool stream = false;
};

class Job : public std::enable_shared_from_this<Job> {
 public:
  // Submits everything, or answers with an error. On a worker.
  static void Start(Context& context, std::shared_ptr<Exchange> exchange, JobPlan plan, std::unique_ptr<Dialect> dialect);
  ~Job();

  // Ends the job's sequences within a step; the client gets what there is with the reason "abort". From any thread.
  void Cancel();

 private:
  struct Item { int choice; engine::Event event; };
  struct Running {
    Choice choice;
    std::vector<engine::PositionLogprobs> prompt_logprobs;
    bool prompt_told = false;
    engine::Clock::time_point last{};
    TokenUsage usage;
  };

  Job(Context& context, std::shared_ptr<Exchange> exchange, JobPlan plan, std::unique_ptr<Dialect> dialect);
  void Submit();
  void OnEvent(int choice, engine::Event&& event);
  void Drain();
  void Handle(Item& item, std::string& out);
  void End(Running& running, engine::Finish& finish, std::string& out);
  void Emit(Running& running, Piece piece, std::string& out);
  void Complete(std::string& out);
  void Fail(const ApiError& error, std::string& out);

  Context& context_;
  const std::shared_ptr<Exchange> exchange_;
  JobPlan plan_;
  const std::unique_ptr<Dialect> dialect_;
  const engine::Clock::time_point start_ = engine::Clock::now();
  std::vector<Running> running_;  // the worker's
  size_t unfinished_ = 0;         // the worker's
  bool failed_ = false;           // the worker's: an error was sent

  std::mutex mutex_;
  std::vector<engine::RequestId> ids_;  // guarded, as the rest
  std::deque<Item> inbox_;
  bool scheduled_ = true;               // until everything is submitted
  bool cancelled_ = false;
};

// "data: {...}\n\n"
std::string SseEvent(const base::Json& json);
inline constexpr std::string_view kSseDone = "data: [DONE]\n\n";

}  // namespace halfbyte::server
