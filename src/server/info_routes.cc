// Routes that tell: the model, the server's state, tokens.
#include <algorithm>

#include "server/api_error.h"
#include "server/fields.h"
#include "server/generation_fields.h"
#include "server/page.h"
#include "server/routes.h"

namespace halfbyte::server {

HttpResponse JsonResponse(const base::Json& json, int status) {
  HttpResponse r;
  r.status = status;
  r.body = json.Dump();
  return r;
}

void Page(Context&, const ExchangePtr& exchange, const base::Json&) {
  exchange->Send({200, "text/html; charset=utf-8", std::string(kChatPage),
                  {{"cache-control", "no-cache"}, {"content-security-policy", "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; frame-ancestors 'none'"}}});
}

// 200 once the model has answered its first tokens and until the server is told to stop: what a load balancer wants to know.
void Health(Context& context, const ExchangePtr& exchange, const base::Json&) {
  base::Json out = base::Json::MakeObject();
  const bool fine = context.ready && !context.draining;
  out.Set("status", fine ? "ok" : context.draining ? "stopping" : "starting");
  exchange->Send(JsonResponse(out, fine ? 200 : 503));
}

namespace {

base::Json ModelJson(Context& context) {
  static const int64_t started = UnixSeconds();
  base::Json model = base::Json::MakeObject();
  model.Set("id", context.options.model_name);
  model.Set("object", "model");
  model.Set("created", started);
  model.Set("owned_by", "halfbyte");
  {
    std::lock_guard lock(context.mutex);
    model.Set("root", context.model_path);
  }
  model.Set("max_model_len", context.engine->max_length());
  model.Set("weight_version", context.weight_version.load());
  return model;
}

int HexDigit(char c) { return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1; }

// A part of a path as it was before "%2F" and the like.
std::string Unescaped(std::string_view path) {
  std::string out;
  for (size_t i = 0; i < path.size(); ++i) {
    const int high = path[i] == '%' && i + 2 < path.size() ? HexDigit(path[i + 1]) : -1, low = high >= 0 ? HexDigit(path[i + 2]) : -1;
    if (low < 0) {
      out += path[i];
      continue;
    }
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

}  // namespace

void Models(Context& context, const ExchangePtr& exchange, const base::Json&) {
  base::Json list = base::Json::MakeObject();
  list.Set("object", "list");
  list.Set("data", base::Json::Array{ModelJson(context)});
  exchange->Send(JsonResponse(list));
}

void OneModel(Context& context, const ExchangePtr& exchange, const base::Json&) {
  const std::string name = Unescaped(std::string_view(exchange->request().path).substr(std::string_view("/v1/models/").size()));
  if (name == context.options.model_name) return exchange->Send(JsonResponse(ModelJson(context)));
  exchange->Send(ErrorResponse({404, base::StrCat("this server has no model ", base::Json(name.substr(0, 200)).Dump()), "model", "model_not_found"}));
}

void ModelInfo(Context& context, const ExchangePtr& exchange, const base::Json&) {
  base::Json out = base::Json::MakeObject();
  {
    std::lock_guard lock(context.mutex);
    out.Set("model_path", context.model_path);
  }
  out.Set("served_model_name", context.options.model_name);
  out.Set("tokenizer_path", context.options.model_path);
  out.Set("is_generation", true);
  out.Set("weight_version", std::to_string(context.weight_version.load()));
  out.Set("quantization", context.options.quantization);
  out.Set("device", context.options.device);
  out.Set("context_length", context.engine->max_length());
  out.Set("vocab_size", context.vocab());
  exchange->Send(JsonResponse(out));
}

void LoadReport(Context& context, const ExchangePtr& exchange, const base::Json&) {
  exchange->Send({200, "text/plain; charset=utf-8", context.options.load_report, {}});
}

void MetricsPage(Context& context, const ExchangePtr& exchange, const base::Json&) {
  exchange->Send({200, "text/plain; version=0.0.4; charset=utf-8", context.metrics.Text(context.engine->Metrics(), context.connections(), context.weight_version), {}});
}

// vLLM's body: {"prompt"} or {"messages"}, {"add_special_tokens"}; SGLang's {"text"} too.
void Tokenize(Context& context, const ExchangePtr& exchange, const base::Json& body) {
  Fields f(body);
  f.Ignore({"model"});
  std::optional<std::string> text;
  std::string given;
  for (const char* name : {"prompt", "text"})
    if (f.Get(name)) {
      f.String(name, given);
      text = given;
    }
  bool special = true, with_texts = false;
  f.Bool("add_special_tokens", special);
  f.Bool("return_token_strs", with_texts);
  if (!text) f.Fail("prompt", "is missing");
  if (!context.tokenizer) f.Fail(ApiError{400, "this server runs without a tokenizer", "", "no_tokenizer"});
  if (f.error()) return exchange->Send(ErrorResponse(*f.error()));
  WarnUnknown(f.Unknown());
  base::Json out = base::Json::MakeObject(), tokens = base::Json::MakeArray(), texts = base::Json::MakeArray();
  for (int32_t t : context.tokenizer->Encode(*text, special)) {
    tokens.Push(t);
    if (with_texts) texts.Push(context.tokenizer->IdToToken(t));
  }
  out.Set("count", tokens.as_array().size());
  out.Set("max_model_len", context.engine->max_length());
  out.Set("tokens", std::move(tokens));
  if (with_texts) out.Set("token_strs", std::move(texts));
  exchange->Send(JsonResponse(out));
}

void Detokenize(Context& context, const ExchangePtr& exchange, const base::Json& body) {
  Fields f(body);
  f.Ignore({"model"});
  std::vector<int32_t> tokens;
  if (!f.Get("tokens")) f.Fail("tokens", "is missing");
  f.Tokens("tokens", std::max<int64_t>(context.vocab(), context.tokenizer ? context.tokenizer->vocab_size() : 0), tokens);
  bool skip = false;
  f.Bool("skip_special_tokens", skip);
  if (!context.tokenizer) f.Fail(ApiError{400, "this server runs without a tokenizer", "", "no_tokenizer"});
  if (f.error()) return exchange->Send(ErrorResponse(*f.error()));
  WarnUnknown(f.Unknown());
  base::Json out = base::Json::MakeObject();
  out.Set("prompt", context.tokenizer->Decode(tokens, skip));
  exchange->Send(JsonResponse(out));
}

}  // namespace halfbyte::server
