#include "kernels/cpu/packed_linear.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "numerics/bf16.h"
#include "numerics/e4m3.h"
#include "numerics/fp16.h"

namespace halfbyte::kernels::cpu {
namespace {

using base::ErrorCode;
using tensor::Outer;

float LoadPlain(const void* data, DType dtype, int64_t i) {
  switch (dtype) {
    case DType::kF32:
      return static_cast<const float*>(data)[i];
    case DType::kBF16:
      return numerics::Bf16ToFloat(static_cast<const uint16_t*>(data)[i]);
    default:
      return numerics::Fp16ToFloat(static_cast<const uint16_t*>(data)[i]);
  }
}

// body(row, first column, last column + 1) over patches of a panel's rows and 128 columns: a row writes 4 bytes of every line of its
// panel, and by patches the lines stay in the L1 cache until all 16 rows have written theirs (five times as fast as row after row).
template <typename Body>
void ForPatches(int64_t row_begin, int64_t rows, int64_t k, Body body) {
  constexpr int64_t kColumns = 128;
  const int64_t end = row_begin + rows;
  for (int64_t first = row_begin; first < end;) {
    const int64_t last = std::min((first / kPanelRows + 1) * kPanelRows, end);
    for (int64_t c = 0; c < k; c += kColumns)
      for (int64_t row = first; row < last; ++row) body(row, c, std::min(c + kColumns, k));
    first = last;
  }
}

// Not 0 where one of the four bytes is 0.
uint32_t ZeroBytes(uint32_t v) { return (v - 0x01010101) & ~v & 0x80808080; }

int64_t RoundUp(int64_t a, int64_t b) { return (a + b - 1) / b * b; }

bool IsPlainOf(const Format& f, DType a, DType b) { return f.is_plain() && (f.elem == a || f.elem == b); }

// Sizes and strides of a matrix; pointers are filled in by Create.
LinearView Describe(const Format& f, int64_t n, int64_t k) {
  LinearView v;
  v.n = n;
  v.k = k;
  v.panels = (n + kPanelRows - 1) / kPanelRows;
  if (f.is_nvfp4()) {
    v.kind = LinearKind::kNvfp4;
    v.k_padded = RoundUp(k, 64);
    v.panel_bytes = v.k_padded / 64 * kNvfp4GroupBytes;
  } else if (f.is_fp8()) {
    v.kind = LinearKind::kFp8;
    v.k_padded = RoundUp(k, 4);
    v.panel_bytes = v.k_padded * kPanelRows;
    v.scale_k = f.block_scale && f.block_cols < k ? f.block_cols : std::max<int64_t>(v.k_padded, 4);
    v.scale_blocks = std::max<int64_t>(1, (v.k_padded + v.scale_k - 1) / v.scale_k);
    v.scale_per_row = f.outer == Outer::kPerRow || (f.block_scale && f.block_rows % kPanelRows != 0);
    v.small_words = (v.k_padded + 64 * kSmallCodeGroup - 1) / (64 * kSmallCodeGroup);
  } else if (f.elem == DType::kF32) {
    v.kind = LinearKind::kF32;
    v.k_padded = k;
    v.panel_bytes = k * kPanelRows * 4;
  } else {
    v.kind = LinearKind::kBf16;
    v.k_padded = RoundUp(k, 2);
    v.panel_bytes = v.k_padded * kPanelRows * 2;
  }
  return v;
}

int64_t ScaleFloats(const LinearView& v) {
  return v.kind == LinearKind::kFp8 ? v.panels * v.scale_blocks * (v.scale_per_row ? kPanelRows : 1) : 0;
}

}  // namespace

base::Status PackedLinear::Supports(const Format& f) {
  if (IsPlainOf(f, DType::kF32, DType::kBF16)) return {};
  if (f.is_nvfp4() && f.block_rows == 1 && f.block_cols == 16 && f.outer == Outer::kPerTensor) return {};
  if (f.elem == DType::kF8E4M3) {
    if (f.block_scale == DType::kF32 && f.outer == Outer::kNone && f.block_rows > 0 && f.block_cols % 4 == 0 && f.block_cols > 0)
      return {};
    if (!f.block_scale && f.outer != Outer::kNone) return {};
  }
  return base::Fail(base::Error(ErrorCode::kUnsupported, base::StrCat("the cpu backend has no dense kernel for ", f.ToString()))
                        .Hint("convert the tensor to BF16 while loading"));
}

int64_t PackedLinear::Bytes(const Format& format, int64_t n, int64_t k) {
  LinearView v = Describe(format, n, k);
  return v.panels * v.panel_bytes + ScaleFloats(v) * 4 + v.panels * v.small_words * 8;
}

base::Result<std::unique_ptr<PackedLinear>> PackedLinear::Create(const Format& format, int64_t n, int64_t k) {
  HB_RETURN_IF_ERROR(Supports(format));
  if (format.is_nvfp4() && k % 16 != 0)
    return base::Fail(ErrorCode::kUnsupported, "NVFP4 needs a multiple of 16 columns, the matrix has ", k);
  auto w = std::make_unique<PackedLinear>();
  w->format_ = format;
  LinearView& v = w->view_;
  v = Describe(format, n, k);
  HB_ASSIGN_OR_RETURN(w->data_, tensor::Buffer::Host(static_cast<size_t>(v.panels * v.panel_bytes)));
  HB_ASSIGN_OR_RETURN(w->scales_, tensor::Buffer::Host(static_cast<size_t>(ScaleFloats(v)) * 4));
  HB_ASSIGN_OR_RETURN(w->small_codes_, tensor::Buffer::Host(static_cast<size_t>(v.panels * v.small_words) * 8));
  v.data = w->data_.as<std::byte>();
  v.scales = w->scales_.as<float>();
  v.small_codes = w->small_codes_.as<uint64_t>();
  w->MarkPaddingSmall();
  return w;
}

void PackedLinear::CopyFrom(const LinearWeight& same) {
  const auto& other = static_cast<const PackedLinear&>(same);
  HB_CHECK(format_ == other.format_ && n() == other.n() && k() == other.k(), "a weight of another shape or format");
  data_.CopyHost(other.data_);
  scales_.CopyHost(other.scales_);
  small_codes_.CopyHost(other.small_codes_);
  view_.outer = other.view_.outer;
  SetInputScale(other.input_scale());
}

void PackedLinear::Drop() {
  data_.DropHost();
  scales_.DropHost();
  small_codes_.DropHost();
}

// Padding is made of zero codes, which count as small.
void PackedLinear::MarkPaddingSmall() {
  if (view_.kind != LinearKind::kFp8 || view_.panels == 0) return;
  auto* words = small_codes_.as<uint64_t>();
  if (view_.n % kPanelRows != 0)
    for (int64_t i = 0; i < view_.small_words; ++i) words[(view_.panels - 1) * view_.small_words + i] = ~uint64_t{0};
  if (int64_t g = view_.k / kSmallCodeGroup; view_.k_padded != view_.k)
    for (int64_t p = 0; p < view_.panels; ++p) words[p * view_.small_words + g / 64] |= uint64_t{1} << (g % 64);
}

base::Status PackedLinear::Pack(int64_t row_begin, const QuantizedMatrix& part) {
  HB_CHECK(0 <= row_begin && row_begin + part.rows <= view_.n && part.cols == view_.k, "rows ", row_begin, " + ", part.rows,
           " of [", view_.n, ", ", view_.k, "], columns ", part.cols);
  if (format_.is_plain()) {
    HB_CHECK(part.format.is_plain() && (part.format.elem == DType::kF16 || IsPlainOf(part.format, DType::kF32, DType::kBF16)),
             part.format.ToString());
    PackPlain(row_begin, part);
    return {};
  }
  HB_CHECK(part.format == format_, part.format.ToString(), " into ", format_.ToString());
  return format_.is_nvfp4() ? PackNvfp4(row_begin, part) : PackFp8(row_begin, part);
}

void PackedLinear::PackPlain(int64_t row_begin, const QuantizedMatrix& part) {
  const DType from = part.format.elem;
  const bool copy = from == (view_.kind == LinearKind::kF32 ? DType::kF32 : DType::kBF16);
  ForPatches(row_begin, part.rows, view_.k, [&](int64_t row, int64_t begin, int64_t end) {
    const int64_t lane = row % kPanelRows, first = (row - row_begin) * view_.k;
    std::byte* panel = data_.as<std::byte>() + row / kPanelRows * view_.panel_bytes;
    auto value = [&](int64_t i) { return LoadPlain(part.elements, from, first + i); };
    if (view_.kind == LinearKind::kF32) {
      auto* out = reinterpret_cast<float*>(panel) + lane;
      auto* in = static_cast<const float*>(part.elements) + first;
      if (copy) for (int64_t i = begin; i < end; ++i) out[i * kPanelRows] = in[i];
      else for (int64_t i = begin; i < end; ++i) out[i * kPanelRows] = value(i);
      return;
    }
    auto* out = reinterpret_cast<uint16_t*>(panel) + 2 * lane;
    int64_t i = begin;
    if (copy)  // pairs at once
      for (auto* in = static_cast<const uint16_t*>(part.elements) + first; i + 2 <= end; i += 2) std::memcpy(out + i * kPanelRows, in + i, 4);
    for (; i < end; ++i) out[i / 2 * 2 * kPanelRows + i % 2] = numerics::FloatToBf16(value(i));
  });
}

base::Status PackedLinear::PackFp8(int64_t row_begin, const QuantizedMatrix& part) {
  int64_t bad = -1;  // row of a NaN
  ForPatches(row_begin, part.rows, view_.k, [&](int64_t row, int64_t begin, int64_t end) {
    auto* in = static_cast<const uint8_t*>(part.elements) + (row - row_begin) * view_.k;
    auto* out = reinterpret_cast<uint32_t*>(data_.as<std::byte>() + row / kPanelRows * view_.panel_bytes) + row % kPanelRows;
    uint64_t* flags = small_codes_.as<uint64_t>() + row / kPanelRows * view_.small_words;
    for (int64_t group = begin; group < end; group += kSmallCodeGroup) {
      uint32_t small = 0, nan = 0;
      for (int64_t i = group; i < std::min(group + kSmallCodeGroup, end); i += 4) {
        uint32_t codes = 0;  // bytes behind the last column are zero codes, and small
        if (i + 4 <= view_.k) std::memcpy(&codes, in + i, 4);
        else std::memcpy(&codes, in + i, static_cast<size_t>(view_.k - i));
        small |= ZeroBytes(codes & 0x78787878);
        nan |= ZeroBytes((codes & 0x7F7F7F7F) ^ 0x7F7F7F7F);
        // Columns k to k + 3 become the bytes k+2, k, k+3, k+1.
        out[i / 4 * kPanelRows] = (codes >> 16 & 0xFF) | (codes & 0xFF) << 8 | (codes >> 8 & 0xFF0000) | (codes & 0xFF00) << 16;
      }
      if (nan) bad = row;
      const int64_t g = group / kSmallCodeGroup;
      if (small) std::atomic_ref(flags[g / 64]).fetch_or(uint64_t{1} << (g % 64), std::memory_order_relaxed);
    }
  });
  if (bad >= 0) return base::Fail(ErrorCode::kBadFile, "row ", bad, " has a NaN");
  PackFp8Scales(row_begin, part);
  return {};
}

void PackedLinear::PackFp8Scales(int64_t row_begin, const QuantizedMatrix& part) {
  auto* blocks = static_cast<const float*>(part.block_scales);
  for (int64_t r = 0; r < part.rows; ++r) {
    int64_t row = row_begin + r, panel = row / kPanelRows;
    for (int64_t b = 0; b < view_.scale_blocks; ++b) {
      float s =
          blocks ? blocks[r / format_.block_rows * view_.scale_blocks + b] : part.outer[format_.outer == Outer::kPerRow ? r : 0];
      int64_t i = panel * view_.scale_blocks + b;
      // Parts of one tensor may meet inside a panel and both write its shared scale: the same value.
      std::atomic_ref(scales_.as<float>()[view_.scale_per_row ? i * kPanelRows + row % kPanelRows : i])
          .store(s, std::memory_order_relaxed);
    }
  }
}

base::Status PackedLinear::PackNvfp4(int64_t row_begin, const QuantizedMatrix& part) {
  const int64_t blocks = view_.k / 16;
  for (int64_t r = 0; r < part.rows; ++r) {
    int64_t row = row_begin + r, lane = row % kPanelRows;
    std::byte* panel = data_.as<std::byte>() + row / kPanelRows * view_.panel_bytes;
    auto* scales = static_cast<const uint8_t*>(part.block_scales) + r * blocks;
    auto* codes = static_cast<const uint8_t*>(part.elements) + r * view_.k / 2;
    for (int64_t b = 0; b < blocks; ++b) {
      if (scales[b] >= 0x7F)
        return base::Fail(ErrorCode::kBadFile, "row ", row, ", block ", b, ": the block scale is NaN or negative");
      std::byte* group = panel + b / 4 * kNvfp4GroupBytes;
      group[b % 4 * 16 + lane] = static_cast<std::byte>(scales[b]);
      auto* out = reinterpret_cast<uint32_t*>(group + 64 + b % 4 * 128) + lane;
      for (int v = 0; v < 2; ++v) {
        uint32_t word = 0;
        for (int j = 0; j < 4; ++j) {
          uint32_t two = codes[b * 8 + v * 4 + j];  // column 8v + 2j low, 8v + 2j + 1 high
          word |= (two & 0xF) << (4 * j) | (two >> 4) << (16 + 4 * j);
        }
        out[v * 16] = word;
      }
    }
  }
  std::atomic_ref(view_.outer).store(part.outer[0], std::memory_order_relaxed);
  return {};
}

base::Result<std::unique_ptr<PackedEmbedding>> PackedEmbedding::Create(DType dtype, int64_t vocab, int64_t d) {
  if (dtype != DType::kF32 && dtype != DType::kBF16)
    return base::Fail(ErrorCode::kUnsupported, "an embedding of ", tensor::DTypeName(dtype),
                      "; the cpu backend keeps BF16 or F32");
  auto e = std::make_unique<PackedEmbedding>();
  e->dtype_ = dtype;
  e->vocab_ = vocab;
  e->d_ = d;
  HB_ASSIGN_OR_RETURN(e->rows_, tensor::Buffer::Host(static_cast<size_t>(e->bytes())));
  return e;
}

base::Status PackedEmbedding::Pack(int64_t row_begin, const Matrix& part) {
  HB_CHECK(0 <= row_begin && row_begin + part.rows <= vocab_ && part.cols == d_);
  HB_CHECK(part.dtype == DType::kF32 || part.dtype == DType::kBF16 || part.dtype == DType::kF16, tensor::DTypeName(part.dtype));
  const int64_t in_bytes = tensor::DTypeBits(part.dtype) / 8, out_bytes = tensor::DTypeBits(dtype_) / 8;
  for (int64_t r = 0; r < part.rows; ++r) {
    const std::byte* in = static_cast<const std::byte*>(part.data) + r * part.ld * in_bytes;
    std::byte* out = rows_.as<std::byte>() + (row_begin + r) * d_ * out_bytes;
    if (part.dtype == dtype_) {
      std::memcpy(out, in, static_cast<size_t>(d_ * out_bytes));
      continue;
    }
    for (int64_t i = 0; i < d_; ++i) {
      float f = LoadPlain(in, part.dtype, i);
      if (dtype_ == DType::kF32) reinterpret_cast<float*>(out)[i] = f;
      else reinterpret_cast<uint16_t*>(out)[i] = numerics::FloatToBf16(f);
    }
  }
  return {};
}

}  // namespace halfbyte::kernels::cpu
