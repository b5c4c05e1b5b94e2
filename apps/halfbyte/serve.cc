// halfbyte serve: the OpenAI-compatible server.
#include <sys/resource.h>

#include <cstdio>
#include <memory>

#include "base/log.h"
#include "checkpoint/model_folder.h"
#include "model_options.h"
#include "options.h"
#include "platform/parallel.h"
#include "quant/plan_report.h"
#include "server/model_control.h"
#include "server/service.h"
#include "text_side.h"

namespace halfbyte::app {
namespace {

// Beyond every memory; keeps products with a batch within 64 bits.
constexpr int64_t kMostTokens = int64_t{1} << 40;

struct Options {
  ModelOptions model;
  engine::EngineOptions engine;
  server::HttpOptions http;
  std::string api_key_file, served_model_name, prefix_cache = "on", allow_weight_root, chat_template;
  double request_timeout = 0;
  int64_t max_body_mb = 32;
  bool skip_tokenizer = false;
};

// Thousands of connections need as many descriptors; the soft limit is often 1,024.
void RaiseFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

base::Result<std::unique_ptr<server::Context>> MakeContext(const Options& o, const Context& context) {
  HB_ASSIGN_OR_RETURN(const std::filesystem::path path, o.model.Folder());
  HB_ASSIGN_OR_RETURN(const checkpoint::ModelFolder folder, checkpoint::ModelFolder::Open(path));
  HB_ASSIGN_OR_RETURN(auto configs, checkpoint::ReadModelConfigs(folder));
  server::ServiceOptions service;
  service.model_name = o.served_model_name.empty() ? o.model.model : o.served_model_name;
  service.model_path = path.string();
  service.device = o.model.device;
  service.generation_config = std::move(configs.generation_config);
  service.request_timeout = o.request_timeout;
  if (!o.allow_weight_root.empty()) {
    std::error_code ignored;
    if (!std::filesystem::is_directory(o.allow_weight_root, ignored))
      return base::Fail(base::ErrorCode::kNotFound, "--allow-weight-root ", o.allow_weight_root, ": there is no such folder");
    service.weight_root = o.allow_weight_root;
  }
  HB_RETURN_IF_ERROR(server::CheckTls(o.http));
  if (!o.api_key_file.empty()) { HB_ASSIGN_OR_RETURN(service.api_keys, server::ReadApiKeys(o.api_key_file)); }
  std::optional<text::Tokenizer> tokenizer;
  std::optional<text::ChatTemplate> chat_template;
  if (!o.skip_tokenizer) {
    if (!folder.Has("tokenizer.json"))
      return base::Fail(base::Error(base::ErrorCode::kNotFound, path.string() + " has no tokenizer.json").Hint("--skip-tokenizer-init serves token ids without one"));
    HB_ASSIGN_OR_RETURN(tokenizer, text::Tokenizer::FromFolder(path));
    if (o.chat_template.empty()) { HB_ASSIGN_OR_RETURN(chat_template, text::ChatTemplate::FromFolder(path)); }
    else { HB_ASSIGN_OR_RETURN(chat_template, text::ChatTemplate::FromFile(o.chat_template, path)); }
  }
  engine::EngineOptions engine_options = o.engine;
  HB_ASSIGN_OR_RETURN(engine_options.prefix_cache, engine::ParsePrefixCache(o.prefix_cache));
  engine_options.kv_dtype = KvDtype(o.model.kv_cache_dtype);
  const engine::StateOptions state{.block_tokens = engine_options.block_tokens, .sequences = engine_options.max_batch, .max_tokens = engine_options.max_model_len,
                                   .cache_tokens = engine_options.kv_cache_tokens, .kv_dtype = engine_options.kv_dtype};
  HB_ASSIGN_OR_RETURN(model::LoadedModel loaded, LoadWithReport(o.model, context, [&](const model::Admission& admission) {
    return CheckCache(admission, state, "lower --kv-cache-tokens, --max-model-len or --max-batch");
  }));
  service.quantization = std::string(quant::ModeName(loaded.plan.mode));
  service.device = std::string(loaded.model->backend().name());
  service.load_report = quant::ReportText(loaded.plan);
  service.eos = loaded.model->spec().eos;
  return server::MakeContext(std::move(service), std::move(loaded), o.model.Settings(), engine_options, std::move(tokenizer), std::move(chat_template));
}

base::Status Serve(const Options& o, const Context& context) {
  RaiseFileLimit();
  HB_ASSIGN_OR_RETURN(std::unique_ptr<server::Context> service, MakeContext(o, context));
  server::HttpOptions http = o.http;
  http.max_body_bytes = static_cast<size_t>(o.max_body_mb) << 20;
  HB_ASSIGN_OR_RETURN(std::unique_ptr<server::HttpServer> server, server::HttpServer::Create(http, server::MakeHandler(*service)));
  service->connections = [&server] { return server->connections(); };
  if (http.host != "127.0.0.1" && http.host != "localhost" && http.host != "::1" && service->options.api_keys.empty())
    base::LogWarning("listening on ", http.host, " without --api-key-file: everybody who reaches it may use and control it");
  HB_RETURN_IF_ERROR(server::WarmUp(*service));
  std::fprintf(stderr, "serving %s at %s://%s:%d\n", service->options.model_name.c_str(), http.tls_cert.empty() ? "http" : "https", http.host.c_str(), server->port());
  server->Run();
  service->Shutdown();
  return {};
}

void AddServerFlags(CLI::App& c, Options& o) {
  c.add_option("--host", o.http.host, "address to listen on")->capture_default_str()->check([](const std::string& host) {
    const base::Status status = server::CheckHost(host);
    return status ? "" : status.error().ToString();
  });
  AddInteger(c, "--port", o.http.port, 0, 65535, "0: any free port, printed");
  c.add_option("--api-key-file", o.api_key_file, "keys, one a line; every route but /health and the page wants one of them")->check(CheckNotEmpty);
  c.add_option("--served-model-name", o.served_model_name, "the name clients use")->check(CheckNotEmpty);
  AddInteger(c, "--max-batch", o.engine.max_batch, 1, 4096, "sequences computed at once");
  AddInteger(c, "--kv-cache-tokens", o.engine.kv_cache_tokens, 0, kMostTokens, "of all sequences together; 0: max-batch times max-model-len, at most half of the free memory");
  AddInteger(c, "--max-model-len", o.engine.max_model_len, 0, kMostTokens, "prompt and answer together, 2 at least; 0: the model's");
  AddInteger(c, "--prefill-chunk", o.engine.prefill_chunk, 1, 1 << 20, "prompt rows of a step");
  c.add_option("--prefix-cache", o.prefix_cache, "on, off, or generated (answers too; not bitwise)")->check(CLI::IsMember({"on", "off", "generated"}))->capture_default_str();
  AddInteger(c, "--max-queue", o.engine.max_queue, 1, 1 << 20, "requests that wait; further ones get 429");
  AddReal(c, "--request-timeout", o.request_timeout, {0, 1e9}, "seconds a request may take; 0: any");
  c.add_option("--allow-weight-root", o.allow_weight_root, "folder from which /update_weights_from_disk may load")->check(CheckNotEmpty);
  c.add_flag("--skip-tokenizer-init", o.skip_tokenizer, "token ids in and out, no text");
  c.add_option("--chat-template", o.chat_template, "a Jinja file instead of the model's own template");
  c.add_option("--cors", o.http.cors_origin, "origin of web pages that may use this server, or *");
  c.add_option("--tls-cert", o.http.tls_cert, "PEM certificate chain");
  c.add_option("--tls-key", o.http.tls_key, "PEM private key");
  AddInteger(c, "--max-body-mb", o.max_body_mb, 1, 1024, "largest request body");
}

}  // namespace

void RegisterServe(CLI::App& program, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand("serve", "an OpenAI-compatible server");
  options->model.AddTo(*command);
  AddServerFlags(*command, *options);
  command->callback([options, &context] {
    if (options->engine.max_model_len == 1) throw WrongUsage("--max-model-len 1 has no room for a prompt and an answer: 2 or more is wanted");
    if (options->http.tls_cert.empty() != options->http.tls_key.empty()) throw WrongUsage("--tls-cert and --tls-key go together");
    options->model.CheckUsage();
    context.command = [options, &context] { return Serve(*options, context); };
  });
}

}  // namespace halfbyte::app
