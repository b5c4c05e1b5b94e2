#include "options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>

namespace halfbyte::app {
namespace {

using base::ErrorCode;
using base::Fail;

bool IsDecimal(std::string_view digits) {
  return !digits.empty() && (digits[0] != '0' || digits.size() == 1) && std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// A flag with one value: `parse` says what is wrong with a text, or takes it.
CLI::Option* Add(CLI::App& c, const std::string& flag, const std::string& description, const std::string& type, const std::string& otherwise,
                 std::function<base::Status(const std::string&)> parse) {
  CLI::Option* option = c.add_option(
      flag,
      [flag, parse = std::move(parse)](const CLI::results_t& values) {
        if (base::Status status = parse(values[0]); !status) throw CLI::ValidationError(flag, status.error().ToString());
        return true;
      },
      description);
  option->type_name(type)->default_str(otherwise);
  return option;
}

std::string RangeText(int64_t min, int64_t max) {
  // A bound that is only there to keep sums from overflowing tells nobody anything.
  if (max >= int64_t{1} << 30) return base::StrCat(min, " or more");
  return base::StrCat(min, " to ", max);
}

std::string RangeText(const RealRange& r) { return base::StrCat(r.min_excluded ? "above " : "", r.min, " to ", r.max); }

}  // namespace

base::Result<int64_t> ParseInteger(std::string_view text, int64_t min, int64_t max) {
  const bool negative = min < 0 && text.starts_with('-');
  int64_t value = 0;
  const bool decimal = IsDecimal(text.substr(negative));
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (!decimal || (error == std::errc() && (value < min || value > max)) || error == std::errc::result_out_of_range)
    return Fail(ErrorCode::kInvalidArgument, "\"", text, "\": an integer, ", RangeText(min, max), ", is wanted");
  return value;
}

base::Result<double> ParseReal(std::string_view text, const RealRange& range) {
  double value = 0;
  const bool plain = text.find_first_not_of("0123456789.eE+-") == text.npos;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = plain && error == std::errc() && end == text.data() + text.size();
  // Written so that NaN would fail too.
  if (whole && (range.min_excluded ? value > range.min : value >= range.min) && value <= range.max) return value;
  return Fail(ErrorCode::kInvalidArgument, "\"", text, "\": a number, ", RangeText(range), ", is wanted");
}

base::Result<std::vector<int32_t>> ParseTokenIds(std::string_view text) {
  std::vector<int32_t> ids;
  for (std::string_view rest = text;;) {
    const size_t comma = rest.find(',');
    const auto id = ParseInteger(rest.substr(0, comma), 0, INT32_MAX);
    if (!id)
      return Fail(ErrorCode::kInvalidArgument, "\"", rest.substr(0, std::min<size_t>(comma, 40)), "\" (number ", ids.size() + 1, ") is no token id; decimal ids with commas, 1,2,3, are wanted");
    ids.push_back(static_cast<int32_t>(*id));
    if (comma == rest.npos) return ids;
    rest.remove_prefix(comma + 1);
  }
}

CLI::Option* AddInteger(CLI::App& c, const std::string& flag, int64_t& value, int64_t min, int64_t max, const std::string& description) {
  return Add(c, flag, description, "INT " + RangeText(min, max), std::to_string(value), [&value, min, max](const std::string& text) -> base::Status {
    HB_ASSIGN_OR_RETURN(value, ParseInteger(text, min, max));
    return {};
  });
}

CLI::Option* AddInteger(CLI::App& c, const std::string& flag, int& value, int min, int max, const std::string& description) {
  return Add(c, flag, description, "INT " + RangeText(min, max), std::to_string(value), [&value, min, max](const std::string& text) -> base::Status {
    HB_ASSIGN_OR_RETURN(const int64_t wide, ParseInteger(text, min, max));
    value = static_cast<int>(wide);
    return {};
  });
}

CLI::Option* AddReal(CLI::App& c, const std::string& flag, double& value, const RealRange& range, const std::string& description) {
  return Add(c, flag, description, "NUMBER " + RangeText(range), base::StrCat(value), [&value, range](const std::string& text) -> base::Status {
    HB_ASSIGN_OR_RETURN(value, ParseReal(text, range));
    return {};
  });
}

CLI::Option* AddTokenIds(CLI::App& c, const std::string& flag, std::vector<int32_t>& value, const std::string& description) {
  return Add(c, flag, description, "ID,ID,...", "", [&value](const std::string& text) -> base::Status {
    HB_ASSIGN_OR_RETURN(value, ParseTokenIds(text));
    return {};
  });
}

CLI::Option* AddKernels(CLI::App& c, std::vector<std::pair<std::string, std::string>>& kernels, const std::string& description) {
  auto take = [&kernels](const std::vector<std::string>& values) {
    for (const std::string& v : values) {
      const size_t at = v.find('=');
      if (at == v.npos || at == 0 || at + 1 == v.size()) throw CLI::ValidationError("--kernel", base::StrCat("\"", v, "\": op=name is wanted"));
      kernels.emplace_back(v.substr(0, at), v.substr(at + 1));
    }
  };
  return c.add_option_function<std::vector<std::string>>("--kernel", take, description)->type_name("OP=NAME");
}

CLI::Option* AddThreads(CLI::App& c, int& threads) {
  // The largest machines have some 500 hardware threads a socket pair; with thousands of threads oneTBB waits for ever for workers that the system
  // does not give it.
  constexpr int kMostThreads = 1024;
  return AddInteger(c, "--threads", threads, 0, kMostThreads, "worker threads (0: all that the process may use)");
}

std::string CheckNotEmpty(const std::string& text) { return text.empty() ? "an empty text is no value" : ""; }

CLI::ParseError WrongUsage(const std::string& message) { return CLI::ParseError(message, CLI::ExitCodes::ValidationError); }

}  // namespace halfbyte::app
