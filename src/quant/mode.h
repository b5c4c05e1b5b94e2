// Run modes (--quantization). A mode is resolved once, into a QuantPlan; after that kernels see Formats and ActivationForms only.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "kernels/api/weights.h"

namespace halfbyte::quant {

enum class QuantMode : uint8_t {
#define HB_MODE(enumerator, name, form, hidden_bf16) enumerator,
#include "quant/modes.def"
#undef HB_MODE
};

std::string_view ModeName(QuantMode mode);
kernels::ActivationForm ModeActivations(QuantMode mode);
// h is BF16 by contract, in the exact form too (nvfp4_online: reference-behaviour 2.3).
bool ModeHiddenIsBf16(QuantMode mode);
inline bool ModeQuantizes(QuantMode mode) { return mode != QuantMode::kNone; }

// What `auto` looks at. The table is fixed at release, never measured at start.
struct AutoFacts {
  std::string_view device;        // "reference", "cpu", "cuda"
  bool has_experts = false;
  bool serialized_nvfp4 = false;  // the checkpoint holds NVFP4 experts already
  bool device_has_fp4 = false;    // a GPU with FP4 units
  bool cpu_has_amx = false;
};
// name: one of modes.def, or "auto". A mode that the device does not run is an error.
base::Result<QuantMode> ResolveMode(std::string_view name, const AutoFacts& facts);
// "auto, none, w4a16, ..." for help texts.
std::string ModeNames();

}  // namespace halfbyte::quant
