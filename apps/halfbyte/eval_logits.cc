#include "eval_commands.h"

#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>

#include "checkpoint/tensor_file.h"
#include "eval_documents.h"

namespace halfbyte::app {
namespace {

constexpr int64_t kAnyVocabulary = INT32_MAX;

base::Result<Documents> ReadTokens(const std::string& path, int64_t vocab) {
  HB_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  HB_ASSIGN_OR_RETURN_AT(base::Json json, base::Json::Parse(text), path);
  auto wrong = [&] { return base::Fail(base::ErrorCode::kInvalidArgument, path, ": a list of lists of token ids in [0, ", vocab, ") is wanted"); };
  if (!json.is_array()) return wrong();
  Documents out;
  for (const base::Json& row : json.as_array()) {
    if (!row.is_array() || row.as_array().empty()) return wrong();
    std::vector<int32_t>& ids = out.emplace_back();
    for (const base::Json& id : row.as_array()) {
      if (!id.is_int() || id.as_int() < 0 || id.as_int() >= vocab) return wrong();
      ids.push_back(static_cast<int32_t>(id.as_int()));
    }
  }
  return out;
}

}  // namespace

void RegisterEvalLogits(CLI::App& eval, Context& context) {
  struct Options { ModelOptions model; std::string tokens, out; };
  auto options = std::make_shared<Options>();
  CLI::App* command = eval.add_subcommand("logits", "logits of every position of given token sequences, as a safetensors file");
  options->model.AddTo(*command);
  command->add_option("--tokens", options->tokens, "JSON file: [[ids], ...]")->required();
  command->add_option("--out", options->out, "file to write: logits.<i> F32 [T, V]")->required();
  command->callback([options, &context] {
    context.command = [options, &context]() -> base::Status {
      HB_RETURN_IF_ERROR(ReadTokens(options->tokens, kAnyVocabulary));  // a wrong file is known before minutes of loading
      HB_ASSIGN_OR_RETURN(model::LoadedModel loaded, LoadWithReport(options->model, context));
      const int64_t vocab = loaded.model->spec().vocab;
      HB_ASSIGN_OR_RETURN(const Documents sequences, ReadTokens(options->tokens, vocab));
      HB_ASSIGN_OR_RETURN(auto runner, ScoringRunner(std::move(loaded), options->model.kv_cache_dtype, sequences));
      std::vector<checkpoint::NamedTensor> tensors(sequences.size());
      for (size_t i = 0; i < sequences.size(); ++i) {
        const int64_t n = static_cast<int64_t>(sequences[i].size());
        tensors[i] = {base::StrCat("logits.", i), tensor::DType::kF32, tensor::Shape({n, vocab}), std::vector<std::byte>(static_cast<size_t>(n * vocab) * sizeof(float))};
      }
      engine::Scorer scorer(*runner, sequences);
      for (;;) {
        HB_ASSIGN_OR_RETURN(const std::span<const engine::ScoredRows> pieces, scorer.Next());
        if (pieces.empty()) break;
        for (const engine::ScoredRows& p : pieces)
          std::memcpy(tensors[p.document].data.data() + p.first_position * vocab * 4, p.logits.data, static_cast<size_t>(p.logits.rows * vocab) * 4);
      }
      return checkpoint::WriteTensorFile(options->out, tensors);
    };
  });
}

}  // namespace halfbyte::app
