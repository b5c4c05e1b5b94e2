#include "quant/mode.h"

#include <array>

namespace halfbyte::quant {
namespace {

struct Row { QuantMode mode; std::string_view name; kernels::ActivationForm form; bool hidden_bf16; };
constexpr std::array kRows = {
#define HB_MODE(enumerator, name, form, hidden_bf16) Row{QuantMode::enumerator, name, kernels::ActivationForm::form, hidden_bf16},
#include "quant/modes.def"
#undef HB_MODE
};

// The release's table. w4a8 on CPUs without AMX, tried: its mean KL against w4a16 is under 5 % of w4a16's own (docs/modes.md), but then the file that
// `quantize --contract online` writes, an NVFP4 one, gave other bits by `auto` than its source. Both have to change together.
QuantMode Auto(const AutoFacts& f) {
  if (!f.has_experts) return QuantMode::kNone;
  if (f.serialized_nvfp4) return QuantMode::kW4A16;  // what runs everywhere, whatever the file says of activations
  return QuantMode::kW4A16;
}

}  // namespace

std::string_view ModeName(QuantMode mode) { return kRows[static_cast<size_t>(mode)].name; }
kernels::ActivationForm ModeActivations(QuantMode mode) { return kRows[static_cast<size_t>(mode)].form; }
bool ModeHiddenIsBf16(QuantMode mode) { return kRows[static_cast<size_t>(mode)].hidden_bf16; }

std::string ModeNames() {
  std::string out = "auto";
  for (const Row& row : kRows) out += base::StrCat(", ", row.name);
  return out;
}

base::Result<QuantMode> ResolveMode(std::string_view name, const AutoFacts& facts) {
  if (name == "auto") return Auto(facts);
  for (const Row& row : kRows) {
    if (row.name != name) continue;
    if (row.mode == QuantMode::kW4A8 && facts.device == "cuda")
      return base::Fail(base::Error(base::ErrorCode::kUnsupported, "w4a8 runs on cpu and reference only").Hint("use --quantization w4a16 on cuda"));
    return row.mode;
  }
  return base::Fail(base::ErrorCode::kInvalidArgument, "quantization \"", name, "\" is none of ", ModeNames());
}

}  // namespace halfbyte::quant
