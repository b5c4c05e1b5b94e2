// A context over a loaded model, with the control routes' grip on it: other weights, memory given back and taken again.
#pragma once

#include "model/load.h"
#include "server/context.h"

namespace halfbyte::server {

// `settings`: those of the first load; a reload uses them again.
base::Result<std::unique_ptr<Context>> MakeContext(ServiceOptions options, model::LoadedModel loaded, model::LoadSettings settings, const engine::EngineOptions& engine_options,
                                                   std::optional<text::Tokenizer> tokenizer, std::optional<text::ChatTemplate> chat_template);

}  // namespace halfbyte::server
