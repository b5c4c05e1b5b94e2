#include "quant/export.h"

#include <algorithm>
#include <memory>

#include "checkpoint/carried_files.h"
#include "platform/parallel.h"
#include "quant/export_scales.h"
#include "quant/ordered_work.h"
#include "quant/tensor_sink.h"
#include "quant/unit_worker.h"

namespace halfbyte::quant {
namespace {

// Large tensors are copied in pieces of this size, so that all workers share one embedding.
constexpr uint64_t kCopyBytes = 8 << 20;

// A piece of a tensor to copy, or (entry null) a unit to convert.
struct Task {
  std::pair<int, uint64_t> at;  // file and byte where it ends: the reading order
  const TensorEntry* entry = nullptr;
  uint64_t begin = 0, bytes = 0;
  size_t unit = 0;
};

std::vector<Task> MakeTasks(const ExportPlan& plan) {
  std::vector<Task> tasks;
  for (const TensorEntry* e : plan.copied)
    for (uint64_t begin = 0; begin < e->size; begin += kCopyBytes) {
      const uint64_t bytes = std::min(kCopyBytes, e->size - begin);
      tasks.push_back({{e->file, e->begin + begin + bytes}, e, begin, bytes, 0});
    }
  for (size_t i = 0; i < plan.load.units.size(); ++i) {
    Task task;
    task.unit = i;
    for (int32_t m : plan.load.units[i].matrices) {
      const SourceMatrix& source = plan.load.matrices[static_cast<size_t>(m)].source;
      task.at = std::max(task.at, ReadingPosition(source));
    }
    tasks.push_back(task);
  }
  std::stable_sort(tasks.begin(), tasks.end(), [](const Task& a, const Task& b) { return a.at < b.at; });
  return tasks;
}

base::Status CopyPiece(const checkpoint::Checkpoint& files, const ExportPlan& plan, const Task& task, std::vector<std::byte>& buffer, checkpoint::SafetensorsWriter& writer, WorkCounters& counters) {
  buffer.resize(task.bytes);
  HB_RETURN_IF_ERROR(files.ReadRange(*task.entry, task.begin, buffer));
  counters.bytes_read += static_cast<int64_t>(task.bytes);
  const auto renamed = plan.renamed.find(task.entry);
  return writer.Write(renamed == plan.renamed.end() ? task.entry->name : renamed->second, buffer, task.begin);
}

// config.json with its section, hf_quant_config.json, and the source's other files.
base::Status WriteConfigs(const checkpoint::Checkpoint& files, const ExportPlan& plan, checkpoint::SafetensorsWriter& writer, ExportStats& stats) {
  base::Json section;
  if (plan.format == ExportFormat::kModelopt) {
    checkpoint::ModelOptConfig config = checkpoint::MakeModelOptConfig(plan.config);
    stats.warnings.insert(stats.warnings.end(), config.warnings.begin(), config.warnings.end());
    HB_RETURN_IF_ERROR(writer.AddFile("hf_quant_config.json", checkpoint::ConfigText(config.hf_quant_config)));
    section = std::move(config.quantization_config);
  } else {
    section = checkpoint::MakeCompressedTensorsConfig(plan.config);
  }
  HB_RETURN_IF_ERROR(writer.AddFile("config.json", checkpoint::ConfigText(checkpoint::WithQuantizationConfig(files.config(), std::move(section)))));
  HB_ASSIGN_OR_RETURN(stats.files, checkpoint::CarryFiles(files.folder(), writer));
  return {};
}

}  // namespace

base::Result<ExportStats> RunExport(const checkpoint::Checkpoint& files, const ExportPlan& plan, const ExportRun& run) {
  ExportStats stats;
  stats.warnings = plan.load.warnings;
  HB_ASSIGN_OR_RETURN(const std::vector<ExportedScalar> scalars, ExportScalars(files, plan, stats.warnings));
  HB_ASSIGN_OR_RETURN(checkpoint::SafetensorsWriter writer, checkpoint::SafetensorsWriter::Create(run.out, plan.tensors, run.writer));
  for (const ExportedScalar& s : scalars) HB_RETURN_IF_ERROR(writer.Write(s.name, std::as_bytes(std::span(&s.value, 1))));

  WorkCounters counters;
  TensorSink sink(writer, plan);
  ProgressReporter progress(run.progress, counters, plan.bytes_to_read, plan.load.experts_converted);
  const std::vector<Task> tasks = MakeTasks(plan);
  auto make = [&]() -> NumberedTask {
    auto worker = std::make_shared<UnitWorker>(files, plan.load, sink, counters, *run.quantizer);
    auto buffer = std::make_shared<std::vector<std::byte>>();
    return [&, worker, buffer](size_t i) {
      return tasks[i].entry ? CopyPiece(files, plan, tasks[i], *buffer, writer, counters) : worker->Run(plan.load.units[tasks[i].unit]);
    };
  };
  HB_RETURN_IF_ERROR(RunInOrder(tasks.size(), run.workers > 0 ? run.workers : platform::AllowedThreads(), make, [&] { progress.Maybe(); }));
  HB_RETURN_IF_ERROR(WriteConfigs(files, plan, writer, stats));
  stats.bytes_written = static_cast<int64_t>(writer.total_bytes());
  stats.shards = writer.shards();
  HB_RETURN_IF_ERROR(writer.Finish());
  progress.Last();

  for (const auto& [id, e] : plan.written) ++(plan.load.matrices[static_cast<size_t>(e.matrix)].action == Action::kReuse ? stats.reused : stats.converted);
  if (counters.mx_requantized)
    stats.warnings.push_back(base::StrCat(counters.mx_requantized.load(), " MXFP4 blocks lie more than 2^17 below their matrix's largest: they were quantized anew, not cast"));
  stats.tensors = static_cast<int64_t>(plan.tensors.size());
  stats.kept = static_cast<int64_t>(plan.copied.size());
  stats.parameters_converted = counters.converted;
  stats.bytes_read = counters.bytes_read;
  stats.seconds = progress.seconds();
  return stats;
}

}  // namespace halfbyte::quant
