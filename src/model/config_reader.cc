#include "model/config_reader.h"

namespace halfbyte::model {

ConfigReader::ConfigReader(const base::Json& config, const base::Json& generation, std::function<bool(std::string_view)> has_tensor)
    : text_(config), generation_(generation), has_tensor_(std::move(has_tensor)) {
  const base::Json* nested = config.Find("text_config");
  if (!nested || !nested->is_object() || !nested->Find("hidden_size")) return;
  text_ = *nested;
  // Fields that wrapped configurations keep at the top.
  for (std::string_view key : {"tie_word_embeddings", "eos_token_id", "bos_token_id", "quantization_config"})
    if (const base::Json *top = config.Find(key), *own = text_.Find(key); top && (!own || own->is_null())) text_.Set(key, *top);
}

const base::Json* ConfigReader::First(std::initializer_list<std::string_view> names, std::string_view& found) const {
  for (std::string_view name : names)
    if (const base::Json* v = text_.Find(name); v && !v->is_null()) { found = name; return v; }
  return nullptr;
}

base::Result<int64_t> ConfigReader::Int(std::initializer_list<std::string_view> names) const {
  std::string_view found;
  if (!First(names, found)) return base::Fail(base::ErrorCode::kBadFile, "config.json: \"", *names.begin(), "\" is missing");
  auto v = text_.GetInt(found);
  if (!v) return base::Fail(std::move(v).error().At("config.json"));
  return v;
}
base::Result<int64_t> ConfigReader::IntOr(std::initializer_list<std::string_view> names, int64_t otherwise) const {
  std::string_view found;
  return First(names, found) ? Int({found}) : base::Result<int64_t>(otherwise);
}
base::Result<double> ConfigReader::DoubleOr(std::initializer_list<std::string_view> names, double otherwise) const {
  std::string_view found;
  if (!First(names, found)) return otherwise;
  auto v = text_.GetDouble(found);
  if (!v) return base::Fail(std::move(v).error().At("config.json"));
  return v;
}
base::Result<bool> ConfigReader::BoolOr(std::initializer_list<std::string_view> names, bool otherwise) const {
  std::string_view found;
  if (!First(names, found)) return otherwise;
  auto v = text_.GetBoolOr(found, otherwise);
  if (!v) return base::Fail(std::move(v).error().At("config.json"));
  return v;
}
base::Result<int64_t> ConfigReader::Size(std::initializer_list<std::string_view> names, int64_t limit) const {
  HB_ASSIGN_OR_RETURN(int64_t v, Int(names));
  if (v < 1 || v > limit) return base::Fail(base::ErrorCode::kBadFile, "config.json: \"", *names.begin(), "\" is ", v, ", which is not a usable size");
  return v;
}
base::Result<int64_t> ConfigReader::SizeOr(std::initializer_list<std::string_view> names, int64_t otherwise) const {
  std::string_view found;
  return First(names, found) ? Size({found}) : base::Result<int64_t>(otherwise);
}

}  // namespace halfbyte::model
