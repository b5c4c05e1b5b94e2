// Flags with values, parsed strictly and before anything is loaded: a value that is out of its range, or not wholly a value, is wrong usage (exit 2).
//
// CLI11's own conversions are not used for numbers: they read with strtol and strtold ("0x10" is 16, "010" is 8, "nan" lies in every range).
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace halfbyte::app {

// Decimal digits, with a minus in front where `min` is negative; no other sign, no space, no zero in front.
base::Result<int64_t> ParseInteger(std::string_view text, int64_t min, int64_t max);
// "1,2,3": token ids, at least one, nothing between the commas but an id.
base::Result<std::vector<int32_t>> ParseTokenIds(std::string_view text);

struct RealRange {
  double min = 0, max = 0;
  bool min_excluded = false;
};
// A decimal number as JSON has it, also "1." and ".5"; never an infinity, NaN or hexadecimal.
base::Result<double> ParseReal(std::string_view text, const RealRange& range);

constexpr int64_t kAnyInteger = std::numeric_limits<int64_t>::max();

// The value as it stands is the default that --help shows.
CLI::Option* AddInteger(CLI::App& c, const std::string& flag, int64_t& value, int64_t min, int64_t max, const std::string& description = "");
CLI::Option* AddInteger(CLI::App& c, const std::string& flag, int& value, int min, int max, const std::string& description = "");
CLI::Option* AddReal(CLI::App& c, const std::string& flag, double& value, const RealRange& range, const std::string& description = "");
CLI::Option* AddTokenIds(CLI::App& c, const std::string& flag, std::vector<int32_t>& value, const std::string& description);
// --kernel op=name, may be repeated; which names there are is the backend's to say.
CLI::Option* AddKernels(CLI::App& c, std::vector<std::pair<std::string, std::string>>& kernels, const std::string& description);
CLI::Option* AddThreads(CLI::App& c, int& threads);

// A validator. For texts where an empty one is a slip of the shell ("$NAME" unset), never a wish.
std::string CheckNotEmpty(const std::string& text);

// Wrong usage that no single flag shows; to be thrown from a command's callback, while the command line is being read.
CLI::ParseError WrongUsage(const std::string& message);

}  // namespace halfbyte::app
