#include "halfbyte/halfbyte.h"

#include <algorithm>
#include <optional>

#include "base/json.h"
#include "checkpoint/model_folder.h"
#include "engine/engine.h"
#include "model/load.h"
#include "quant/plan_report.h"
#include "text/chat_template.h"
#include "text/stop_strings.h"
#include "text/streaming_detokenizer.h"
#include "text/tokenizer.h"

namespace halfbyte {
namespace {

Error ToError(const base::Error& e) {
  Error::Code code = Error::Code::kInternal;
  switch (e.code()) {
    case base::ErrorCode::kInvalidArgument: code = Error::Code::kInvalidArgument; break;
    case base::ErrorCode::kNotFound: code = Error::Code::kNotFound; break;
    case base::ErrorCode::kBadFile: code = Error::Code::kBadFile; break;
    case base::ErrorCode::kUnsupported: code = Error::Code::kUnsupported; break;
    case base::ErrorCode::kOutOfMemory: code = Error::Code::kOutOfMemory; break;
    case base::ErrorCode::kIo: code = Error::Code::kIo; break;
    case base::ErrorCode::kUnavailable: case base::ErrorCode::kCancelled: code = Error::Code::kUnavailable; break;
    case base::ErrorCode::kInternal: break;
  }
  return {code, e.ToString()};
}

template <typename T>
Result<T> ToResult(base::Result<T> result) {
  if (!result) return ToError(result.error());
  return std::move(*result);
}

base::Result<model::LoadSettings> SettingsOf(const LoadOptions& options) {
  model::LoadSettings s;
  s.quantization = options.quantization;
  s.device = options.device;
  s.threads = options.threads;
  s.ignore_layers = options.ignore_layers;
  if (options.dense_quantization == "fp8") s.dense = quant::DenseQuantization::kFp8;
  else if (options.dense_quantization == "nvfp4") s.dense = quant::DenseQuantization::kNvfp4;
  else if (options.dense_quantization != "none") return base::Fail(base::ErrorCode::kInvalidArgument, "dense_quantization \"", options.dense_quantization, "\" is none of none, fp8, nvfp4");
  if (options.exact) s.arithmetic = model::Arithmetic::kExact;
  if (options.report) s.planned = [&options](const quant::QuantPlan& plan) { options.report(quant::ReportText(plan)); };
  return s;
}

base::Result<engine::EngineOptions> EngineOptionsOf(const LoadOptions& options) {
  engine::EngineOptions e;
  if (options.max_batch < 1) return base::Fail(base::ErrorCode::kInvalidArgument, "max_batch is ", options.max_batch);
  e.max_batch = options.max_batch;
  e.kv_cache_tokens = options.kv_cache_tokens;
  if (options.kv_cache_dtype == "bf16") e.kv_dtype = tensor::DType::kBF16;
  else if (options.kv_cache_dtype == "fp8_e4m3") e.kv_dtype = tensor::DType::kF8E4M3;
  else if (options.kv_cache_dtype != "auto") return base::Fail(base::ErrorCode::kInvalidArgument, "kv_cache_dtype \"", options.kv_cache_dtype, "\" is none of auto, bf16, fp8_e4m3");
  return e;
}

}  // namespace

struct Model::Impl {
  std::string folder, family;
  int64_t vocabulary = 0;
  std::vector<int32_t> eos;
  std::optional<text::Tokenizer> tokenizer;
  std::optional<text::ChatTemplate> chat_template;
  std::unique_ptr<engine::Engine> engine;

  static base::Result<std::unique_ptr<Impl>> Load(const std::string& model, const LoadOptions& options);
  base::Result<const text::Tokenizer*> NeedTokenizer() const;
  base::Result<std::vector<int32_t>> EncodeChat(const std::vector<Message>& messages) const;
  base::Result<Completion> Generate(std::vector<int32_t> prompt, const GenerateOptions& options) const;
};

base::Result<std::unique_ptr<Model::Impl>> Model::Impl::Load(const std::string& model, const LoadOptions& options) {
  auto impl = std::make_unique<Impl>();
  HB_ASSIGN_OR_RETURN(const model::LoadSettings settings, SettingsOf(options));
  HB_ASSIGN_OR_RETURN(const engine::EngineOptions engine_options, EngineOptionsOf(options));
  HB_ASSIGN_OR_RETURN(const std::filesystem::path folder, checkpoint::ResolveModelFolder(model));
  impl->folder = folder.string();
  std::error_code ignored;
  if (std::filesystem::exists(folder / "tokenizer.json", ignored)) { HB_ASSIGN_OR_RETURN(impl->tokenizer, text::Tokenizer::FromFolder(folder)); }
  if (options.chat_template.empty()) { HB_ASSIGN_OR_RETURN(impl->chat_template, text::ChatTemplate::FromFolder(folder)); }
  else { HB_ASSIGN_OR_RETURN(impl->chat_template, text::ChatTemplate::FromFile(options.chat_template, folder)); }
  HB_ASSIGN_OR_RETURN(model::LoadedModel loaded, model::LoadModel(folder, settings));
  impl->family = loaded.model->spec().family;
  impl->vocabulary = loaded.model->spec().vocab;
  impl->eos = loaded.model->spec().eos;
  HB_ASSIGN_OR_RETURN(impl->engine, engine::Engine::Create(std::move(loaded.model), engine_options));
  return impl;
}

base::Result<const text::Tokenizer*> Model::Impl::NeedTokenizer() const {
  if (!tokenizer) return base::Fail(base::Error(base::ErrorCode::kNotFound, folder + " has no tokenizer.json").Hint("give token ids"));
  return &*tokenizer;
}

base::Result<std::vector<int32_t>> Model::Impl::EncodeChat(const std::vector<Message>& messages) const {
  HB_ASSIGN_OR_RETURN(const text::Tokenizer* t, NeedTokenizer());
  if (!chat_template) return base::Fail(base::Error(base::ErrorCode::kNotFound, folder + " has no chat template").Hint("give one with LoadOptions::chat_template"));
  base::Json list = base::Json::MakeArray();
  for (const Message& m : messages) list.Push(base::Json::Object{{"role", m.role}, {"content", m.content}});
  HB_ASSIGN_OR_RETURN(const std::string prompt, chat_template->Render(list, base::Json(), true, base::Json::MakeObject()));
  return t->Encode(prompt, false);  // the template writes the special tokens itself
}

base::Result<Completion> Model::Impl::Generate(std::vector<int32_t> prompt, const GenerateOptions& options) const {
  engine::Request request;
  request.prompt = prompt;
  request.max_tokens = options.max_tokens;
  request.ignore_eos = options.ignore_eos;
  request.sampling.temperature = static_cast<float>(options.temperature);
  request.sampling.top_p = static_cast<float>(options.top_p);
  request.sampling.min_p = static_cast<float>(options.min_p);
  request.sampling.top_k = options.top_k;
  request.sampling.seed = options.seed;

  Completion out;
  std::optional<text::StreamingDetokenizer> detokenizer;
  if (tokenizer) detokenizer.emplace(*tokenizer, true);
  text::StopStrings stops(options.stop);
  auto on_token = [&](int32_t token) {
    const bool is_end = !options.ignore_eos && std::find(eos.begin(), eos.end(), token) != eos.end();
    const std::string piece = detokenizer && !is_end ? stops.Push(detokenizer->Push(token)) : std::string();
    out.text += piece;
    const bool go_on = !options.on_token || options.on_token(token, piece);
    return go_on && !stops.stopped();
  };
  HB_ASSIGN_OR_RETURN(engine::Generation g, engine->Generate(std::move(request), on_token));
  if (g.finish.error) return base::Fail(*g.finish.error);
  if (detokenizer && !stops.stopped()) {
    out.text += stops.Push(detokenizer->Flush());
    if (!stops.stopped()) out.text += stops.Flush();
  }
  out.prompt_tokens = std::move(prompt);
  out.tokens = std::move(g.tokens);
  out.finish_reason = stops.stopped() ? "stop" : std::string(g.finish_reason());
  out.first_token_seconds = g.first_token_seconds;
  out.total_seconds = g.total_seconds;
  return out;
}

Model::Model(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

Result<Model> Model::Load(const std::string& model, const LoadOptions& options) {
  auto impl = Impl::Load(model, options);
  if (!impl) return ToError(impl.error());
  return Model(std::move(*impl));
}

Result<Completion> Model::Generate(const std::vector<int32_t>& prompt, const GenerateOptions& options) const { return ToResult(impl_->Generate(prompt, options)); }

Result<Completion> Model::GenerateText(const std::string& prompt, const GenerateOptions& options) const {
  auto tokens = Encode(prompt, true);
  if (!tokens) return tokens.error();
  return ToResult(impl_->Generate(std::move(*tokens), options));
}

Result<Completion> Model::Chat(const std::vector<Message>& messages, const GenerateOptions& options) const {
  auto tokens = impl_->EncodeChat(messages);
  if (!tokens) return ToError(tokens.error());
  return ToResult(impl_->Generate(std::move(*tokens), options));
}

Result<std::vector<int32_t>> Model::Encode(const std::string& text, bool add_special_tokens) const {
  auto tokenizer = impl_->NeedTokenizer();
  if (!tokenizer) return ToError(tokenizer.error());
  return (*tokenizer)->Encode(text, add_special_tokens);
}

Result<std::string> Model::Decode(const std::vector<int32_t>& tokens, bool skip_special_tokens) const {
  auto tokenizer = impl_->NeedTokenizer();
  if (!tokenizer) return ToError(tokenizer.error());
  return (*tokenizer)->Decode(tokens, skip_special_tokens);
}

int64_t Model::vocabulary() const { return impl_->vocabulary; }
int64_t Model::max_length() const { return impl_->engine->max_length(); }
std::string Model::family() const { return impl_->family; }

const char* Version() { return HALFBYTE_VERSION; }

}  // namespace halfbyte
