// Reload: other weights of the same architecture into a running model, all or nothing (user case T14).
//
// The new files are read, converted and proven complete into weights of their own while the old ones serve (peak: twice the packed weights, checked before a
// byte is read). Apply then copies them to the old addresses; nothing in it can fail. A failure before leaves everything as it was.
#pragma once

#include "model/load.h"

namespace halfbyte::model {

class Reload {
 public:
  // `plan`: what the running model was loaded by; borrowed for the call. The settings are those of the first load. kInvalidArgument where the new files have another
  // architecture, shape or format somewhere: such a model needs a fresh start.
  static base::Result<Reload> Prepare(Model& model, const quant::QuantPlan& plan, const std::filesystem::path& folder, const LoadSettings& settings);

  // Between two steps: nothing else may use the model meanwhile.
  void Apply(Model& model);

 private:
  explicit Reload(LoadedWeights loaded) : loaded_(std::move(loaded)) {}
  LoadedWeights loaded_;
};

}  // namespace halfbyte::model
