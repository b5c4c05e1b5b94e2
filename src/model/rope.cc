#include "model/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace halfbyte::model {
namespace {

// rope_parameters (transformers 5) wins over rope_scaling + rope_theta; either may be null.
struct Fields {
  base::Json scaling;  // an object, possibly empty
  double theta = 0;
  std::string type = "default";
};

base::Result<Fields> ReadFields(const ConfigReader& config, double theta_default) {
  Fields f;
  const base::Json& text = config.text();
  f.scaling = base::Json::MakeObject();
  const base::Json* parameters = text.Find("rope_parameters");
  const base::Json* scaling = text.Find("rope_scaling");
  if (parameters && parameters->is_object()) f.scaling = *parameters;
  else if (scaling && scaling->is_object()) f.scaling = *scaling;
  HB_ASSIGN_OR_RETURN(double top, config.DoubleOr({"rope_theta"}, theta_default));
  HB_ASSIGN_OR_RETURN_AT(f.theta, f.scaling.GetDoubleOr("rope_theta", top), "config.json: rope_parameters");
  HB_ASSIGN_OR_RETURN(std::string old, f.scaling.GetStringOr("type", "default"));
  HB_ASSIGN_OR_RETURN(f.type, f.scaling.GetStringOr("rope_type", old));
  if (!(f.theta > 1)) return base::Fail(base::ErrorCode::kBadFile, "config.json: rope_theta is ", f.theta);
  return f;
}

tl::unexpected<base::Error> Unusable(std::string_view key, double value) { return base::Fail(base::ErrorCode::kBadFile, "\"", key, "\" is ", value); }

// The length that the model was trained for before it was stretched. Some files have it beside the scaling (then it wins, as in transformers), some nowhere.
base::Result<double> OriginalLength(const Fields& f, const ConfigReader& config) {
  HB_ASSIGN_OR_RETURN(double max, config.DoubleOr({"max_position_embeddings"}, 8192.0));
  HB_ASSIGN_OR_RETURN(double inside, f.scaling.GetDoubleOr("original_max_position_embeddings", max));
  HB_ASSIGN_OR_RETURN(double original, config.DoubleOr({"original_max_position_embeddings"}, inside));
  if (!(original >= 1)) return Unusable("original_max_position_embeddings", original);
  return original;
}

base::Result<double> Factor(const Fields& f) {
  HB_ASSIGN_OR_RETURN(double factor, f.scaling.GetDouble("factor"));
  if (!(factor > 0)) return Unusable("factor", factor);
  return factor;
}

base::Status ApplyLlama3(const Fields& f, const ConfigReader& config, Rope& rope) {
  HB_ASSIGN_OR_RETURN(double factor, Factor(f));
  HB_ASSIGN_OR_RETURN(double low, f.scaling.GetDoubleOr("low_freq_factor", 1.0));
  HB_ASSIGN_OR_RETURN(double high, f.scaling.GetDoubleOr("high_freq_factor", 4.0));
  HB_ASSIGN_OR_RETURN(double original, OriginalLength(f, config));
  if (!(low > 0) || !(high > low)) return Unusable("high_freq_factor", high);
  for (float& freq : rope.inv_freq) {
    const double wavelength = 2 * std::numbers::pi / freq;
    if (wavelength > original / low) freq = static_cast<float>(freq / factor);
    else if (wavelength >= original / high) {
      const double smooth = (original / wavelength - low) / (high - low);
      freq = static_cast<float>((1 - smooth) * freq / factor + smooth * freq);
    }
  }
  return {};
}

double Mscale(double factor, double m) { return factor <= 1 ? 1.0 : 0.1 * m * std::log(factor) + 1.0; }

base::Status ApplyYarn(const Fields& f, const ConfigReader& config, Rope& rope) {
  HB_ASSIGN_OR_RETURN(double original, OriginalLength(f, config));
  HB_ASSIGN_OR_RETURN(double max, config.DoubleOr({"max_position_embeddings"}, original));
  double factor = max / original;  // where the file has none
  if (const base::Json* given = f.scaling.Find("factor"); given && !given->is_null()) { HB_ASSIGN_OR_RETURN(factor, Factor(f)); }
  HB_ASSIGN_OR_RETURN(double beta_fast, f.scaling.GetDoubleOr("beta_fast", 32.0));
  HB_ASSIGN_OR_RETURN(double beta_slow, f.scaling.GetDoubleOr("beta_slow", 1.0));
  if (!(beta_slow > 0) || !(beta_fast > 0)) return Unusable("beta_fast", beta_fast);
  HB_ASSIGN_OR_RETURN(bool truncate, f.scaling.GetBoolOr("truncate", true));
  HB_ASSIGN_OR_RETURN(double mscale, f.scaling.GetDoubleOr("mscale", 0.0));
  HB_ASSIGN_OR_RETURN(double mscale_all, f.scaling.GetDoubleOr("mscale_all_dim", 0.0));
  const double attention = mscale != 0 && mscale_all != 0 ? Mscale(factor, mscale) / Mscale(factor, mscale_all) : Mscale(factor, 1.0);
  HB_ASSIGN_OR_RETURN(double scale, f.scaling.GetDoubleOr("attention_factor", attention));
  rope.scale = static_cast<float>(scale);
  const double dims = static_cast<double>(rope.dims);
  auto dim_of = [&](double rotations) { return dims * std::log(original / (rotations * 2 * std::numbers::pi)) / (2 * std::log(f.theta)); };
  double lo = dim_of(beta_fast), hi = dim_of(beta_slow);
  if (truncate) { lo = std::floor(lo); hi = std::ceil(hi); }
  lo = std::max(lo, 0.0);
  hi = std::min(hi, dims - 1);
  if (lo == hi) hi += 0.001;  // as transformers: no division by zero
  for (size_t i = 0; i < rope.inv_freq.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - lo) / (hi - lo), 0.0, 1.0);
    const double freq = rope.inv_freq[i];
    rope.inv_freq[i] = static_cast<float>(freq / factor * ramp + freq * (1 - ramp));
  }
  return {};
}

}  // namespace

base::Result<Rope> ReadRope(const ConfigReader& config, int64_t head_dim, double theta_default) {
  HB_ASSIGN_OR_RETURN(const Fields f, ReadFields(config, theta_default));
  HB_ASSIGN_OR_RETURN(double partial_top, config.DoubleOr({"partial_rotary_factor"}, 1.0));
  HB_ASSIGN_OR_RETURN(double partial, f.scaling.GetDoubleOr("partial_rotary_factor", partial_top));
  HB_ASSIGN_OR_RETURN(int64_t dims, config.IntOr({"rotary_dim"}, static_cast<int64_t>(static_cast<double>(head_dim) * partial)));
  if (dims < 2 || dims % 2 || dims > head_dim) return base::Fail(base::ErrorCode::kBadFile, "config.json: ", dims, " rotated dimensions of a head of ", head_dim);
  Rope rope;
  rope.dims = dims;
  for (int64_t i = 0; i < dims / 2; ++i)
    rope.inv_freq.push_back(static_cast<float>(1.0 / std::pow(f.theta, static_cast<double>(2 * i) / static_cast<double>(dims))));
  base::Status status;
  if (f.type == "llama3") status = ApplyLlama3(f, config, rope);
  else if (f.type == "yarn") status = ApplyYarn(f, config, rope);
  else if (f.type == "linear") {
    HB_ASSIGN_OR_RETURN_AT(double factor, Factor(f), "config.json: rope scaling");
    for (float& freq : rope.inv_freq) freq = static_cast<float>(freq / factor);
  } else if (f.type != "default" && f.type != "mrope") {
    return base::Fail(base::Error(base::ErrorCode::kUnsupported, base::StrCat("config.json: rope type \"", f.type, "\"")).Hint("known: default, linear, llama3, yarn"));
  }
  if (!status) return base::Fail(std::move(status).error().At("config.json: rope scaling"));
  return rope;
}

}  // namespace halfbyte::model
