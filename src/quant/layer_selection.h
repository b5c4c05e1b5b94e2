// LayerSelection: which modules a list of names, globs and regular expressions means (reference-behaviour 4.2, 4.3; user case T09).
//
// Names are compared as the checkpoint spells them, with and without the wrappers `model.`, `language_model.`. A pattern matches where it
//   equals the module's path, is a dotted prefix of it, or occurs in it as a run of whole components   ("mlp.gate" is not in "mlp.gate_proj");
//   names, without a glob, something at or below the `experts` that the module belongs to: experts of a layer are one kernel's weights, so
//   an entry for one expert means all of that layer, as in the reference;
//   or, in a checkpoint's own list: as a glob (`*` any run of characters, a final `.*` also the module itself) over the whole path or over one
//   component, or as `re:` + a regular expression anchored at the start.
// A fused name (qkv_proj, gate_up_proj, fused_qkv_a_proj_with_mqa) in a list stands for its parts; a fused module is covered as far as its parts are.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace halfbyte::quant {

// What a pattern was worth. Zero matches is a warning: a list that matches nothing was usually written for other names.
struct PatternMatches {
  std::string pattern;
  std::string from;  // "--ignore-layers", "config.json ignore", ...
  int64_t matches = 0;
};

enum class PatternSyntax : uint8_t {
  kPaths,     // --ignore-layers: paths only
  kPatterns,  // a checkpoint's list: paths, globs, re:
};

enum class Coverage : uint8_t { kNone, kSome, kAll };

class LayerSelection {
 public:
  LayerSelection() = default;
  // An invalid regular expression is an error that quotes it.
  static base::Result<LayerSelection> Make(const std::vector<std::string>& patterns, std::string from, PatternSyntax syntax);

  bool empty() const { return patterns_.empty(); }
  // module: a path without its ".weight", e.g. "model.layers.0.mlp.experts.3.gate_proj". Every matching pattern counts the module once a call.
  // A fused module is contained where all its parts are; see Covers for the rest.
  bool Contains(std::string_view module) const { return Covers(module) == Coverage::kAll; }
  // kSome: a fused module (qkv_proj) of which some parts are listed; it must be built part by part or be refused, never as one packed matrix.
  Coverage Covers(std::string_view module) const;
  std::vector<PatternMatches> Matches() const;

 private:
  struct Pattern;
  bool ContainsPart(std::string_view module) const;
  std::vector<std::shared_ptr<Pattern>> patterns_;
  std::string from_;
};

}  // namespace halfbyte::quant
