#include "server/model_control.h"

#include "engine/model_runner.h"
#include "model/reload.h"

namespace halfbyte::server {
namespace {

// Lives as long as the context, whose engine owns the runner.
struct Control {
  Context* context = nullptr;
  engine::ModelRunner* runner = nullptr;
  quant::QuantPlan plan;
  model::LoadSettings settings;
  bool weights_lost = false;  // dropped, and nothing put in their place yet; guarded by Context::reloading

  base::Result<std::function<void()>> Prepare(const std::filesystem::path& folder) {
    HB_ASSIGN_OR_RETURN(model::Reload reload, model::Reload::Prepare(runner->model(), plan, folder, settings));
    return std::function<void()>([this, reload = std::make_shared<model::Reload>(std::move(reload))] {
      reload->Apply(runner->model());
      weights_lost = false;
    });
  }

  base::Status Change(const std::function<void()>& work) {
    if (context->engine->ChangeWeights(work, engine::Engine::Started::kFinish)) return {};
    return base::Fail(base::ErrorCode::kCancelled, "the server is stopping");
  }

  base::Status Release(const std::string& tag) {
    context->engine->Pause(true);
    return Change([&] {
      if (tag == "kv_cache") {
        runner->pool().Drop();
      } else {
        runner->model().weights().Drop();
        weights_lost = true;
      }
    });
  }

  base::Status Resume(const std::string& tag, bool last) {
    if (tag == "weights" && weights_lost) {
      // Nobody sent others meanwhile: the ones that were there come back.
      std::filesystem::path folder;
      {
        std::lock_guard lock(context->mutex);
        folder = context->model_path;
      }
      HB_ASSIGN_OR_RETURN(const std::function<void()> place, Prepare(folder));
      HB_RETURN_IF_ERROR(Change(place));
    }
    if (last) context->engine->Pause(false);
    return {};
  }
};

}  // namespace

base::Result<std::unique_ptr<Context>> MakeContext(ServiceOptions options, model::LoadedModel loaded, model::LoadSettings settings, const engine::EngineOptions& engine_options,
                                                   std::optional<text::Tokenizer> tokenizer, std::optional<text::ChatTemplate> chat_template) {
  auto control = std::make_shared<Control>();
  control->plan = std::move(loaded.plan);
  control->settings = std::move(settings);
  control->settings.planned = nullptr;  // they belong to the first load
  control->settings.progress = nullptr;
  const engine::StateOptions state{.block_tokens = engine_options.block_tokens, .sequences = engine_options.max_batch, .max_tokens = engine_options.max_model_len,
                                   .cache_tokens = engine_options.kv_cache_tokens, .kv_dtype = engine_options.kv_dtype};
  HB_ASSIGN_OR_RETURN(auto runner, engine::ModelRunner::Create(std::move(loaded.model), state));
  control->runner = runner.get();
  auto engine = engine::Engine::Create(std::unique_ptr<engine::StepRunner>(std::move(runner)), engine_options);
  auto context = std::make_unique<Context>(std::move(options), std::move(engine), std::move(tokenizer), std::move(chat_template));
  control->context = context.get();
  context->weights.prepare = [control](const std::filesystem::path& folder) { return control->Prepare(folder); };
  context->weights.release = [control](const std::string& tag) { return control->Release(tag); };
  context->weights.resume = [control](const std::string& tag, bool last) { return control->Resume(tag, last); };
  return context;
}

}  // namespace halfbyte::server
