// halfbyte eval logits.
#include "eval_commands.h"

#include <cstring>
#include <memory>

#include "checkpoint/tensor_file.h"
#include "eval_documents.h"
#include "input.h"
#include "options.h"

namespace halfbyte::app {
namespace {

struct Options { ModelOptions model; std::string tokens, out; };

base::Result<Documents> ReadTokens(const std::string& path) {
  HB_ASSIGN_OR_RETURN(const std::string text, ReadInput(path, "--tokens", kDocumentsLimit));
  HB_ASSIGN_OR_RETURN_AT(base::Json json, base::Json::Parse(text), path);
  auto wrong = [&] { return base::Fail(base::ErrorCode::kInvalidArgument, path, ": a list of lists of token ids, each with one at least, is wanted: [[1, 2, 3], [4]]"); };
  if (!json.is_array() || json.as_array().empty()) return wrong();
  Documents out;
  for (const base::Json& row : json.as_array()) {
    if (!row.is_array() || row.as_array().empty()) return wrong();
    std::vector<int32_t>& ids = out.emplace_back();
    for (const base::Json& id : row.as_array()) {
      if (!id.is_int() || id.as_int() < 0 || id.as_int() > INT32_MAX) return wrong();
      ids.push_back(static_cast<int32_t>(id.as_int()));
    }
  }
  return out;
}

// A slip of the shell's completion would cost the user a model.
base::Status CheckOut(const std::filesystem::path& out, const std::filesystem::path& model) {
  std::error_code ignored;
  if (const auto parent = std::filesystem::absolute(out, ignored).parent_path(); !std::filesystem::is_directory(parent, ignored))
    return base::Fail(base::ErrorCode::kNotFound, "--out ", out.string(), ": there is no folder ", parent.string());
  if (!std::filesystem::exists(out, ignored)) return {};
  for (std::filesystem::directory_iterator i(model, ignored), end; !ignored && i != end; i.increment(ignored)) {
    std::error_code none;
    if (std::filesystem::equivalent(i->path(), out, none))
      return base::Fail(base::ErrorCode::kInvalidArgument, "--out ", out.string(), " is a file of the model and is not overwritten");
  }
  return {};
}

base::Status Logits(const Options& o, const Context& context) {
  HB_ASSIGN_OR_RETURN(const Documents sequences, ReadTokens(o.tokens));
  HB_ASSIGN_OR_RETURN(const std::filesystem::path folder, o.model.Folder());
  HB_RETURN_IF_ERROR(CheckOut(o.out, folder));
  HB_ASSIGN_OR_RETURN(model::LoadedModel loaded, LoadWithReport(o.model, context, [&](const model::Admission& admission) -> base::Status {
    for (size_t i = 0; i < sequences.size(); ++i) HB_RETURN_IF_ERROR(CheckTokens(admission, sequences[i], base::StrCat(o.tokens, ": list ", i)));
    return {};
  }));
  const int64_t vocab = loaded.model->spec().vocab;
  HB_ASSIGN_OR_RETURN(auto runner, ScoringRunner(std::move(loaded), o.model.kv_cache_dtype, sequences));
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
  return checkpoint::WriteTensorFile(o.out, tensors);
}

}  // namespace

void RegisterEvalLogits(CLI::App& eval, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = eval.add_subcommand("logits", "logits of every position of given token sequences, as a safetensors file");
  options->model.AddTo(*command);
  command->add_option("--tokens", options->tokens, "JSON file: [[ids], ...]; - reads stdin")->required();
  command->add_option("--out", options->out, "file to write: logits.<i> F32 [T, V]")->required()->check(CheckNotEmpty);
  command->callback([options, &context] {
    options->model.CheckUsage();
    context.command = [options, &context] { return Logits(*options, context); };
  });
}

}  // namespace halfbyte::app
