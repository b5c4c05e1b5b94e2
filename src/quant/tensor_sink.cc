#include "quant/tensor_sink.h"

namespace halfbyte::quant {
namespace {

std::span<const std::byte> Bytes(const void* data, int64_t n) { return {static_cast<const std::byte*>(data), static_cast<size_t>(n)}; }

}  // namespace

base::Status TensorSink::PutMatrix(const TensorId& id, int64_t row_begin, const tensor::QuantizedMatrix& part) {
  HB_CHECK(part.format == Format::Nvfp4(), part.format.ToString());
  const ExportedMatrix& e = plan_.written.at(id);
  const Nvfp4Dialect& d = DialectOf(plan_.format);
  const int64_t code_row = part.cols / 2, scale_row = part.cols / 16;
  HB_RETURN_IF_ERROR(writer_.Write(base::StrCat(e.module, d.weight), Bytes(part.elements, part.rows * code_row), static_cast<uint64_t>(row_begin * code_row)));
  HB_RETURN_IF_ERROR(writer_.Write(base::StrCat(e.module, d.scale), Bytes(part.block_scales, part.rows * scale_row), static_cast<uint64_t>(row_begin * scale_row)));
  if (plan_.load.matrices[static_cast<size_t>(e.matrix)].action == Action::kReuse) return {};
  const float outer = d.divisors ? 1.0f / *part.outer : *part.outer;
  return writer_.Write(base::StrCat(e.module, d.outer), Bytes(&outer, sizeof outer));
}

base::Status TensorSink::PutVector(const TensorId& id, TensorPart, std::span<const float>) {
  HB_CHECK(false, id.ToString(), ": vectors are copied, not put");
  return {};
}

}  // namespace halfbyte::quant
