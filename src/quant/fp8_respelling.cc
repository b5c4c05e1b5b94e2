#include "quant/fp8_respelling.h"

#include <algorithm>

namespace halfbyte::quant {
namespace {

using checkpoint::LayerQuant;
using checkpoint::QuantAlgo;
using tensor::DType;
using tensor::Shape;

base::Status NoForm(const TensorEntry& entry, std::string_view what) {
  return base::Fail(base::Error(base::ErrorCode::kUnsupported, base::StrCat("tensor ", entry.name, ": compressed-tensors has no form for ", what))
                        .Hint("--format modelopt keeps the layer as it is"));
}

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The shape that the dialect wants of a weight [out, in]'s scale.
Shape ScaleShape(const LayerQuant& quant, int64_t out, int64_t in) {
  switch (quant.algo) {
    case QuantAlgo::kFp8Channel: return Shape({out, 1});
    case QuantAlgo::kFp8Block: return Shape({CeilDiv(out, quant.block[0]), CeilDiv(in, quant.block[1])});
    case QuantAlgo::kMxfp8: return Shape({out, in / 32});
    default: return Shape({1});
  }
}

class Respelling {
 public:
  Respelling(const checkpoint::Checkpoint& files, ExportPlan& plan) : files_(files), plan_(plan) {
    for (checkpoint::TensorDeclaration& d : plan.tensors) declared_.emplace(d.name, &d);
  }

  base::Status Module(const std::string& module, const LayerQuant& quant) {
    const TensorEntry* weight = files_.Find(module + ".weight");
    if (!weight || weight->shape.rank() != 2) return NoForm(weight ? *weight : *files_.Find(module), "FP8 experts in one stacked tensor");
    if (weight->dtype != DType::kF8E4M3) return NoForm(*weight, DTypeName(weight->dtype));
    for (const char* ending : {".weight_scale_inv", ".weight_scale", ".scale"}) {
      const TensorEntry* scale = files_.Find(module + ending);
      if (!scale) continue;
      const bool mx = quant.algo == QuantAlgo::kMxfp8;
      if (!mx && !tensor::IsPlainFloat(scale->dtype)) return NoForm(*scale, base::StrCat(DTypeName(scale->dtype), " scales of this kind"));
      HB_RETURN_IF_ERROR(Write(*scale, module + ".weight_scale", ScaleShape(quant, weight->shape[0], weight->shape[1]), mx ? DType::kU8 : scale->dtype));
      break;
    }
    if (const TensorEntry* input = files_.Find(module + ".input_scale")) return Write(*input, input->name, Shape({1}), input->dtype);
    return {};
  }

 private:
  // A copied tensor under another name, shape and type; the number of bytes is the file's.
  base::Status Write(const TensorEntry& entry, std::string name, Shape shape, DType dtype) {
    if (shape.elements() != entry.shape.elements())
      return base::Fail(base::ErrorCode::kBadFile, "tensor ", entry.name, ": shape ", entry.shape.ToString(), ", ", shape.ToString(), " is wanted");
    HB_CHECK(tensor::DTypeBits(dtype) == tensor::DTypeBits(entry.dtype), entry.name);
    checkpoint::TensorDeclaration& d = *declared_.at(entry.name);
    d.name = name;
    d.dtype = dtype;
    d.shape = std::move(shape);
    if (name != entry.name) plan_.renamed.emplace(&entry, std::move(name));
    return {};
  }

  const checkpoint::Checkpoint& files_;
  ExportPlan& plan_;
  std::map<std::string, checkpoint::TensorDeclaration*> declared_;
};

}  // namespace

base::Status RespellKeptFp8(const checkpoint::Checkpoint& files, ExportPlan& plan) {
  Respelling respelling(files, plan);
  for (const auto& [module, quant] : plan.config.kept_quantized) HB_RETURN_IF_ERROR(respelling.Module(module, quant));
  return {};
}

}  // namespace halfbyte::quant
