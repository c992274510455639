#include "agent/sources/self/self_source.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"

namespace tacho::agent {
namespace {

// A row in the making: series and their values.
struct Row {
  v1::Layout layout;
  std::vector<double> values;
  bool only_values = false;     // The layout is known: to make it costs more than all else here.
  v1::Layout::Series left_out;  // Takes what would be told of a series then.

  v1::Layout::Series* Add(const char* name, v1::MetricType type, const char* unit, const char* help,
                          double value) {
    if (only_values) {
      values.push_back(value);
      left_out.Clear();
      return &left_out;
    }
    v1::Layout::Series* series = layout.add_series();
    series->mutable_metric()->set_name(name);
    series->mutable_metric()->set_type(type);
    series->mutable_metric()->set_unit(unit);
    series->mutable_metric()->set_help(help);
    values.push_back(value);
    return series;
  }
};

void AddLabel(const char* name, absl::string_view value, v1::Layout::Series* series) {
  v1::Label* const label = series->add_labels();
  label->set_name(name);
  label->set_value(std::string(value));
}

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

// Of /proc/self/statm, whose second word counts pages.
double ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  double size = 0;
  double resident = 0;
  file >> size >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

void AddCost(Row* row) {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  row->Add("tacho_agent_cpu_seconds_total", v1::METRIC_TYPE_COUNTER, "s",
           "CPU time that the agent has used", Seconds(usage.ru_utime) + Seconds(usage.ru_stime));
  row->Add("tacho_agent_resident_memory_bytes", v1::METRIC_TYPE_GAUGE, "By",
           "Memory of the agent that is in RAM", ResidentBytes());
}

void AddDelivery(const DeliveryFigures& figures, Row* row) {
  row->Add("tacho_agent_spool_messages", v1::METRIC_TYPE_GAUGE, "messages",
           "Messages that wait in the spool for the collector",
           static_cast<double>(figures.waiting_messages));
  row->Add("tacho_agent_spool_bytes", v1::METRIC_TYPE_GAUGE, "By",
           "Size of the messages that wait in the spool",
           static_cast<double>(figures.waiting_bytes));
  row->Add("tacho_agent_rows_total", v1::METRIC_TYPE_COUNTER, "rows",
           "Rows that sources gave to the spool", static_cast<double>(figures.rows));
  row->Add("tacho_agent_lost_rows_total", v1::METRIC_TYPE_COUNTER, "rows",
           "Rows that the spool gave up: it was full or damaged, or the collector refused them",
           static_cast<double>(figures.lost_rows));
}

void AddLosses(const SpoolStats& stats, Row* row) {
  for (size_t i = 0; i < stats.lost.size(); ++i) {
    const SpoolStats::Lost& lost = stats.lost.at(i);
    AddLabel("reason", kSpoolLossNames.at(i),
             row->Add("tacho_agent_spool_lost_rows_total", v1::METRIC_TYPE_COUNTER, "rows",
                      "Rows that never reach the collector: past spool.max_bytes or spool.max_age, "
                      "refused by the agent's disk or by the collector, or damaged",
                      static_cast<double>(lost.rows)));
    AddLabel("reason", kSpoolLossNames.at(i),
             row->Add("tacho_agent_spool_lost_messages_total", v1::METRIC_TYPE_COUNTER, "messages",
                      "The same in messages: batches, events and attributes",
                      static_cast<double>(lost.messages)));
  }
}

// What is wrong with a source now, a poll that hangs included.
absl::Status StatusOf(const SourceHealth& health) {
  if (health.in_poll < SelfSource::kPollTakesTooLong) return health.status;
  return absl::DeadlineExceededError(
      absl::StrCat("its poll has not returned for ",
                   absl::FormatDuration(absl::Trunc(health.in_poll, absl::Minutes(1))),
                   "; what it asks (a driver, a mount, an endpoint) hangs"));
}

// Of a source that fails.
absl::Duration FailingFor(const SourceHealth& health, absl::Time now) {
  return health.status.ok() ? health.in_poll : std::max(now - health.since, absl::ZeroDuration());
}

void AddSource(const SourceHealth& health, absl::Time now, Row* row) {
  const absl::Status status = StatusOf(health);
  const auto add = [&](const char* name, v1::MetricType type, const char* unit, const char* help,
                       double value) {
    v1::Layout::Series* const series = row->Add(name, type, unit, help, value);
    AddLabel("source", health.name, series);
    return series;
  };
  add("tacho_agent_source_up", v1::METRIC_TYPE_GAUGE, "1",
      "Whether the source gives what it should: 1 or 0", status.ok() ? 1 : 0);
  if (!status.ok()) {
    AddLabel("reason", absl::StatusCodeToString(status.code()),
             add("tacho_agent_source_failing", v1::METRIC_TYPE_GAUGE, "1",
                 "1 while the source fails, with the code of its reason; the text is in the event "
                 "source_failed",
                 1));
    add("tacho_agent_source_failing_seconds", v1::METRIC_TYPE_GAUGE, "s",
        "For how long the source has been failing; only while it does",
        absl::ToDoubleSeconds(FailingFor(health, now)));
    add("tacho_agent_source_retry_seconds", v1::METRIC_TYPE_GAUGE, "s",
        "How soon the source is tried again; only while it fails. 0: it is being tried",
        absl::ToDoubleSeconds(health.next_poll_in));
  }
  add("tacho_agent_source_polls_total", v1::METRIC_TYPE_COUNTER, "polls",
      "Times that the source was polled", static_cast<double>(health.polls));
  add("tacho_agent_source_failures_total", v1::METRIC_TYPE_COUNTER, "polls",
      "Polls after which the source said that it fails", static_cast<double>(health.failures));
  add("tacho_agent_source_poll_seconds_total", v1::METRIC_TYPE_COUNTER, "s",
      "Time that polls of the source took, waiting included", absl::ToDoubleSeconds(health.busy));
  add("tacho_agent_source_in_poll_seconds", v1::METRIC_TYPE_GAUGE, "s",
      "How long the poll that has not returned yet takes; 0: there is none",
      absl::ToDoubleSeconds(health.in_poll));
  add("tacho_agent_source_lost_rows_total", v1::METRIC_TYPE_COUNTER, "rows",
      "Rows that were overwritten or damaged before the source read them",
      static_cast<double>(health.lost_rows));
}

// What the layout depends on, besides what never changes.
std::string ShapeOf(const std::vector<SourceHealth>& sources) {
  std::string shape;
  for (const SourceHealth& health : sources) {
    absl::StrAppend(&shape, health.name, "=", static_cast<int>(StatusOf(health).code()), ";");
  }
  return shape;
}

}  // namespace

SelfSource::SelfSource(SelfOptions options)
    : options_(std::move(options)), log_("agent", options_.log), cadence_(options_.interval) {}

absl::Time SelfSource::Poll(absl::Time now, RowSink* sink) {
  if (!cadence_.TakeDue(now)) return cadence_.due();
  std::vector<SourceHealth> sources = options_.ledger->Read(options_.monotonic());
  // Of itself there is nothing to tell: it is in a poll and works.
  std::erase_if(sources, [this](const SourceHealth& health) { return health.name == name(); });
  if (const absl::Status status = WriteRow(now, sources, sink); !status.ok()) {
    log_.Say(now, "refused", absl::StrCat("a sample is lost: ", status.ToString()));
  }
  TellChanges(now, sources, sink);
  return cadence_.due();
}

absl::Status SelfSource::WriteRow(absl::Time now, const std::vector<SourceHealth>& sources,
                                  RowSink* sink) {
  std::string shape = ShapeOf(sources);
  Row row;
  row.only_values = layout_.has_value() && shape == shape_;
  row.layout.mutable_source()->set_job(options_.job);
  row.layout.mutable_source()->set_host(options_.host);
  v1::Layout::Series* const info = row.Add("tacho_agent_info", v1::METRIC_TYPE_GAUGE, "1",
                                           "1, with the agent's id and version as labels", 1);
  AddLabel("agent_id", options_.agent_id, info);
  AddLabel("version", options_.version, info);
  AddCost(&row);
  AddDelivery(options_.delivery(), &row);
  if (options_.spool) AddLosses(options_.spool(), &row);
  for (const SourceHealth& health : sources) AddSource(health, now, &row);
  if (!row.only_values) {
    TACHO_ASSIGN_OR_RETURN(const uint32_t layout, sink->DefineLayout(row.layout));
    layout_ = layout;
    shape_ = std::move(shape);
  }
  const int64_t time_ns = absl::ToUnixNanos(now);
  return sink->AppendRows(*layout_, {&time_ns, 1}, {}, row.values, {});
}

void SelfSource::TellChanges(absl::Time now, const std::vector<SourceHealth>& sources,
                             RowSink* sink) {
  for (const SourceHealth& health : sources) {
    const absl::Status status = StatusOf(health);
    absl::Status& told = told_[health.name];
    if (status == told) continue;
    v1::Event event;
    event.mutable_source()->set_job(options_.job);
    event.mutable_source()->set_host(options_.host);
    event.set_time_unix_ns(absl::ToUnixNanos(now));
    event.set_kind(status.ok() ? "source_recovered" : "source_failed");
    constexpr size_t kLongestMessage = 1000;  // An event's may have 1,024 bytes.
    const std::string message =
        status.ok() ? absl::StrCat(health.name, " works again") : std::string(status.message());
    event.set_message(message.substr(0, kLongestMessage));
    (*event.mutable_fields())["source"] = health.name;
    (*event.mutable_fields())["code"] = absl::StatusCodeToString(status.code());
    // Refused by the spool, it is told at the next poll.
    if (!sink->AppendEvent(event, {}).ok()) continue;
    if (options_.log) {
      options_.log(status.ok()
                       ? message
                       : absl::StrCat(health.name, " fails and is retried: ", status.ToString()));
    }
    told = status;
  }
}

}  // namespace tacho::agent
