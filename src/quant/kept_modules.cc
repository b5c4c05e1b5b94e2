#include "quant/kept_modules.h"

#include "quant/source_format.h"

namespace halfbyte::quant {
namespace {

using checkpoint::LayerQuant;
using checkpoint::QuantAlgo;
using tensor::Outer;

const TensorEntry* Companion(const checkpoint::Checkpoint& files, std::string_view stem, std::initializer_list<std::string_view> endings) {
  for (std::string_view ending : endings)
    if (const TensorEntry* e = files.Find(base::StrCat(stem, ending))) return e;
  return nullptr;
}

// A matrix nobody planned (an MTP layer's, or a kept one), seen through its tensors alone.
SourceMatrix MatrixOf(const checkpoint::Checkpoint& files, const TensorEntry& weight, std::string_view stem) {
  SourceMatrix m;
  m.weight = &weight;
  const bool stacked = weight.shape.rank() >= 3, packed = weight.dtype == tensor::DType::kU8 || weight.dtype == tensor::DType::kI8;
  m.layout = stacked ? StackedLayout::kRows : StackedLayout::kPerExpert;
  m.rows = weight.shape[stacked ? 1 : 0];
  m.cols = weight.shape[stacked ? 2 : 1] * (packed ? 2 : 1);
  m.scale = Companion(files, stem, {".weight_scale_inv", ".weight_scale", ".scale", "_weight_scale_inv", "_weight_scale", "_scales"});
  m.outer = Companion(files, stem, {".weight_scale_2", "_weight_scale_2", ".weight_global_scale"});
  m.input_scale = Companion(files, stem, {".input_scale", "_input_scale"});
  return m;
}

LayerQuant QuantOf(const SourceMatrix& m, const Format& f) {
  const bool static_activations = m.input_scale != nullptr;
  LayerQuant q;
  q.label = f.ToString();
  if (f.is_nvfp4()) { q.algo = QuantAlgo::kNvfp4; return q; }
  if (f.elem == tensor::DType::kF4) { q.algo = QuantAlgo::kMxfp4; return q; }
  if (f.block_scale) {
    const bool mx = f.block_rows == 1 && f.block_cols == 32 && !tensor::IsPlainFloat(m.scale->dtype);  // a weight_block_size may be anything
    q.algo = mx ? QuantAlgo::kMxfp8 : QuantAlgo::kFp8Block;
    q.block = {f.block_rows, f.block_cols};
  } else {
    q.algo = f.outer == Outer::kPerRow ? QuantAlgo::kFp8Channel : QuantAlgo::kFp8Tensor;
  }
  q.weight_only = q.algo == QuantAlgo::kFp8Block && !static_activations;  // FP8_PB_WO
  q.static_activations = static_activations;
  return q;
}

}  // namespace

void AddKeptModules(const checkpoint::Checkpoint& files, const std::vector<const TensorEntry*>& copied, const SourceOptions& options, checkpoint::WrittenQuant& config,
                    std::vector<std::string>& warnings) {
  for (const TensorEntry* entry : copied) {
    const auto [stem, part] = checkpoint::SplitTensorName(entry->name);
    if (part == TensorPart::kKScale || part == TensorPart::kVScale) config.kv_cache = checkpoint::KvCacheAlgo::kFp8;
    config.pre_quant_scale |= part == TensorPart::kPreQuantScale;
    const bool is_weight = part == TensorPart::kWeight || part == TensorPart::kWeightPacked || part == TensorPart::kBlocks;
    if (!is_weight || entry->shape.rank() < 2) continue;
    const std::string module(stem);
    if (tensor::IsPlainFloat(entry->dtype)) { config.kept.push_back(module); continue; }
    const SourceMatrix m = MatrixOf(files, *entry, stem);
    const base::Result<Format> format = DetectFormat(m, options);
    if (format && format->is_nvfp4()) { config.quantized.push_back(module); continue; }
    config.kept.push_back(module);
    if (format && format->is_fp8()) config.kept_quantized.emplace_back(module, QuantOf(m, *format));
    else warnings.push_back(base::StrCat(module, " keeps ", format ? format->ToString() : std::string(DTypeName(entry->dtype)), ", which the new configuration has no word for"));
  }
}

}  // namespace halfbyte::quant
