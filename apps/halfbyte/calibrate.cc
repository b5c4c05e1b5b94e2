#include "calibrate.h"

#include <algorithm>
#include <cstdio>

#include "eval_documents.h"
#include "model/expert_ranges.h"
#include "text_side.h"

namespace halfbyte::app {

base::Result<Calibration> Calibrate(const std::filesystem::path& folder, const std::string& file, int threads, numerics::Flavour flavour, const Context& context) {
  HB_ASSIGN_OR_RETURN(const TextSide side, TextSide::Load(folder, ""));
  HB_ASSIGN_OR_RETURN(const text::Tokenizer* tokenizer, side.tokenizer());
  HB_ASSIGN_OR_RETURN(const Documents documents, ReadDocuments(file, "--calibrate", *tokenizer));
  // The source's own precision, on the host: the observer looks at host memory.
  model::LoadSettings settings;
  settings.quantization = "none";
  settings.device = "cpu";
  settings.threads = threads;
  HB_ASSIGN_OR_RETURN(model::LoadedModel loaded, model::LoadModel(folder, settings));
  model::ExpertRanges ranges(loaded.model->spec());
  loaded.model->SetExpertObserver(&ranges);
  HB_ASSIGN_OR_RETURN(auto runner, ScoringRunner(std::move(loaded), "auto", documents));
  engine::Scorer scorer(*runner, documents);
  Calibration out;
  for (;;) {
    HB_ASSIGN_OR_RETURN(const std::span<const engine::ScoredRows> pieces, scorer.Next());
    if (pieces.empty()) break;
    for (const engine::ScoredRows& p : pieces) out.tokens += p.logits.rows;
  }
  for (const auto& [layer, range] : ranges.layers()) {
    out.scales[layer] = {numerics::ModeloptWs2(range.x, flavour), numerics::ModeloptWs2(range.h, flavour)};
    const auto unreached = std::count(range.rows.begin(), range.rows.end(), 0);
    if (unreached)
      out.remarks.push_back(base::StrCat("layer ", layer, ": no token reached ", unreached, " of ", range.rows.size(), " experts; they carry the layer's largest scales, as all its experts do"));
  }
  if (!context.quiet) std::fprintf(stderr, "activation scales measured with %lld tokens of %zu documents\n", static_cast<long long>(out.tokens), documents.size());
  return out;
}

}  // namespace halfbyte::app
