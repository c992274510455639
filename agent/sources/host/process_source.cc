#include "agent/sources/host/process_source.h"

#include <filesystem>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/sources/host/proc_file.h"
#include "agent/sources/host/process_stat.h"
#include "agent/sources/host/sampled_source.h"
#include "client/ring/ring_reader.h"

namespace tacho::agent {
namespace {

namespace fs = std::filesystem;

constexpr v1::MetricType kGauge = v1::METRIC_TYPE_GAUGE;
constexpr v1::MetricType kCounter = v1::METRIC_TYPE_COUNTER;

constexpr HostMetric kUser = {"host_process_cpu_user_seconds_total", kCounter, "s",
                              "CPU time of the trainer's process in user mode."};
constexpr HostMetric kSystem = {"host_process_cpu_system_seconds_total", kCounter, "s",
                                "CPU time of the trainer's process in the kernel."};
constexpr HostMetric kResident = {"host_process_resident_memory_bytes", kGauge, "By",
                                  "Memory of the trainer's process that is in RAM."};
constexpr HostMetric kThreads = {"host_process_threads", kGauge, "1",
                                 "Threads of the trainer's process."};
constexpr HostMetric kOpenFiles = {"host_process_open_files", kGauge, "1",
                                   "Files and sockets that the trainer's process has open."};
constexpr HostMetric kFaults = {"host_process_major_page_faults_total", kCounter, "1",
                                "Page faults of the trainer's process that read from a disk."};
constexpr HostMetric kBlocked = {
    "host_process_state_blocked", kGauge, "1",
    "1 while the main thread waits for a device or a mount and cannot be interrupted (state D)."};
constexpr HostMetric kRead = {"host_process_disk_read_bytes_total", kCounter, "By",
                              "Read from disks for the trainer's process."};
constexpr HostMetric kWritten = {"host_process_disk_write_bytes_total", kCounter, "By",
                                 "Written to disks for the trainer's process."};

v1::Source SourceOf(const ProcessOptions& options) {
  v1::Source source;
  source.set_job(options.job);
  source.set_host(options.host);
  return source;
}

void AddLabel(const char* name, const std::string& value, v1::Layout::Series* series) {
  v1::Label* const label = series->add_labels();
  label->set_name(name);
  label->set_value(value);
}

}  // namespace

ProcessSource::ProcessSource(ProcessOptions options)
    : options_(std::move(options)),
      log_("processes", options_.log),
      cadence_(options_.interval),
      rows_(SourceOf(options_)) {}

absl::Time ProcessSource::Poll(absl::Time now, RowSink* sink) {
  if (!cadence_.TakeDue(now)) return cadence_.due();
  FindTrainers(now);
  for (const auto& [path, trainer] : trainers_) {
    HostSample sample;
    Take(trainer, &sample);
    for (const HostSample::Entry& entry : sample.entries()) {
      v1::Layout::Series series = SeriesOf(entry);
      AddLabel("of_job", trainer.job, &series);
      AddLabel("of_task", absl::StrCat(trainer.task), &series);
      rows_.Add(series, entry.value);
    }
  }
  uint64_t left_out = 0;
  const absl::Status written = rows_.Write(now, &budget_, sink, &left_out);
  if (!written.ok()) {
    log_.Say(now, "refused", absl::StrCat("a sample is lost: ", written.ToString()));
  }
  if (left_out > 0) {
    log_.Say(now, "changing", "trainers come and go too often; some are not watched yet");
  }
  return cadence_.due();
}

void ProcessSource::FindTrainers(absl::Time now) {
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
    log_.Say(now, "many",
             absl::StrCat(too_many, " trainers are not watched: there are more than ",
                          options_.max_processes, " (sources.host.max_processes)"));
  }
}

// What is wrong with a ring the source of rings says.
void ProcessSource::Open(const std::string& path) {
  const auto reader = client::RingReader::Open(path);
  if (!reader.ok()) return;
  const client::RingInfo& info = (*reader)->info();
  trainers_[path] = {
      .pid = info.pid, .start_ticks = info.process_start_ticks, .job = info.job, .task = info.task};
}

void ProcessSource::Take(const Trainer& trainer, HostSample* out) const {
  const std::string directory = absl::StrCat(options_.proc, "/", trainer.pid);
  const auto text = ReadProcFile(directory + "/stat");
  const auto stat = text.ok() ? ParseProcessStat(*text) : std::nullopt;
  // Another process has the number by now, or in this agent's view of the machine.
  if (!stat || (trainer.start_ticks != 0 && stat->start_ticks != trainer.start_ticks)) return;
  out->Add(kUser, stat->user_ticks / options_.ticks_per_second);
  out->Add(kSystem, stat->system_ticks / options_.ticks_per_second);
  out->Add(kResident, stat->resident_pages * options_.page_bytes);
  out->Add(kThreads, stat->threads);
  out->Add(kFaults, stat->major_faults);
  out->Add(kBlocked, stat->state == 'D' ? 1 : 0);
  // These two need the trainer's user, or root.
  if (const auto files = CountEntries(directory + "/fd", kMaxOpenFiles)) {
    out->Add(kOpenFiles, *files);
  }
  const auto io = ReadProcFile(directory + "/io");
  if (!io.ok()) return;
  const ProcessIo bytes = ParseProcessIo(*io);
  if (bytes.read_bytes) out->Add(kRead, *bytes.read_bytes);
  if (bytes.write_bytes) out->Add(kWritten, *bytes.write_bytes);
}

}  // namespace tacho::agent
