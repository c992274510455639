#include "agent/sources/host/host_source.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agent/sources/host/host_text.h"
#include "proto/base/stale_marker.h"

namespace tacho::agent {

HostSource::HostSource(const config::v1::Agent::Host& config, HostOptions options)
    : options_(std::move(options)),
      log_("host", options_.log),
      cadence_(absl::Nanoseconds(config.interval())),
      proc_(config.proc()),
      rows_(config.job(), options_.host, SeriesRows::Leaves::kAtOnce) {
  inputs_.push_back({absl::StrCat(config.proc(), "/stat"),
                     [this](absl::string_view text, Sample* out) {
                       if (!ParseProcStat(text, options_.ticks_per_second, out, &cpu_now_)) {
                         return false;
                       }
                       AddCpuUtilization(cpu_before_, cpu_now_, out);
                       cpu_before_ = cpu_now_;
                       std::vector<CpuTicks> cores = ParseCoreTicks(text);
                       AddCoreSummary(cores_before_, cores, out);
                       cores_before_ = std::move(cores);
                       return true;
                     },
                     {},
                     false});
  AddInput(absl::StrCat(config.proc(), "/loadavg"), ParseLoadavg);
  AddInput(absl::StrCat(config.proc(), "/uptime"), ParseUptime);
  AddInput(absl::StrCat(config.proc(), "/meminfo"), ParseMeminfo);
  inputs_.push_back({absl::StrCat(config.proc(), "/vmstat"),
                     [this](absl::string_view text, Sample* out) {
                       return ParseVmstat(text, options_.page_bytes, out);
                     },
                     {},
                     false});
  AddInput(absl::StrCat(config.proc(), "/net/dev"), ParseNetDev);
  AddInput(absl::StrCat(config.proc(), "/net/snmp"), ParseNetSnmp);
  AddInput(absl::StrCat(config.proc(), "/net/netstat"), ParseNetNetstat);
  AddInput(absl::StrCat(config.proc(), "/diskstats"), ParseDiskstats);
  AddInput(absl::StrCat(config.proc(), "/pressure/cpu"), ParsePressureCpu);
  AddInput(absl::StrCat(config.proc(), "/pressure/memory"), ParsePressureMemory);
  AddInput(absl::StrCat(config.proc(), "/pressure/io"), ParsePressureIo);
  AddInput(absl::StrCat(config.cgroup(), "/cpu.stat"), ParseCgroupCpuStat);
  AddInput(absl::StrCat(config.cgroup(), "/cpu.max"), ParseCgroupCpuMax);
  AddInput(absl::StrCat(config.cgroup(), "/pids.current"), ParseCgroupPids);
  AddInput(absl::StrCat(config.cgroup(), "/memory.current"), ParseCgroupMemoryCurrent);
  AddInput(absl::StrCat(config.cgroup(), "/memory.max"), ParseCgroupMemoryMax);
  AddInput(absl::StrCat(config.cgroup(), "/memory.events"), ParseCgroupMemoryEvents);
}

void HostSource::AddInput(std::string path, bool (*parse)(absl::string_view, Sample*)) {
  inputs_.push_back({std::move(path), parse, {}, false});
}

absl::Time HostSource::Poll(absl::Time now, RowSink* sink) {
  if (!cadence_.TakeDue(now)) return cadence_.due();
  const Sample sample = Take();
  status_ = sample.entries().empty()
                ? absl::UnavailableError(absl::StrCat("nothing below ", proc_,
                                                      " can be read; is it mounted, and is "
                                                      "sources.host.proc right?"))
                : absl::OkStatus();
  if (sample.entries().empty()) return cadence_.due();
  log_.WarnIfLost(rows_.Write(now, sample, sink));
  return cadence_.due();
}

Sample HostSource::Take() {
  Sample sample;
  std::vector<std::string> troubles;
  for (Input& input : inputs_) TakeInput(&input, &sample, &troubles);
  if (!troubles.empty()) {
    log_.Warn(absl::StrCat("cannot read, and leaves out: ", absl::StrJoin(troubles, "; ")));
  }
  return sample;
}

void HostSource::TakeInput(Input* input, Sample* out, std::vector<std::string>* troubles) {
  const absl::StatusOr<std::string> text = ReadProcFile(input->path);
  Sample found;
  if (text.ok() && input->parse(*text, &found)) {
    input->known = found.entries();
    input->logged = false;
  } else {
    for (Sample::Entry& entry : input->known) entry.value = StaleMarker();
    if (!std::exchange(input->logged, true)) {
      troubles->push_back(
          absl::StrCat(input->path, ": ", text.ok() ? "not understood" : text.status().message()));
    }
  }
  for (const Sample::Entry& entry : input->known) {
    out->Add(*entry.metric, entry.labels, entry.value);
  }
}

}  // namespace tacho::agent
