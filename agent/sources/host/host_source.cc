#include "agent/sources/host/host_source.h"

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agent/sources/host/proc_file.h"
#include "proto/base/stale_marker.h"
#include "proto/base/status_macros.h"

namespace tacho::agent {

HostSource::HostSource(const config::v1::Agent::Host& config, HostOptions options)
    : job_(config.job()),
      options_(std::move(options)),
      log_("host", options_.log),
      cadence_(absl::Nanoseconds(config.interval())),
      proc_(config.proc()) {
  inputs_.push_back({absl::StrCat(config.proc(), "/stat"),
                     [this](absl::string_view text, HostSample* out) {
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
                     [this](absl::string_view text, HostSample* out) {
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

void HostSource::AddInput(std::string path, bool (*parse)(absl::string_view, HostSample*)) {
  inputs_.push_back({std::move(path), parse, {}, false});
}

absl::Time HostSource::Poll(absl::Time now, RowSink* sink) {
  if (!cadence_.TakeDue(now)) return cadence_.due();
  const HostSample sample = Take(now);
  status_ = sample.entries().empty()
                ? absl::UnavailableError(absl::StrCat("nothing below ", proc_,
                                                      " can be read; is it mounted, and is "
                                                      "sources.host.proc right?"))
                : absl::OkStatus();
  if (sample.entries().empty()) return cadence_.due();
  if (const absl::Status status = Write(now, sample, sink); !status.ok()) {
    log_.Say(now, "refused", absl::StrCat("a sample is lost: ", status.ToString()));
  }
  return cadence_.due();
}

HostSample HostSource::Take(absl::Time now) {
  HostSample sample;
  std::vector<std::string> troubles;
  for (Input& input : inputs_) TakeInput(&input, &sample, &troubles);
  if (!troubles.empty()) {
    log_.Say(now, "missing", absl::StrCat("left out: ", absl::StrJoin(troubles, "; ")));
  }
  return sample;
}

void HostSource::TakeInput(Input* input, HostSample* out, std::vector<std::string>* troubles) {
  const absl::StatusOr<std::string> text = ReadProcFile(input->path);
  HostSample found;
  if (text.ok() && input->parse(*text, &found)) {
    input->known = found.entries();
    input->said = false;
  } else {
    for (HostSample::Entry& entry : input->known) entry.value = StaleMarker();
    if (!std::exchange(input->said, true)) {
      troubles->push_back(
          absl::StrCat(input->path, ": ", text.ok() ? "not understood" : text.status().message()));
    }
  }
  for (const HostSample::Entry& entry : input->known) {
    out->Add(*entry.metric, entry.label, entry.value);
  }
}

absl::Status HostSource::Write(absl::Time now, const HostSample& sample, RowSink* sink) {
  std::vector<std::pair<const HostMetric*, std::string>> columns;
  std::vector<double> values;
  for (const HostSample::Entry& entry : sample.entries()) {
    columns.emplace_back(entry.metric, entry.label);
    values.push_back(entry.value);
  }
  if (columns != columns_) {
    TACHO_ASSIGN_OR_RETURN(const uint32_t layout, sink->DefineLayout(LayoutOf(sample)));
    layout_ = layout;
    columns_ = std::move(columns);
  }
  const int64_t time_ns = absl::ToUnixNanos(now);
  return sink->AppendRows(layout_, {&time_ns, 1}, {}, values, {});
}

v1::Layout HostSource::LayoutOf(const HostSample& sample) const {
  v1::Layout layout;
  layout.mutable_source()->set_job(job_);
  layout.mutable_source()->set_host(options_.host);
  for (const HostSample::Entry& entry : sample.entries()) {
    v1::Layout::Series* series = layout.add_series();
    series->mutable_metric()->set_name(entry.metric->name);
    series->mutable_metric()->set_type(entry.metric->type);
    series->mutable_metric()->set_unit(entry.metric->unit);
    series->mutable_metric()->set_help(entry.metric->help);
    if (entry.metric->label == nullptr) continue;
    v1::Label* label = series->add_labels();
    label->set_name(entry.metric->label);
    label->set_value(entry.label);
  }
  return layout;
}

}  // namespace tacho::agent
