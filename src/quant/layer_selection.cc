#define PCRE2_CODE_UNIT_WIDTH 8
#include "quant/layer_selection.h"

#include <algorithm>
#include <array>
#include <pcre2.h>

#include "base/glob.h"

namespace halfbyte::quant {
namespace {

// The path without wrapper prefixes, so that "model.layers.0", "layers.0" and "model.language_model.layers.0" are one.
std::string_view Bare(std::string_view path) {
  bool again = true;
  while (again) {
    again = false;
    for (std::string_view prefix : {"model.", "language_model."})
      if (path.starts_with(prefix)) { path.remove_prefix(prefix.size()); again = true; }
  }
  while (path.ends_with('.')) path.remove_suffix(1);
  return path;
}

// `needle` occurs in `path` as a run of whole dotted components.
bool HasComponents(std::string_view path, std::string_view needle) {
  if (needle.empty()) return false;
  for (size_t at = path.find(needle); at != path.npos; at = path.find(needle, at + 1)) {
    bool starts = at == 0 || path[at - 1] == '.';
    size_t end = at + needle.size();
    if (starts && (end == path.size() || path[end] == '.')) return true;
  }
  return false;
}

using base::Glob;

bool GlobPathOrComponent(std::string_view pattern, std::string_view path) {
  if (Glob(pattern, path) || (pattern.ends_with(".*") && Glob(pattern.substr(0, pattern.size() - 2), path))) return true;
  for (size_t begin = 0; begin <= path.size();) {
    size_t end = std::min(path.find('.', begin), path.size());
    if (Glob(pattern, path.substr(begin, end - begin))) return true;
    begin = end + 1;
  }
  return false;
}

struct FusedName { std::string_view fused; std::array<std::string_view, 3> parts; };
constexpr std::array kFused = {
    FusedName{"qkv_proj", {"q_proj", "k_proj", "v_proj"}},
    FusedName{"gate_up_proj", {"gate_proj", "up_proj", ""}},
    FusedName{"fused_qkv_a_proj_with_mqa", {"q_a_proj", "kv_a_proj_with_mqa", ""}},
};

// The parts of a path that ends with a fused name, else nothing.
std::vector<std::string> PartsOf(std::string_view path) {
  std::vector<std::string> out;
  size_t last = path.rfind('.') + 1;  // npos + 1 = 0
  for (const FusedName& fused : kFused)
    if (path.substr(last) == fused.fused)
      for (std::string_view part : fused.parts) if (!part.empty()) out.push_back(std::string(path.substr(0, last)) + std::string(part));
  return out;
}

// "layers.3.mlp.experts" of a path with a component `experts`, else "".
std::string_view ExpertsOf(std::string_view path) {
  constexpr std::string_view kExperts = "experts";
  for (size_t at = path.find(kExperts); at != path.npos; at = path.find(kExperts, at + 1)) {
    size_t end = at + kExperts.size();
    if ((at == 0 || path[at - 1] == '.') && (end == path.size() || path[end] == '.')) return path.substr(0, end);
  }
  return {};
}

}  // namespace

struct LayerSelection::Pattern {
  std::string text;
  std::vector<std::string> paths;  // bare forms, fused names expanded
  bool glob = false;
  std::unique_ptr<pcre2_code, decltype(&pcre2_code_free)> regex{nullptr, pcre2_code_free};
  mutable int64_t matches = 0;

  bool Match(std::string_view module, std::string_view bare) const {
    if (regex) {
      for (const char* wrapper : {"", "model.", "model.language_model.", "language_model.model."}) if (MatchRegex(wrapper + std::string(bare))) return true;
      return MatchRegex(module);
    }
    std::string_view experts = ExpertsOf(bare);
    for (const std::string& p : paths) {
      if (glob ? GlobPathOrComponent(p, bare) : HasComponents(bare, p)) return true;
      if (!glob && !experts.empty() && HasComponents(p, experts)) return true;
    }
    return false;
  }
  bool MatchRegex(std::string_view subject) const {
    // Patterns come from files: one that backtracks without end gives up and does not match (10,000 steps are plenty for a path).
    std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)> limits(pcre2_match_context_create(nullptr), pcre2_match_context_free);
    pcre2_set_match_limit(limits.get(), 10'000);
    pcre2_set_depth_limit(limits.get(), 10'000);
    std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> data(pcre2_match_data_create_from_pattern(regex.get(), nullptr), pcre2_match_data_free);
    return pcre2_match(regex.get(), reinterpret_cast<PCRE2_SPTR>(subject.data()), subject.size(), 0, PCRE2_ANCHORED, data.get(), limits.get()) >= 0;
  }
};

base::Result<LayerSelection> LayerSelection::Make(const std::vector<std::string>& patterns, std::string from, PatternSyntax syntax) {
  LayerSelection selection;
  selection.from_ = std::move(from);
  for (const std::string& text : patterns) {
    if (text.empty()) continue;
    auto pattern = std::make_shared<Pattern>();
    pattern->text = text;
    if (syntax == PatternSyntax::kPatterns && text.starts_with("re:")) {
      int code = 0;
      PCRE2_SIZE offset = 0;
      pattern->regex.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data() + 3), text.size() - 3, 0, &code, &offset, nullptr));
      if (!pattern->regex)
        return base::Fail(base::ErrorCode::kBadFile, selection.from_, ": \"", text, "\" is not a regular expression (at character ", offset, ")");
    } else {
      pattern->glob = syntax == PatternSyntax::kPatterns && text.find('*') != text.npos;
      pattern->paths.emplace_back(Bare(text));
      for (std::string& part : PartsOf(std::string(pattern->paths.front()))) pattern->paths.push_back(std::move(part));
    }
    selection.patterns_.push_back(std::move(pattern));
  }
  return selection;
}

Coverage LayerSelection::Covers(std::string_view module) const {
  std::vector<std::string> parts = PartsOf(module);
  if (parts.empty()) return ContainsPart(module) ? Coverage::kAll : Coverage::kNone;
  size_t listed = 0;
  for (const std::string& part : parts) listed += ContainsPart(part);
  return listed == parts.size() ? Coverage::kAll : listed == 0 ? Coverage::kNone : Coverage::kSome;
}

bool LayerSelection::ContainsPart(std::string_view module) const {
  std::string_view bare = Bare(module);
  bool any = false;
  for (const auto& p : patterns_)
    if (p->Match(module, bare)) { ++p->matches; any = true; }
  return any;
}

std::vector<PatternMatches> LayerSelection::Matches() const {
  std::vector<PatternMatches> out;
  for (const auto& p : patterns_) out.push_back({p->text, from_, p->matches});
  return out;
}

}  // namespace halfbyte::quant
