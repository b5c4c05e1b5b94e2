#include "kernels/cpu/moe/rows.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "numerics/activation_quantizer.h"
#include "numerics/bf16.h"

namespace halfbyte::kernels::cpu::moe {
namespace {

// Where value i of 8 goes in a record of INT8 codes: bytes in the order 0 4 1 5 2 6 3 7.
constexpr int kPlace[8] = {0, 2, 4, 6, 1, 3, 5, 7};

// One a thread.
struct Scratch {
  std::vector<float> row, scales;
  std::vector<uint8_t> codes, block_scales;
  std::vector<int8_t> int8;
};

void LoadRow(DType dtype, const void* x, int64_t k, bool round, std::vector<float>& row) {
  row.assign(static_cast<size_t>(RoundUp(k, kG)), 0.0f);
  if (dtype == DType::kBF16) {
    for (int64_t i = 0; i < k; ++i) row[i] = numerics::Bf16ToFloat(static_cast<const uint16_t*>(x)[i]);
    return;
  }
  HB_CHECK(dtype == DType::kF32, "rows of an expert are BF16 or F32");
  std::memcpy(row.data(), x, static_cast<size_t>(k) * 4);
  if (round) std::transform(row.begin(), row.end(), row.begin(), numerics::RoundToBf16);
}

// As plain numbers. BF16 is exact here: the values are BF16 already, or an E2M1 code times an E4M3 scale.
void StorePlain(const std::vector<float>& row, RowFormat format, std::byte* record) {
  if (format == RowFormat::kF32) {
    std::memcpy(record, row.data(), row.size() * 4);
  } else {
    std::transform(row.begin(), row.end(), reinterpret_cast<uint16_t*>(record), numerics::FloatToBf16);
  }
}

void StoreCodes(const std::vector<int8_t>& codes, std::byte* record) {
  const auto kp = static_cast<int64_t>(codes.size());
  auto* out = reinterpret_cast<int8_t*>(record);
  auto* bias = reinterpret_cast<int32_t*>(record + BiasOffset(kp));
  for (int64_t b = 0; b < kp / kG; ++b) {
    int32_t sum = 0;
    for (int64_t i = b * kG; i < (b + 1) * kG; ++i) {
      out[i / 8 * 8 + kPlace[i % 8]] = codes[i];
      sum += codes[i];
    }
    bias[b] = -12 * sum;
  }
}

void PrepareInt8(RowFormat format, Scratch& s, std::byte* record) {
  const auto kp = static_cast<int64_t>(s.row.size());
  s.int8.resize(s.row.size());
  s.scales.resize(static_cast<size_t>(numerics::Int8Groups(kp)));
  numerics::QuantizeActivationInt8(s.row.data(), 1, kp, s.int8.data(), s.scales.data());
  if (format == RowFormat::kInt8) {
    StoreCodes(s.int8, record);
    auto* scales = reinterpret_cast<float*>(record + ScaleOffset(kp));
    std::transform(s.scales.begin(), s.scales.end(), scales, [](float v) { return v * 0.5f; });  // the weights' codes are doubled
    return;
  }
  for (int64_t i = 0; i < kp; ++i) s.row[i] = static_cast<float>(s.int8[i]) * s.scales[i / numerics::kInt8Group];
  StorePlain(s.row, format, record);
}

float PrepareNvfp4(const RowForm& form, Scratch& s, std::byte* record) {
  const auto kp = static_cast<int64_t>(s.row.size());
  s.codes.resize(s.row.size() / 2);
  s.block_scales.resize(s.row.size() / kG);
  float row_scale = form.input_scale;
  if (form.form == ActivationForm::kNvfp4PerToken) {
    numerics::QuantizeActivationPerToken(s.row.data(), 1, kp, s.codes.data(), s.block_scales.data(), &row_scale);
  } else {
    numerics::QuantizeActivationPerTensor(s.row.data(), 1, kp, form.input_scale, s.codes.data(), s.block_scales.data());
  }
  for (int64_t i = 0; i < kp; ++i) {
    const uint8_t code = i % 2 ? s.codes[i / 2] >> 4 : s.codes[i / 2] & 15;
    s.row[i] = numerics::E2m1ToFloat(code);
  }
  if (form.format == RowFormat::kNvfp4) {
    s.int8.resize(s.row.size());
    for (int64_t i = 0; i < kp; ++i) s.int8[i] = static_cast<int8_t>(2 * s.row[i]);
    StoreCodes(s.int8, record);
    auto* scales = reinterpret_cast<float*>(record + ScaleOffset(kp));
    for (int64_t b = 0; b < kp / kG; ++b) scales[b] = numerics::E4m3ToFloat(s.block_scales[b]) * 0.25f;  // both codes are doubled
  } else {
    for (int64_t i = 0; i < kp; ++i) s.row[i] *= numerics::E4m3ToFloat(s.block_scales[i / kG]);
    StorePlain(s.row, form.format, record);
  }
  return row_scale;
}

}  // namespace

float PrepareRow(const RowForm& form, DType dtype, const void* x, int64_t k, std::byte* record) {
  thread_local Scratch s;
  LoadRow(dtype, x, k, form.round, s.row);
  switch (form.form) {
    case ActivationForm::kPlain:
      StorePlain(s.row, form.format, record);
      return 1.0f;
    case ActivationForm::kInt8Groups:
      PrepareInt8(form.format, s, record);
      return 1.0f;
    case ActivationForm::kNvfp4PerToken:
    case ActivationForm::kNvfp4Static:
      return PrepareNvfp4(form, s, record);
  }
  return 1.0f;
}

}  // namespace halfbyte::kernels::cpu::moe
