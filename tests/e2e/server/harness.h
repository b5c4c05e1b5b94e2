// A server in this process over a chain model.
#pragma once

#include <thread>

#include "chain_model.h"
#include "client.h"
#include "server/model_control.h"
#include "server/service.h"

namespace halfbyte::server {

struct ServerSettings {
  engine::EngineOptions engine{.max_batch = 8, .kv_cache_tokens = 8192, .prefill_chunk = 256, .block_tokens = 16};
  HttpOptions http;
  ServiceOptions service;
  std::string device = "reference";
  checkpoint::CheckpointOptions files;  // how the model's files are read, now and by every reload
};

class TestServer {
 public:
  explicit TestServer(const std::filesystem::path& folder, ServerSettings settings = {});
  ~TestServer();

  int port() const { return http_->port(); }
  Context& context() { return *context_; }
  HttpServer& http() { return *http_; }
  // Waits until no request runs or waits; false after five seconds.
  bool Idle();

 private:
  std::unique_ptr<Context> context_;
  std::unique_ptr<HttpServer> http_;
  std::thread thread_;
};

}  // namespace halfbyte::server
