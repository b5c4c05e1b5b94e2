// What all routes share.
#pragma once

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "engine/engine.h"
#include "server/metrics.h"
#include "server/structured_output.h"
#include "server/workers.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace halfbyte::server {

class Job;

// Replaces the weights of the running model by those of a folder, all or nothing (model/reload.h); set by the program that owns the model.
struct WeightControl {
  // Reads, converts and proves the new weights while the old ones serve; the result puts them in place, between two steps, and cannot fail.
  std::function<base::Result<std::function<void()>>(const std::filesystem::path& folder)> prepare;
  // Gives the memory of the KV cache ("kv_cache") or the weights ("weights") back to the system, and takes it again.
  std::function<base::Status(const std::string& tag)> release;
  std::function<base::Status(const std::string& tag, bool last)> resume;  // last: nothing else is released any more
};

struct ServiceOptions {
  std::string model_name;                       // as /v1/models shows it
  std::string model_path;                       // as it was given
  std::string quantization, device, dtype;
  std::string load_report;                      // the lines printed at start
  base::Json generation_config;                 // defaults of the sampling fields; null: none
  std::vector<int32_t> eos;
  std::vector<std::string> api_keys;            // none: everybody may
  std::optional<std::filesystem::path> weight_root;  // --allow-weight-root
  double request_timeout = 0;                   // seconds; 0: none
  int64_t max_body_bytes = 32 << 20;
  int parse_threads = 2, text_threads = 1;
};

struct Context {
  Context(ServiceOptions o, std::unique_ptr<engine::Engine> e, std::optional<text::Tokenizer> t, std::optional<text::ChatTemplate> c)
      : options(std::move(o)), tokenizer(std::move(t)), chat_template(std::move(c)), metrics(options.model_name), model_path(options.model_path), parsers(options.parse_threads),
        texts(options.text_threads), engine(std::move(e)) {
    MakeGrammars();
  }
  ~Context() { Shutdown(); }
  // Ends all requests and joins the threads; afterwards nobody touches an exchange.
  void Shutdown();

  const ServiceOptions options;
  const std::optional<text::Tokenizer> tokenizer;
  const std::optional<text::ChatTemplate> chat_template;
  std::unique_ptr<Grammars> grammars;  // null without a tokenizer
  WeightControl weights;
  Metrics metrics;
  std::atomic<bool> ready{false}, draining{false};
  std::atomic<int64_t> weight_version{0};
  std::function<int64_t()> connections = [] { return int64_t{0}; };

  std::mutex mutex;
  std::string model_path;                              // guarded: changes with a reload that succeeded
  std::map<std::string, std::weak_ptr<Job>> jobs;      // guarded: by request id, for /abort_request
  std::set<std::string> released;                      // guarded: what release_memory_occupation has given back
  std::mutex reloading;                                // one change of weights at a time

  Workers parsers, texts;
  std::unique_ptr<engine::Engine> engine;

  // "fp_...": changes with whatever may change an answer.
  std::string Fingerprint() const;
  void MakeGrammars();
  int64_t vocab() const { return engine->traits().vocab; }
};

// "cmpl-" and 32 hexadecimal digits that nobody can guess.
std::string NewId(std::string_view prefix);
int64_t UnixSeconds();

}  // namespace halfbyte::server
