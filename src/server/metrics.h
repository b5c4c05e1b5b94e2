// Counters and histograms in Prometheus' text form, under vLLM's names with the prefix halfbyte: (docs/server.md lists them).
#pragma once

#include <memory>
#include <string>

#include "engine/engine.h"

namespace halfbyte::server {

class Metrics {
 public:
  explicit Metrics(std::string model_name);
  ~Metrics();

  void TimeToFirstToken(double seconds);
  void InterTokenLatency(double seconds);
  void Finished(const engine::Finish& finish, std::string_view reason, double seconds);
  void HttpAnswer(int status);
  void ClientGone();
  // The page, with gauges as the engine says now.
  std::string Text(const engine::EngineMetrics& engine, int64_t connections, int64_t weight_version) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace halfbyte::server
