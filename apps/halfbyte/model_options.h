// The flags that every command with a model shares, and loading with a report and progress on stderr.
#pragma once

#include <string>
#include <vector>

#include "commands.h"
#include "model/load.h"

namespace halfbyte::app {

struct ModelOptions {
  std::string model = "demo";
  std::string quantization = "auto";
  std::string device = "auto";
  int threads = 0;
  std::vector<std::string> ignore_layers;
  std::string dense_quantization = "none";
  std::string kv_cache_dtype = "auto";
  std::vector<std::string> kernels;  // op=name
  std::string load_format = "auto";
  bool exact = false, rounded = false;

  // Flags of commands that run a model; inspect takes a part of them.
  void AddTo(CLI::App& command);
  base::Result<model::LoadSettings> Settings() const;
  base::Result<std::filesystem::path> Folder() const;
};

// A validator for flags that name a mode: "" where it is one.
std::string CheckMode(const std::string& mode);

// Loads with the load report (unless quiet) and progress on stderr.
base::Result<model::LoadedModel> LoadWithReport(const ModelOptions& options, const Context& context);

}  // namespace halfbyte::app
