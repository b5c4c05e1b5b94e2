#include "server/service.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <exception>
#include <sstream>

#include "base/log.h"
#include "platform/file_reader.h"
#include "server/api_error.h"
#include "server/routes.h"

namespace halfbyte::server {
namespace {

struct Route {
  std::string_view method, path;
  void (*run)(Context&, const ExchangePtr&, const base::Json&);
  bool open = false;       // without a key
  bool body = false;       // JSON; an empty one is {}
  bool more = false;       // a name follows the path
};

constexpr Route kRoutes[] = {
    {"GET", "/", &Page, true},
    {"GET", "/health", &Health, true},
    {"GET", "/v1/models", &Models},
    {"GET", "/v1/models/", &OneModel, false, false, true},
    {"GET", "/get_model_info", &ModelInfo},
    {"GET", "/load_report", &LoadReport},
    {"GET", "/metrics", &MetricsPage},
    {"POST", "/v1/completions", &Completions, false, true},
    {"POST", "/v1/chat/completions", &ChatCompletions, false, true},
    {"POST", "/tokenize", &Tokenize, false, true},
    {"POST", "/detokenize", &Detokenize, false, true},
    {"POST", "/generate", &SglangGenerate, false, true},
    {"POST", "/abort_request", &AbortRequest, false, true},
    {"POST", "/flush_cache", &FlushCache, false, true},
    {"GET", "/flush_cache", &FlushCache},
    {"POST", "/update_weights_from_disk", &UpdateWeightsFromDisk, false, true},
    {"POST", "/release_memory_occupation", &ReleaseMemory, false, true},
    {"POST", "/resume_memory_occupation", &ResumeMemory, false, true},
};

const Route* Find(const HttpRequest& r, bool* known) {
  const std::string_view method = r.method == "HEAD" ? "GET" : std::string_view(r.method);
  for (const Route& route : kRoutes) {
    if (route.more ? r.path.size() <= route.path.size() || !r.path.starts_with(route.path) : route.path != r.path) continue;
    *known = true;
    if (route.method == method) return &route;
  }
  return nullptr;
}

std::optional<HttpResponse> Gate(Context& context, const HttpRequest& r) {
  bool known = false;
  const Route* route = Find(r, &known);
  // The browser asks without the key what it may do; the answer tells nothing about the server.
  if (r.method == "OPTIONS" && !r.origin.empty())
    return HttpResponse{204, "", "", {{"access-control-allow-methods", "GET, POST, OPTIONS"}, {"access-control-allow-headers", "authorization, content-type, x-request-id"}, {"access-control-max-age", "600"}}};
  if (!(route && route->open) && !Authorized(context.options.api_keys, r.authorization)) {
    const char* why = r.authorization.empty() ? "an API key is needed: Authorization: Bearer <key>" : "this API key is not valid";
    return ErrorResponse({401, why, "", "invalid_api_key"});
  }
  if (route) return std::nullopt;
  if (known) return ErrorResponse({405, base::StrCat(r.method, " is not for ", r.path), "", "method_not_allowed"});
  return ErrorResponse({404, base::StrCat("there is no ", base::Json(r.path.substr(0, 200)).Dump()), "", "unknown_route"});
}

void RunRoute(Context& context, const Route& route, const ExchangePtr& exchange) {
  base::Json body = base::Json::MakeObject();
  if (route.body && exchange->request().body.find_first_not_of(" \t\r\n") != std::string::npos) {
    auto parsed = base::Json::Parse(exchange->request().body);
    if (!parsed) return exchange->Send(ErrorResponse({400, base::StrCat("the body is not JSON: ", parsed.error().message()), "", "bad_json"}));
    if (!parsed->is_object()) return exchange->Send(ErrorResponse({400, "the body is no JSON object", "", "bad_json"}));
    body = std::move(*parsed);
  }
  // Nothing here throws on purpose; running out of memory may, and must not end the process.
  try {
    route.run(context, exchange, body);
  } catch (const std::exception& e) {
    base::LogError(route.path, ": ", e.what());
    exchange->Send(ErrorResponse({500, "internal error", "", "internal_error"}));
  }
}

}  // namespace

HttpHandler MakeHandler(Context& context) {
  HttpHandler handler;
  handler.gate = [&context](const HttpRequest& r) {
    std::optional<HttpResponse> refused = Gate(context, r);
    if (refused) context.metrics.HttpAnswer(refused->status);
    return refused;
  };
  handler.handle = [&context](ExchangePtr exchange) {
    bool known = false;
    const Route* route = Find(exchange->request(), &known);
    if (route->method == "GET" && route->run != &FlushCache) return RunRoute(context, *route, exchange);
    if (context.draining) return exchange->Send(ErrorResponse({503, "this server is stopping", "", "stopping"}));
    if (!context.ready) return exchange->Send(ErrorResponse({503, "the model is being loaded", "", "starting"}));
    context.parsers.Post([&context, route, exchange = std::move(exchange)] { RunRoute(context, *route, exchange); });
  };
  handler.draining = [&context] { context.draining = true; };
  handler.cut = [&context] {
    // Sockets are closed next, which cancels every job.
    base::LogWarning("stopping: answers under way are cut");
    (void)context;
  };
  return handler;
}

base::Result<std::vector<std::string>> ReadApiKeys(const std::filesystem::path& file) {
  constexpr uint64_t kMostBytes = 1 << 20;
  HB_ASSIGN_OR_RETURN_AT(std::string text, platform::ReadWholeFile(file, kMostBytes), "--api-key-file");
  std::istringstream in(std::move(text));
  std::vector<std::string> keys;
  for (std::string line; std::getline(in, line);) {
    const size_t first = line.find_first_not_of(" \t\r"), last = line.find_last_not_of(" \t\r");
    if (first == line.npos || line[first] == '#') continue;
    keys.push_back(line.substr(first, last - first + 1));
  }
  if (keys.empty()) return base::Fail(base::ErrorCode::kInvalidArgument, "--api-key-file ", file.string(), ": holds no key");
  return keys;
}

bool Authorized(const std::vector<std::string>& keys, std::string_view authorization) {
  if (keys.empty()) return true;
  constexpr std::string_view kBearer = "Bearer ";
  const bool bearer = authorization.size() >= kBearer.size() && std::equal(kBearer.begin(), kBearer.end(), authorization.begin(), [](char a, char b) { return a == b || (a | 32) == (b | 32); });
  const std::string_view given = bearer ? authorization.substr(kBearer.size()) : std::string_view();
  // Digests have one length, so that not even a key's length shows; every key is compared.
  unsigned char have[SHA256_DIGEST_LENGTH], want[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(given.data()), given.size(), have);
  bool match = false;
  for (const std::string& key : keys) {
    SHA256(reinterpret_cast<const unsigned char*>(key.data()), key.size(), want);
    match |= CRYPTO_memcmp(have, want, sizeof have) == 0;
  }
  return match && bearer;
}

base::Status WarmUp(Context& context) {
  engine::Request request;
  request.prompt = {0};
  request.max_tokens = std::min<int64_t>(4, context.engine->max_length() - 1);
  request.ignore_eos = true;
  HB_ASSIGN_OR_RETURN(const engine::Generation g, context.engine->Generate(std::move(request)));
  if (g.finish.error) return base::Fail(*g.finish.error);
  context.engine->FlushCache();
  context.ready = true;
  return {};
}

}  // namespace halfbyte::server
