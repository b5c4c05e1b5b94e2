#include "text/json_schema_number.h"

#include <algorithm>
#include <string>
#include <vector>

namespace halfbyte::text {
namespace {

using Expr = GrammarBuilder::Expr;

constexpr int64_t kMost = 999'999'999'999'999;  // 15 digits: every double can tell them apart
constexpr int64_t kFractionDigits = 16;

Expr Digits(GrammarBuilder& b, int64_t n) { return b.Repeat(b.ByteRange('0', '9'), n, n); }

// Digit strings of equal length from `low` to `high`, compared as numbers.
Expr SameLength(GrammarBuilder& b, const std::string& low, const std::string& high) {
  if (low.find_first_not_of('0') == std::string::npos && high.find_first_not_of('9') == std::string::npos) return Digits(b, static_cast<int64_t>(low.size()));
  const std::string low_rest = low.substr(1), high_rest = high.substr(1);
  if (low[0] == high[0]) return b.Sequence({b.Literal(low.substr(0, 1)), SameLength(b, low_rest, high_rest)});
  const int64_t n = static_cast<int64_t>(low_rest.size());
  std::vector<Expr> out = {b.Sequence({b.Literal(low.substr(0, 1)), SameLength(b, low_rest, std::string(low_rest.size(), '9'))}),
                           b.Sequence({b.Literal(high.substr(0, 1)), SameLength(b, std::string(high_rest.size(), '0'), high_rest)})};
  if (low[0] + 1 < high[0]) out.push_back(b.Sequence({b.ByteRange(static_cast<uint8_t>(low[0] + 1), static_cast<uint8_t>(high[0] - 1)), Digits(b, n)}));
  return b.Choice(std::move(out));
}

// 0 <= low <= high.
Expr Between(GrammarBuilder& b, int64_t low, int64_t high) {
  const std::string first = std::to_string(low), last = std::to_string(high);
  std::vector<Expr> out;
  for (size_t n = first.size(); n <= last.size(); ++n)
    out.push_back(SameLength(b, n == first.size() ? first : "1" + std::string(n - 1, '0'), n == last.size() ? last : std::string(n, '9')));
  return b.Choice(std::move(out));
}

// Non-negative decimals from low to high; either end may be excluded.
std::optional<Expr> DecimalsBetween(GrammarBuilder& b, int64_t low, bool above_low, int64_t high, bool below_high) {
  const Expr digit = b.ByteRange('0', '9');
  const Expr fraction = b.Sequence({b.Literal("."), b.Repeat(digit, 1, kFractionDigits)});
  const Expr zeros = b.Sequence({b.Literal("."), b.Repeat(b.Literal("0"), 1, kFractionDigits)});
  const Expr some = b.Sequence({b.Literal("."), b.Repeat(b.Literal("0"), 0, kFractionDigits), b.ByteRange('1', '9'), b.Repeat(digit, 0, kFractionDigits)});
  std::vector<Expr> out;
  if (low < high) {  // the unit that begins at low, those after it, and high itself
    if (above_low) out.push_back(b.Sequence({Between(b, low, low), some}));
    else out.push_back(b.Sequence({Between(b, low, low), b.Optional(fraction)}));
    if (low + 1 < high) out.push_back(b.Sequence({Between(b, low + 1, high - 1), b.Optional(fraction)}));
    if (!below_high) out.push_back(b.Sequence({Between(b, high, high), b.Optional(zeros)}));
  } else if (low == high && !above_low && !below_high) {
    out.push_back(b.Sequence({Between(b, low, low), b.Optional(zeros)}));
  }
  if (out.empty()) return std::nullopt;
  return b.Choice(std::move(out));
}

std::optional<Expr> Join(GrammarBuilder& b, std::vector<Expr> parts) {
  if (parts.empty()) return std::nullopt;
  return b.Choice(std::move(parts));
}

}  // namespace

std::optional<Expr> BoundedInteger(GrammarBuilder& b, const NumberBounds& bounds) {
  const int64_t low = std::max(bounds.low.value_or(-kMost), -kMost), high = std::min(bounds.high.value_or(kMost), kMost);
  std::vector<Expr> out;
  if (high >= 0 && low <= high) out.push_back(Between(b, std::max<int64_t>(low, 0), high));
  if (low < 0 && low <= high) out.push_back(b.Sequence({b.Literal("-"), Between(b, std::max<int64_t>(1, -high), -low)}));
  return Join(b, std::move(out));
}

std::optional<Expr> BoundedNumber(GrammarBuilder& b, const NumberBounds& bounds) {
  const int64_t low = std::max(bounds.low.value_or(-kMost), -kMost), high = std::min(bounds.high.value_or(kMost), kMost);
  std::vector<Expr> out;
  if (high >= 0) {
    const bool cut = low >= 0;
    if (const auto e = DecimalsBetween(b, cut ? low : 0, cut && bounds.above_low, high, bounds.below_high)) out.push_back(*e);
  }
  if (low < 0) {  // mirrored; zero itself is written without a sign
    const bool cut = high < 0;
    if (const auto e = DecimalsBetween(b, cut ? -high : 0, cut ? bounds.below_high : true, -low, bounds.above_low)) out.push_back(b.Sequence({b.Literal("-"), *e}));
  }
  return Join(b, std::move(out));
}

}  // namespace halfbyte::text
