#include "agent/sources/host/process_source.h"

#include <filesystem>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/sources/host/host_text.h"
#include "agent/sources/host/process_stat.h"
#include "client/ring/ring_reader.h"

namespace tacho::agent {
namespace {

namespace fs = std::filesystem;

constexpr Metric kUser = {"host_process_cpu_user_seconds_total", kCounterType, "s",
                          "CPU time of the trainer's process in user mode."};
constexpr Metric kSystem = {"host_process_cpu_system_seconds_total", kCounterType, "s",
                            "CPU time of the trainer's process in the kernel."};
constexpr Metric kResident = {"host_process_resident_memory_bytes", kGaugeType, "By",
                              "Memory of the trainer's process that is in RAM."};
constexpr Metric kThreads = {"host_process_threads", kGaugeType, "1",
                             "Threads of the trainer's process."};
constexpr Metric kOpenFiles = {"host_process_open_files", kGaugeType, "1",
                               "Files and sockets that the trainer's process has open."};
constexpr Metric kFaults = {"host_process_major_page_faults_total", kCounterType, "1",
                            "Page faults of the trainer's process that read from a disk."};
constexpr Metric kBlocked = {
    "host_process_state_blocked", kGaugeType, "1",
    "1 while the main thread waits for a device or a mount and cannot be interrupted (state D)."};
constexpr Metric kRead = {"host_process_disk_read_bytes_total", kCounterType, "By",
                          "Read from disks for the trainer's process."};
constexpr Metric kWritten = {"host_process_disk_write_bytes_total", kCounterType, "By",
                             "Written to disks for the trainer's process."};

}  // namespace

ProcessSource::ProcessSource(ProcessOptions options)
    : options_(std::move(options)),
      log_("processes", options_.log),
      cadence_(options_.interval),
      rows_(options_.job, options_.host, SeriesRows::Leaves::kNextLayout) {}

absl::Time ProcessSource::Poll(absl::Time now, RowSink* sink) {
  if (!cadence_.TakeDue(now)) return cadence_.due();
  FindTrainers();
  Sample sample;
  for (const auto& [path, trainer] : trainers_) Take(trainer, &sample);
  uint64_t left_out = 0;
  log_.WarnIfLost(rows_.Write(now, sample, &budget_, sink, &left_out));
  if (left_out > 0) {
    log_.Warn("does not watch some trainers yet: they come and go too often",
              {{"series", left_out}});
  }
  if (sample.left_out() > 0) {
    log_.Warn("leaves out series of trainers: they do not fit into a row",
              {{"series", sample.left_out()}});
  }
  return cadence_.due();
}

void ProcessSource::FindTrainers() {
  std::set<std::string> seen;
  std::error_code error;
  size_t too_many = 0;
  fs::directory_iterator entry(options_.rings, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string path = entry->path().string();
    if (absl::EndsWith(path, ".ring")) seen.insert(path);
  }
  std::erase_if(trainers_, [&](const auto& trainer) { return !seen.contains(trainer.first); });
  for (const std::string& path : seen) {
    if (trainers_.contains(path)) continue;
    if (trainers_.size() >= options_.max_processes) {
      ++too_many;
    } else {
      Open(path);
    }
  }
  if (too_many > 0) {
    log_.Warn("does not watch all trainers: there are more than sources.host.max_processes",
              {{"not_watched", too_many}, {"max_processes", options_.max_processes}});
  }
}

// Skips a broken ring silently: RingSource reports what is wrong with it.
void ProcessSource::Open(const std::string& path) {
  const auto reader = client::RingReader::Open(path);
  if (!reader.ok()) return;
  const client::RingInfo& info = (*reader)->info();
  trainers_[path] = {
      .pid = info.pid, .start_ticks = info.process_start_ticks, .job = info.job, .task = info.task};
}

void ProcessSource::Take(const Trainer& trainer, Sample* out) const {
  const std::string directory = absl::StrCat(options_.proc, "/", trainer.pid);
  const auto text = ReadProcFile(directory + "/stat");
  const auto stat = text.ok() ? ParseProcessStat(*text) : std::nullopt;
  // Another process has the number by now, or in this agent's view of the machine.
  if (!stat || (trainer.start_ticks != 0 && stat->start_ticks != trainer.start_ticks)) return;
  const auto add =
      [&, labels = Labels{{"of_job", trainer.job}, {"of_task", absl::StrCat(trainer.task)}}](
          const Metric& metric, double value) { out->Add(metric, labels, value); };
  add(kUser, stat->user_ticks / options_.ticks_per_second);
  add(kSystem, stat->system_ticks / options_.ticks_per_second);
  add(kResident, stat->resident_pages * options_.page_bytes);
  add(kThreads, stat->threads);
  add(kFaults, stat->major_faults);
  add(kBlocked, stat->state == 'D' ? 1 : 0);
  // These two need the trainer's user, or root.
  if (const auto files = CountEntries(directory + "/fd", kMaxOpenFiles)) {
    add(kOpenFiles, *files);
  }
  const auto io = ReadProcFile(directory + "/io");
  if (!io.ok()) return;
  const ProcessIo bytes = ParseProcessIo(*io);
  if (bytes.read_bytes) add(kRead, *bytes.read_bytes);
  if (bytes.write_bytes) add(kWritten, *bytes.write_bytes);
}

}  // namespace tacho::agent
