#include "server/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include "platform/memory.h"

namespace halfbyte::server {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildGauge;
using prometheus::BuildHistogram;
using Buckets = prometheus::Histogram::BucketBoundaries;

// From a demo model's fractions of a millisecond to a large model on few cores.
const Buckets kSeconds{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300};
const Buckets kTokens{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144};

}  // namespace

struct Metrics::Impl {
  prometheus::Registry registry;
  prometheus::Labels labels;
  prometheus::Histogram *ttft, *itl, *e2e, *prompt_lengths, *answer_lengths;
  prometheus::Counter *prompt_tokens, *generation_tokens, *cached_tokens, *gone;
  prometheus::Family<prometheus::Counter>*finished, *http;

  prometheus::Histogram* MakeHistogram(const char* name, const char* help, const Buckets& buckets) {
    return &BuildHistogram().Name(name).Help(help).Register(registry).Add(labels, buckets);
  }
  prometheus::Counter* MakeCounter(const char* name, const char* help) { return &BuildCounter().Name(name).Help(help).Register(registry).Add(labels); }
  void Set(const char* name, const char* help, double value) { BuildGauge().Name(name).Help(help).Register(registry).Add(labels).Set(value); }
};

Metrics::Metrics(std::string model_name) : impl_(std::make_unique<Impl>()) {
  Impl& i = *impl_;
  i.labels = {{"model_name", std::move(model_name)}};
  i.ttft = i.MakeHistogram("halfbyte:time_to_first_token_seconds", "From a request's arrival to its first token", kSeconds);
  i.itl = i.MakeHistogram("halfbyte:inter_token_latency_seconds", "Between two tokens of an answer", kSeconds);
  i.e2e = i.MakeHistogram("halfbyte:e2e_request_latency_seconds", "From a request's arrival to its last token", kSeconds);
  i.prompt_lengths = i.MakeHistogram("halfbyte:request_prompt_tokens", "Prompt tokens of a request", kTokens);
  i.answer_lengths = i.MakeHistogram("halfbyte:request_generation_tokens", "Generated tokens of a request", kTokens);
  i.prompt_tokens = i.MakeCounter("halfbyte:prompt_tokens_total", "Prompt tokens of finished requests");
  i.generation_tokens = i.MakeCounter("halfbyte:generation_tokens_total", "Generated tokens of finished requests");
  i.cached_tokens = i.MakeCounter("halfbyte:prefix_cache_hits_total", "Prompt tokens found in the prefix cache");
  i.gone = i.MakeCounter("halfbyte:client_hangups_total", "Requests whose client hung up before its answer was complete");
  i.finished = &BuildCounter().Name("halfbyte:request_success_total").Help("Requests that ended, by reason").Register(i.registry);
  i.http = &BuildCounter().Name("halfbyte:http_responses_total").Help("HTTP answers by status").Register(i.registry);
}
Metrics::~Metrics() = default;

void Metrics::TimeToFirstToken(double seconds) { impl_->ttft->Observe(seconds); }
void Metrics::InterTokenLatency(double seconds) { impl_->itl->Observe(seconds); }

void Metrics::Finished(const engine::Finish& finish, std::string_view reason, double seconds) {
  Impl& i = *impl_;
  i.e2e->Observe(seconds);
  i.prompt_lengths->Observe(static_cast<double>(finish.usage.prompt_tokens));
  i.answer_lengths->Observe(static_cast<double>(finish.usage.completion_tokens));
  i.prompt_tokens->Increment(static_cast<double>(finish.usage.prompt_tokens));
  i.generation_tokens->Increment(static_cast<double>(finish.usage.completion_tokens));
  i.cached_tokens->Increment(static_cast<double>(finish.usage.cached_tokens));
  prometheus::Labels labels = i.labels;
  labels["finished_reason"] = std::string(reason);
  i.finished->Add(labels).Increment();
}

void Metrics::HttpAnswer(int status) { impl_->http->Add({{"status", std::to_string(status)}}).Increment(); }
void Metrics::ClientGone() { impl_->gone->Increment(); }

std::string Metrics::Text(const engine::EngineMetrics& e, int64_t connections, int64_t weight_version) const {
  // Gauges are read at the moment of asking, so they live in a registry of their own that is built and thrown away.
  Impl now;
  now.labels = impl_->labels;
  const double blocks = static_cast<double>(e.kv_blocks);
  now.Set("halfbyte:num_requests_running", "Requests being computed", static_cast<double>(e.running));
  now.Set("halfbyte:num_requests_waiting", "Requests that wait", static_cast<double>(e.waiting));
  now.Set("halfbyte:kv_cache_usage_perc", "Share of the KV blocks that requests own, 0 to 1", blocks > 0 ? static_cast<double>(e.kv_blocks_owned) / blocks : 0);
  now.Set("halfbyte:kv_blocks", "KV blocks", blocks);
  now.Set("halfbyte:kv_blocks_owned", "KV blocks that requests own", static_cast<double>(e.kv_blocks_owned));
  now.Set("halfbyte:kv_blocks_cached", "KV blocks kept for later prompts", static_cast<double>(e.kv_blocks_cached));
  now.Set("halfbyte:num_preemptions", "Requests that had to give their memory back and be computed anew, since the start", static_cast<double>(e.scheduler.preemptions));
  now.Set("halfbyte:engine_steps", "Steps since the start", static_cast<double>(e.executor.steps));
  now.Set("halfbyte:failed_steps", "Steps that failed", static_cast<double>(e.executor.failed_steps));
  now.Set("halfbyte:nonfinite_logits", "Rows of logits that were no numbers", static_cast<double>(e.executor.broken_rows));
  now.Set("halfbyte:http_connections", "Open connections", static_cast<double>(connections));
  now.Set("halfbyte:weight_version", "How often the weights were replaced", static_cast<double>(weight_version));
  now.Set("halfbyte:resident_memory_bytes", "Resident memory of the process", static_cast<double>(platform::ResidentBytes()));
  const prometheus::TextSerializer serializer;
  return serializer.Serialize(now.registry.Collect()) + serializer.Serialize(impl_->registry.Collect());
}

}  // namespace halfbyte::server
