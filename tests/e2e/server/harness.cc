#include "harness.h"

#include <gtest/gtest.h>

#include "base/check.h"

namespace halfbyte::server {

TestServer::TestServer(const std::filesystem::path& folder, ServerSettings s) {
  model::LoadSettings load;
  load.device = s.device;
  load.threads = 2;
  load.files = s.files;
  auto loaded = model::LoadModel(folder, load);
  HB_CHECK(loaded.has_value(), loaded.error().ToString());
  s.service.model_name = "chain";
  s.service.model_path = folder.string();
  s.service.generation_config = *base::Json::Parse(R"({"do_sample": false})");
  auto tokenizer = text::Tokenizer::FromFolder(folder);
  HB_CHECK(tokenizer.has_value(), tokenizer.error().ToString());
  auto chat = text::ChatTemplate::FromFolder(folder);
  HB_CHECK(chat.has_value(), chat.error().ToString());
  auto context = MakeContext(std::move(s.service), std::move(*loaded), load, s.engine, std::move(*tokenizer), std::move(*chat));
  HB_CHECK(context.has_value(), context.error().ToString());
  context_ = std::move(*context);
  s.http.port = 0;
  s.http.handle_signals = false;
  auto http = HttpServer::Create(s.http, MakeHandler(*context_));
  HB_CHECK(http.has_value(), http.error().ToString());
  http_ = std::move(*http);
  HB_CHECK(WarmUp(*context_).has_value(), "warm-up");
  thread_ = std::thread([this] { http_->Run(); });
}

TestServer::~TestServer() {
  http_->Stop();
  thread_.join();
  context_->Shutdown();
}

bool TestServer::Idle() {
  for (int i = 0; i < 500; ++i) {
    const engine::EngineMetrics m = context_->engine->Metrics();
    if (m.running == 0 && m.waiting == 0 && m.kv_blocks_owned == 0) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

}  // namespace halfbyte::server
