// Numbers between bounds, digit by digit.
#pragma once

#include <cstdint>
#include <optional>

#include "text/grammar.h"

namespace halfbyte::text {

struct NumberBounds {
  std::optional<int64_t> low, high;  // whole numbers of at most 15 digits
  bool above_low = false;            // the bound itself is excluded (numbers only; for integers move the bound)
  bool below_high = false;
};

// An integer within the bounds, without leading zeros and without "-0". nullopt: there is none.
std::optional<GrammarBuilder::Expr> BoundedInteger(GrammarBuilder& builder, const NumberBounds& bounds);

// A decimal number within the bounds, without an exponent. nullopt: there is none.
std::optional<GrammarBuilder::Expr> BoundedNumber(GrammarBuilder& builder, const NumberBounds& bounds);

}  // namespace halfbyte::text
