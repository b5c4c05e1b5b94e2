// Conversions as `halfbyte quantize` makes them, and ways to look at what came out.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "model/load.h"
#include "quant/export.h"
#include "support/golden_file.h"
#include "unit/model/tiny_model.h"

namespace halfbyte::test {

using checkpoint::TemporaryFolder;
using model::TinyModel;

inline quant::ExportOptions Modelopt(numerics::Flavour flavour = numerics::Flavour::kCuda) {
  quant::ExportOptions o;
  o.contract = numerics::WeightContract::Modelopt(flavour);
  o.obey_source_list = true;
  o.version = "0.1.0";
  return o;
}
inline quant::ExportOptions Online() {
  quant::ExportOptions o;
  o.contract = numerics::WeightContract::Online();
  o.version = "0.1.0";
  return o;
}
inline quant::ExportOptions CompressedTensors() {
  quant::ExportOptions o = Modelopt();
  o.format = quant::ExportFormat::kCompressedTensors;
  return o;
}
inline quant::LayerSelection Excluding(const std::vector<std::string>& patterns) {
  return *quant::LayerSelection::Make(patterns, "--exclude", quant::PatternSyntax::kPatterns);
}

// From folder `from` to the new folder `out`. run.out is set here.
base::Result<quant::ExportStats> Quantize(const std::filesystem::path& from, const std::filesystem::path& out, const quant::ExportOptions& options, quant::ExportRun run = {},
                                          checkpoint::CheckpointOptions files = {});
// The same, for tests that want it to succeed.
quant::ExportStats MustQuantize(const std::filesystem::path& from, const std::filesystem::path& out, const quant::ExportOptions& options, quant::ExportRun run = {});

// Every tensor of a folder's model*.safetensors and mtp*.safetensors, read by the tests' own reader.
GoldenFile ReadFolder(const std::filesystem::path& folder);
// Names, dtypes, shapes and bytes are the same; prints what differs.
void ExpectSameTensors(const GoldenFile& a, const GoldenFile& b);
std::string Digest16(const GoldenTensor& tensor);
std::string FileText(const std::filesystem::path& path);
base::Json FileJson(const std::filesystem::path& path);

// Folders that hold a model of a family that is read: the demo model, and the reference models and producers where they stand beside the checkout.
std::vector<std::filesystem::path> AllModels();
bool HasExperts(const std::filesystem::path& folder);

// Logits of one sequence [rows * vocab].
std::vector<float> Logits(const std::filesystem::path& folder, const model::LoadSettings& settings, std::vector<int32_t> ids);

}  // namespace halfbyte::test
