#include "agent/sources/host/host_source.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tacho::agent {
namespace {

// Of one file; /proc/stat of a machine with thousands of interrupts has some 100 kB.
constexpr size_t kMaxFileBytes = size_t{4} * 1024 * 1024;

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return absl::NotFoundError(std::generic_category().message(errno));
  std::string text;
  char buffer[16 * 1024];
  ssize_t got = 0;
  do {
    got = ::read(fd, buffer, sizeof(buffer));
    if (got > 0) text.append(buffer, static_cast<size_t>(got));
  } while (text.size() < kMaxFileBytes && (got > 0 || (got < 0 && errno == EINTR)));
  const int error = errno;
  ::close(fd);
  // Some files below /proc open and then refuse, where the kernel has the feature switched off.
  if (got < 0) return absl::UnavailableError(std::generic_category().message(error));
  return text;
}

absl::Time NextMultiple(absl::Time now, absl::Duration interval) {
  const int64_t interval_ns = absl::ToInt64Nanoseconds(interval);
  return absl::FromUnixNanos((absl::ToUnixNanos(now) / interval_ns + 1) * interval_ns);
}

}  // namespace

HostSource::HostSource(const config::v1::Agent::Host& config, HostOptions options)
    : interval_(absl::Nanoseconds(config.interval())),
      job_(config.job()),
      options_(std::move(options)),
      log_("host", options_.log) {
  inputs_.push_back({absl::StrCat(config.proc(), "/stat"),
                     [this](absl::string_view text, HostSample* out) {
                       if (!ParseProcStat(text, options_.ticks_per_second, out, &cpu_now_)) {
                         return false;
                       }
                       AddCpuUtilization(cpu_before_, cpu_now_, out);
                       cpu_before_ = cpu_now_;
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
  AddInput(absl::StrCat(config.proc(), "/diskstats"), ParseDiskstats);
  AddInput(absl::StrCat(config.proc(), "/pressure/cpu"), ParsePressureCpu);
  AddInput(absl::StrCat(config.proc(), "/pressure/memory"), ParsePressureMemory);
  AddInput(absl::StrCat(config.proc(), "/pressure/io"), ParsePressureIo);
  AddInput(absl::StrCat(config.cgroup(), "/cpu.stat"), ParseCgroupCpuStat);
  AddInput(absl::StrCat(config.cgroup(), "/memory.current"), ParseCgroupMemoryCurrent);
  AddInput(absl::StrCat(config.cgroup(), "/memory.max"), ParseCgroupMemoryMax);
  AddInput(absl::StrCat(config.cgroup(), "/memory.events"), ParseCgroupMemoryEvents);
}

void HostSource::AddInput(std::string path, bool (*parse)(absl::string_view, HostSample*)) {
  inputs_.push_back({std::move(path), parse, {}, false});
}

absl::Time HostSource::Poll(absl::Time now, RowSink* sink) {
  // The second condition: the clock was set back.
  if (now < due_ && due_ - now <= interval_) return due_;
  due_ = NextMultiple(now, interval_);
  const HostSample sample = Take(now);
  if (sample.entries().empty()) return due_;
  if (absl::Status status = Write(now, sample, sink); !status.ok()) {
    log_.Say(now, "refused", absl::StrCat("a sample is lost: ", status.ToString()));
  }
  return due_;
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
  const absl::StatusOr<std::string> text = ReadFile(input->path);
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
    const absl::StatusOr<uint32_t> layout = sink->DefineLayout(LayoutOf(sample));
    if (!layout.ok()) return layout.status();
    layout_ = *layout;
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
