// config.json and hf_quant_config.json: any JSON gives metadata or an error, and its excludes give a selection or an error.
#include "base/check.h"
#include "checkpoint/model_folder.h"
#include "checkpoint/quant_config_writer.h"
#include "checkpoint/quant_metadata.h"
#include "quant/layer_selection.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace halfbyte;
  if (size > 1 << 16) return 0;
  auto json = checkpoint::ParseConfigJson(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!json) return 0;
  base::Json section = base::Json::MakeObject();
  section.Set("quantization_config", *json);
  const base::Json none;
  struct Pair { const base::Json* config; const base::Json* file; };
  for (const auto& [config, file] : {Pair{&*json, &none}, Pair{&*json, &*json}, Pair{&section, &*json}}) {
    auto m = checkpoint::ReadQuantMetadata(*config, file);
    if (!m) {
      HB_CHECK(!m.error().message().empty());
      continue;
    }
    HB_CHECK(m->main.group_size >= 0 && m->main.block[0] >= 0 && m->main.block[1] >= 0);
    (void)m->FindLayer("model.layers.0.mlp.experts");
    auto selection = quant::LayerSelection::Make(m->excludes, m->excludes_origin, quant::PatternSyntax::kPatterns);
    if (selection) (void)selection->Covers("model.layers.1.self_attn.qkv_proj");
  }
  (void)checkpoint::ConfigText(*json);
  return 0;
}
