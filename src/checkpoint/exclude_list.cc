#include "checkpoint/exclude_list.h"

#include <algorithm>
#include <set>

#include "base/glob.h"
#include "base/result.h"

namespace halfbyte::checkpoint {
namespace {

using base::Glob;  // the other wildcards of fnmatch do not occur in what is written here

bool VllmMatches(std::string_view pattern, std::string_view module) {
  if (pattern.ends_with("*") && module.find(pattern.substr(0, pattern.size() - 1)) != module.npos) return true;
  return pattern.find('*') == pattern.npos ? module.find(pattern) != module.npos : Glob(pattern, module);
}

bool SglangMatches(std::string_view pattern, std::string_view module) {
  if (Glob(pattern, module)) return true;
  for (size_t begin = 0; begin <= module.size();) {
    size_t end = std::min(module.find('.', begin), module.size());
    if (Glob(pattern, module.substr(begin, end - begin))) return true;
    begin = end + 1;
  }
  return false;
}

bool TensorRtMatches(std::string_view pattern, std::string_view module) {
  for (std::string_view path = module;; path = path.substr(0, path.rfind('.'))) {
    if (Glob(pattern, path) || (pattern.ends_with(".*") && Glob(pattern.substr(0, pattern.size() - 2), path))) return true;
    if (path.find('.') == path.npos) return false;
  }
}

// Some string of the sorted set begins with `prefix`.
bool AnyBeginsWith(const std::set<std::string>& sorted, const std::string& prefix) {
  auto at = sorted.lower_bound(prefix);
  return at != sorted.end() && at->starts_with(prefix);
}

bool IsNumber(std::string_view component) { return std::all_of(component.begin(), component.end(), [](unsigned char c) { return c >= '0' && c <= '9'; }); }

}  // namespace

bool Excludes(ExcludeReader reader, const std::vector<std::string>& patterns, std::string_view module) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& p) {
    switch (reader) {
      case ExcludeReader::kVllm: return VllmMatches(p, module);
      case ExcludeReader::kSglang: return SglangMatches(p, module);
      case ExcludeReader::kTensorRtLlm: return TensorRtMatches(p, module);
    }
    return false;
  });
}

std::vector<std::string> MakeExcludeList(const std::vector<std::string>& kept, const std::vector<std::string>& quantized) {
  std::set<std::string> touched(quantized.begin(), quantized.end()), patterns;
  for (const std::string& module : kept) {
    // The shortest ancestor below which nothing is quantized; the module itself where there is none.
    std::string pattern = module;
    for (size_t dot = module.find('.'); dot != module.npos; dot = module.find('.', dot + 1)) {
      std::string ancestor = module.substr(0, dot);
      if (IsNumber(ancestor.substr(ancestor.rfind('.') + 1)) || AnyBeginsWith(touched, ancestor)) continue;
      pattern = ancestor + "*";
      break;
    }
    patterns.insert(std::move(pattern));
  }
  return {patterns.begin(), patterns.end()};
}

std::vector<std::string> ExcludeListProblems(const std::vector<std::string>& patterns, const std::vector<std::string>& kept, const std::vector<std::string>& quantized) {
  static constexpr struct { ExcludeReader reader; const char* name; } kReaders[] = {
      {ExcludeReader::kVllm, "vLLM"}, {ExcludeReader::kSglang, "SGLang"}, {ExcludeReader::kTensorRtLlm, "TensorRT-LLM"}};
  std::vector<std::string> out;
  for (const auto& [reader, name] : kReaders) {
    for (const std::string& module : quantized)
      if (Excludes(reader, patterns, module)) { out.push_back(base::StrCat(name, " will take the quantized ", module, " for excluded")); break; }
    for (const std::string& module : kept)
      if (!Excludes(reader, patterns, module)) { out.push_back(base::StrCat(name, " will not take ", module, " for excluded")); break; }
  }
  return out;
}

}  // namespace halfbyte::checkpoint
