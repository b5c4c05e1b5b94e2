#include "text/code_points.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/check.h"

namespace halfbyte::text {
namespace {

using Expr = GrammarBuilder::Expr;

constexpr uint32_t kLast = 0x10FFFF;

// Bytes of a code point; returns their number.
int Encode(uint32_t c, std::array<uint8_t, 4>& out) {
  if (c < 0x80) { out = {static_cast<uint8_t>(c)}; return 1; }
  if (c < 0x800) { out = {static_cast<uint8_t>(0xC0 | c >> 6), static_cast<uint8_t>(0x80 | (c & 63))}; return 2; }
  if (c < 0x10000) { out = {static_cast<uint8_t>(0xE0 | c >> 12), static_cast<uint8_t>(0x80 | (c >> 6 & 63)), static_cast<uint8_t>(0x80 | (c & 63))}; return 3; }
  out = {static_cast<uint8_t>(0xF0 | c >> 18), static_cast<uint8_t>(0x80 | (c >> 12 & 63)), static_cast<uint8_t>(0x80 | (c >> 6 & 63)), static_cast<uint8_t>(0x80 | (c & 63))};
  return 4;
}

// Splits [low, high], all of one length, into pieces that are products of byte ranges.
void SplitByBytes(uint32_t low, uint32_t high, int trailing, GrammarBuilder& b, std::vector<Expr>& out) {
  for (int i = 1; i <= trailing; ++i) {
    const uint32_t mask = (uint32_t{1} << (6 * i)) - 1;
    if ((low & ~mask) == (high & ~mask)) continue;
    if ((low & mask) != 0) {
      SplitByBytes(low, low | mask, trailing, b, out);
      return SplitByBytes((low | mask) + 1, high, trailing, b, out);
    }
    if ((high & mask) != mask) {
      SplitByBytes(low, (high & ~mask) - 1, trailing, b, out);
      return SplitByBytes(high & ~mask, high, trailing, b, out);
    }
  }
  std::array<uint8_t, 4> first{}, last{};
  const int n = Encode(low, first);
  Encode(high, last);
  std::vector<Expr> bytes;
  for (int i = 0; i < n; ++i) bytes.push_back(b.ByteRange(first[static_cast<size_t>(i)], last[static_cast<size_t>(i)]));
  out.push_back(bytes.size() == 1 ? bytes[0] : b.Sequence(std::move(bytes)));
}

void AddUtf8(const CodePoints& set, GrammarBuilder& b, std::vector<Expr>& out) {
  struct Length { uint32_t low, high; int trailing; };
  for (const CodePointRange& r : set.ranges())
    for (const Length& l : {Length{0, 0x7F, 0}, Length{0x80, 0x7FF, 1}, Length{0x800, 0xFFFF, 2}, Length{0x10000, kLast, 3}})
      if (r.low <= l.high && l.low <= r.high) SplitByBytes(std::max(r.low, l.low), std::min(r.high, l.high), l.trailing, b, out);
}

}  // namespace

CodePoints::CodePoints(std::vector<CodePointRange> ranges) {
  std::vector<CodePointRange> kept;
  for (const CodePointRange& r : ranges) {  // surrogates have no UTF-8
    if (r.low < 0xD800) kept.push_back({r.low, std::min(r.high, 0xD7FFu)});
    if (r.high > 0xDFFF) kept.push_back({std::max(r.low, 0xE000u), std::min(r.high, kLast)});
  }
  std::sort(kept.begin(), kept.end(), [](const CodePointRange& a, const CodePointRange& b) { return a.low < b.low; });
  for (const CodePointRange& r : kept) {
    if (r.low > r.high) continue;
    if (!ranges_.empty() && r.low <= ranges_.back().high + 1) ranges_.back().high = std::max(ranges_.back().high, r.high);
    else ranges_.push_back(r);
  }
}

CodePoints CodePoints::Complement() const {
  std::vector<CodePointRange> out;
  uint32_t next = 0;
  for (const CodePointRange& r : ranges_) {
    if (r.low > next) out.push_back({next, r.low - 1});
    next = r.high + 1;
  }
  if (next <= kLast) out.push_back({next, kLast});
  return CodePoints(std::move(out));
}

void CodePoints::Add(const CodePoints& other) {
  std::vector<CodePointRange> all = ranges_;
  all.insert(all.end(), other.ranges_.begin(), other.ranges_.end());
  *this = CodePoints(std::move(all));
}

CodePoints CodePoints::Without(const CodePoints& other) const {
  CodePoints kept = Complement();
  kept.Add(other);
  return kept.Complement();
}

bool CodePoints::Contains(uint32_t c) const {
  return std::any_of(ranges_.begin(), ranges_.end(), [c](const CodePointRange& r) { return r.low <= c && c <= r.high; });
}

Expr Utf8Expr(GrammarBuilder& builder, const CodePoints& set) {
  HB_CHECK(!set.empty(), "a character out of none");
  std::vector<Expr> out;
  AddUtf8(set, builder, out);
  return builder.Choice(std::move(out));
}

Expr JsonStringExpr(GrammarBuilder& builder, const CodePoints& set) {
  HB_CHECK(!set.empty(), "a character out of none");
  static const CodePoints escaped({{0, 0x1F}, {'"', '"'}, {'\\', '\\'}});
  std::vector<Expr> out;
  AddUtf8(set.Without(escaped), builder, out);
  for (const CodePointRange& r : escaped.ranges()) {
    for (uint32_t c = r.low; c <= r.high; ++c) {
      if (!set.Contains(c)) continue;
      switch (c) {
        case '"': out.push_back(builder.Literal("\\\"")); break;
        case '\\': out.push_back(builder.Literal("\\\\")); break;
        case '\b': out.push_back(builder.Literal("\\b")); break;
        case '\f': out.push_back(builder.Literal("\\f")); break;
        case '\n': out.push_back(builder.Literal("\\n")); break;
        case '\r': out.push_back(builder.Literal("\\r")); break;
        case '\t': out.push_back(builder.Literal("\\t")); break;
        default: {
          char text[8];
          std::snprintf(text, sizeof text, "\\u%04x", c);
          out.push_back(builder.Literal(text));
        }
      }
    }
  }
  return builder.Choice(std::move(out));
}

}  // namespace halfbyte::text
