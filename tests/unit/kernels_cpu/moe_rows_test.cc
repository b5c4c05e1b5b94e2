// Records of rows against src/numerics, byte by byte, for every form, format and instruction set.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/cpu/moe/kernel.h"
#include "numerics/activation_quantizer.h"
#include "numerics/bf16.h"
#include "platform/cpu_features.h"
#include "support/random_data.h"

namespace halfbyte::test {
namespace {

using namespace kernels::cpu::moe;  // NOLINT: the names of kernel.h

using Record = std::vector<std::byte>;

template <typename T>
void Append(Record& record, const std::vector<T>& values) {
  const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
  record.insert(record.end(), bytes, bytes + values.size() * sizeof(T));
}

// Plain numbers; `codes` in the order 0 4 1 5 2 6 3 7 with their sums, and scales.
Record Plain(const std::vector<float>& values, RowFormat format) {
  Record record;
  if (format == RowFormat::kF32) Append(record, values);
  std::vector<uint16_t> half(values.size());
  std::transform(values.begin(), values.end(), half.begin(), numerics::FloatToBf16);
  if (format == RowFormat::kBf16) Append(record, half);
  return record;
}

Record Codes(const std::vector<int8_t>& codes, const std::vector<float>& scales) {
  constexpr int kOrder[8] = {0, 4, 1, 5, 2, 6, 3, 7};
  std::vector<int8_t> ordered(codes.size());
  std::vector<int32_t> bias(codes.size() / 16);
  for (size_t i = 0; i < codes.size(); ++i) {
    ordered[i] = codes[i / 8 * 8 + kOrder[i % 8]];
    bias[i / 16] += (i % 16 == 0 ? kMagic : 0) - 12 * codes[i];
  }
  Record record;
  Append(record, ordered);
  Append(record, bias);
  Append(record, scales);
  return record;
}

// What the contract says a record holds; *factor is the row's.
Record Expected(const PrepareCall& c, float* factor) {
  const auto kp = static_cast<size_t>(RoundUp(c.k, 16));
  std::vector<float> row(kp);
  for (int64_t i = 0; i < c.k; ++i) {
    row[i] = c.bf16 ? numerics::Bf16ToFloat(static_cast<const uint16_t*>(c.x)[i]) : static_cast<const float*>(c.x)[i];
    if (c.round) row[i] = numerics::RoundToBf16(row[i]);
  }
  *factor = 1.0f;
  if (c.form == Form::kPlain) return Plain(row, c.format);
  if (c.form == Form::kInt8) {
    std::vector<int8_t> codes(kp);
    std::vector<float> scales((kp + 31) / 32);
    numerics::QuantizeActivationInt8(row.data(), 1, static_cast<int64_t>(kp), codes.data(), scales.data());
    if (c.format == RowFormat::kF32) {
      for (size_t i = 0; i < kp; ++i) row[i] = static_cast<float>(codes[i]) * scales[i / 32];
      return Plain(row, c.format);
    }
    for (float& s : scales) s *= 0.5f;
    return Codes(codes, scales);
  }
  std::vector<uint8_t> packed(kp / 2), block_scales(kp / 16);
  if (c.form == Form::kNvfp4PerToken) {
    numerics::QuantizeActivationPerToken(row.data(), 1, static_cast<int64_t>(kp), packed.data(), block_scales.data(), factor);
  } else {
    numerics::QuantizeActivationPerTensor(row.data(), 1, static_cast<int64_t>(kp), c.input_scale, packed.data(), block_scales.data());
    *factor = c.input_scale;
  }
  std::vector<int8_t> codes(kp);
  std::vector<float> scales(kp / 16);
  for (size_t i = 0; i < kp; ++i) {
    const float value = numerics::E2m1ToFloat(i % 2 ? packed[i / 2] >> 4 : packed[i / 2] & 15);
    codes[i] = static_cast<int8_t>(2 * value);
    scales[i / 16] = numerics::E4m3ToFloat(block_scales[i / 16]) * 0.25f;
    row[i] = static_cast<float>(codes[i]) * 0.5f * numerics::E4m3ToFloat(block_scales[i / 16]);
  }
  return c.format == RowFormat::kNvfp4 ? Codes(codes, scales) : Plain(row, c.format);
}

struct Machine {
  const char* name;
  bool runs;
  float (*prepare)(const PrepareCall&);
};
std::vector<Machine> Machines() {
  return {{"avx2", platform::Cpu().HasAvx2(), PrepareRowAvx2}, {"avx512", platform::Cpu().HasAvx512(), PrepareRowAvx512}};
}

void Check(PrepareCall c) {
  float want_factor = 0;
  const Record want = Expected(c, &want_factor);
  for (const Machine& m : Machines()) {
    if (!m.runs) continue;
    Record got(static_cast<size_t>(RecordBytes(c.format, RoundUp(c.k, 16))), std::byte{0x77});
    c.record = got.data();
    EXPECT_EQ(m.prepare(c), want_factor) << m.name;
    got.resize(want.size());
    ASSERT_EQ(std::memcmp(got.data(), want.data(), want.size()), 0) << m.name << ", form " << static_cast<int>(c.form) << ", format " << static_cast<int>(c.format) << ", k " << c.k
                                                                    << ", first difference at byte " << std::mismatch(got.begin(), got.end(), want.begin()).first - got.begin();
  }
}

void CheckRow(const float* x, int64_t k, float input_scale) {
  std::vector<uint16_t> half(static_cast<size_t>(k));
  std::transform(x, x + k, half.begin(), numerics::FloatToBf16);
  for (const bool bf16 : {false, true}) {
    for (const bool round : {false, true}) {
      PrepareCall c{.input_scale = input_scale, .bf16 = bf16, .x = bf16 ? static_cast<const void*>(half.data()) : x, .k = k};
      c.round = round && !bf16;
      for (const RowFormat format : {RowFormat::kF32, RowFormat::kBf16}) {
        if (format == RowFormat::kBf16 && !bf16 && !round) continue;  // nobody asks for a silent rounding
        c.form = Form::kPlain;
        c.format = format;
        Check(c);
      }
      if (k % 16 != 0) continue;
      for (const auto& [form, format] : {std::pair{Form::kInt8, RowFormat::kInt8}, {Form::kInt8, RowFormat::kF32}, {Form::kNvfp4PerToken, RowFormat::kNvfp4},
                                         {Form::kNvfp4PerToken, RowFormat::kBf16}, {Form::kNvfp4PerToken, RowFormat::kF32}, {Form::kNvfp4Static, RowFormat::kNvfp4},
                                         {Form::kNvfp4Static, RowFormat::kBf16}, {Form::kNvfp4Static, RowFormat::kF32}}) {
        c.form = form;
        c.format = format;
        Check(c);
      }
    }
  }
}

TEST(MoeRows, RecordsAreThoseOfNumerics) {
  for (const int64_t k : {16, 32, 48, 272, 768, 40, 7}) {
    const auto rows = AwkwardRows(40, k, static_cast<uint64_t>(k));
    for (int64_t r = 0; r < 40; ++r) CheckRow(rows.data() + r * k, k, r % 2 ? 1.0f : 0.00123f);
  }
}

// Values on and beside every border: E2M1 ties under exact scales, E4M3 ties and its subnormals, saturation, INT8 halves.
TEST(MoeRows, TiesAndExtremes) {
  Random random(3);
  for (int i = 0; i < 3000; ++i) {
    std::vector<float> x(32);
    const int exponent = static_cast<int>(random.Below(i % 3 == 0 ? 240 : 24)) - (i % 3 == 0 ? 120 : 12);
    for (float& v : x) {
      v = std::ldexp(static_cast<float>(random.Below(65) - 32) * 0.25f, exponent);
      if (random.Below(4) == 0) v = std::nextafter(v, random.Below(2) ? 1e30f : -1e30f);
    }
    if (random.Below(5) == 0) x[random.Below(32)] = std::ldexp(1.0f, static_cast<int>(random.Below(250)) - 125);
    CheckRow(x.data(), 32, i % 4 ? 1.0f : std::ldexp(1.0f + static_cast<float>(random.Uniform()), static_cast<int>(random.Below(20)) - 10));
  }
}

}  // namespace
}  // namespace halfbyte::test
