#define PCRE2_CODE_UNIT_WIDTH 8
#include "quant/layer_selection.h"

#include <algorithm>
#include <array>
#include <pcre2.h>

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

// `*` any run of characters, everything else literal; linear in practice (greedy with one restart point).
bool Glob(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0, star = std::string_view::npos, mark = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') { star = p++; mark = t; }
    else if (p < pattern.size() && pattern[p] == text[t]) { ++p; ++t; }
    else if (star != std::string_view::npos) { p = star + 1; t = ++mark; }
    else return false;
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool GlobPathOrComponent(std::string_view pattern, std::string_view path) {
  if (Glob(pattern, path)) return true;
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
};

}  // namespace

struct LayerSelection::Pattern {
  std::string text;
  std::vector<std::string> paths;  // bare forms, fused names expanded
  bool glob = false;
  std::unique_ptr<pcre2_code, decltype(&pcre2_code_free)> regex{nullptr, pcre2_code_free};
  mutable int64_t matches = 0;

  bool Match(std::string_view module, std::string_view bare) const {
    if (regex) return MatchRegex(module) || MatchRegex(bare) || MatchRegex("model." + std::string(bare));
    for (const std::string& p : paths)
      if (glob ? GlobPathOrComponent(p, bare) : HasComponents(bare, p)) return true;
    return false;
  }
  bool MatchRegex(std::string_view subject) const {
    std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> data(pcre2_match_data_create_from_pattern(regex.get(), nullptr), pcre2_match_data_free);
    return pcre2_match(regex.get(), reinterpret_cast<PCRE2_SPTR>(subject.data()), subject.size(), 0, PCRE2_ANCHORED, data.get(), nullptr) >= 0;
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
      for (const FusedName& fused : kFused) {
        std::string_view bare = pattern->paths.front();
        if (!bare.ends_with(fused.fused)) continue;
        std::string stem(bare.substr(0, bare.size() - fused.fused.size()));
        for (std::string_view part : fused.parts) if (!part.empty()) pattern->paths.push_back(stem + std::string(part));
        break;
      }
    }
    selection.patterns_.push_back(std::move(pattern));
  }
  return selection;
}

bool LayerSelection::Contains(std::string_view module) const {
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
