#include "eval_logits.h"

#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>

#include "checkpoint/tensor_file.h"
#include "model_options.h"

namespace halfbyte::app {
namespace {

constexpr int64_t kBlockTokens = 64;
constexpr int64_t kChunk = 512;  // rows of one step

base::Result<std::vector<std::vector<int32_t>>> ReadTokens(const std::string& path, int64_t vocab) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return base::Fail(base::ErrorCode::kNotFound, path, ": cannot be read");
  std::stringstream text;
  text << in.rdbuf();
  HB_ASSIGN_OR_RETURN_AT(base::Json json, base::Json::Parse(text.str()), path);
  auto wrong = [&] { return base::Fail(base::ErrorCode::kInvalidArgument, path, ": a list of lists of token ids in [0, ", vocab, ") is wanted"); };
  if (!json.is_array()) return wrong();
  std::vector<std::vector<int32_t>> out;
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

// All positions of one sequence as prompt rows.
base::Status Run(model::Model& m, const std::vector<int32_t>& ids, checkpoint::NamedTensor& out) {
  const int64_t n = static_cast<int64_t>(ids.size()), vocab = m.spec().vocab;
  const auto kv = m.arithmetic() == model::Arithmetic::kExact ? tensor::DType::kF32 : tensor::DType::kBF16;
  const int64_t blocks = (n + kBlockTokens - 1) / kBlockTokens;
  HB_ASSIGN_OR_RETURN(auto state, model::StatePool::Create(m.backend(), model::LayerStates(m.spec(), kBlockTokens, kv), blocks, 0));
  std::vector<int32_t> table(static_cast<size_t>(blocks));
  for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<int32_t>(i);
  out.shape = tensor::Shape({n, vocab});
  out.data.resize(static_cast<size_t>(n * vocab) * sizeof(float));
  for (int64_t begin = 0; begin < n; begin += kChunk) {
    const int64_t rows = std::min(kChunk, n - begin);
    std::vector<int64_t> wanted(static_cast<size_t>(rows));
    for (int64_t i = 0; i < rows; ++i) wanted[static_cast<size_t>(i)] = i;
    const kernels::SequenceRows sequence{0, rows, begin, table.data()};
    HB_ASSIGN_OR_RETURN(kernels::Matrix logits, m.Forward({{ids.data() + begin, static_cast<size_t>(rows)}, {&sequence, 1}, rows, wanted}, *state));
    std::memcpy(out.data.data() + begin * vocab * 4, logits.data, static_cast<size_t>(rows * vocab) * 4);
  }
  return {};
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
      HB_ASSIGN_OR_RETURN(model::LoadedModel loaded, LoadWithReport(options->model, context));
      HB_ASSIGN_OR_RETURN(const auto sequences, ReadTokens(options->tokens, loaded.model->spec().vocab));
      std::vector<checkpoint::NamedTensor> tensors(sequences.size());
      for (size_t i = 0; i < sequences.size(); ++i) {
        tensors[i].name = base::StrCat("logits.", i);
        HB_RETURN_IF_ERROR(Run(*loaded.model, sequences[i], tensors[i]));
      }
      return checkpoint::WriteTensorFile(options->out, tensors);
    };
  });
}

}  // namespace halfbyte::app
