// Reads JSON lines, groups rows with the same members into batches, and stores the place in each
// file with them.
#include "agent/sources/text/json_lines_source.h"

#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/import/json_reader.h"
#include "client/import/values.h"
#include "proto/base/stale_marker.h"
#include "proto/base/status_macros.h"

namespace tacho::agent {
namespace {

using importer::FlatObject;
using importer::JsonMember;
using importer::JsonToken;

std::string CheckpointKey(const std::string& path) { return absl::StrCat("jsonlines/", path); }

// Numbers, and what a program says that cannot say NaN in JSON.
std::optional<double> ValueOf(const JsonMember& member) {
  if (member.kind == JsonToken::kNumber || member.kind == JsonToken::kString) {
    return importer::ParseNumber(member.text);
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<std::unique_ptr<JsonLinesSource>> JsonLinesSource::Create(
    const config::v1::JsonLines& config, const TextSourceOptions& options) {
  std::vector<File> files;
  for (const config::v1::JsonLinesFile& one : config.files()) {
    auto names = NamePatterns::Create(one.allow(), one.deny());
    if (!names.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("sources.json_lines.files: ", names.status().message()));
    }
    for (const File& other : files) {
      if (other.config.path() != one.path()) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("sources.json_lines.files: ", one.path(), " is there twice"));
    }
    files.push_back({.config = one, .names = *std::move(names)});
  }
  return std::unique_ptr<JsonLinesSource>(new JsonLinesSource(config, std::move(files), options));
}

JsonLinesSource::JsonLinesSource(const config::v1::JsonLines& config, std::vector<File> files,
                                 const TextSourceOptions& options)
    : poll_interval_(absl::Nanoseconds(config.poll_interval())),
      host_(options.host),
      log_("json_lines", options.log),
      files_(std::move(files)) {}

absl::Time JsonLinesSource::Poll(absl::Time now, RowSink* sink) {
  bool more = false;
  size_t failed = 0;
  for (File& file : files_) {
    const uint64_t left_out = file.lines_left_out;
    const absl::StatusOr<bool> read = ReadFile(now, &file, sink);
    if (read.ok()) {
      more = more || *read;
    } else {
      ++failed;
      status_ = read.status();
      log_.Warn("cannot read a file", {{"reason", read.status().ToString()}});
    }
    if (file.lines_left_out > left_out) {
      log_.Warn("lines passed over", {{"file", file.config.path()},
                                      {"lines", file.lines_left_out - left_out},
                                      {"last_reason", file.why}});
    }
  }
  if (failed < files_.size()) status_ = absl::OkStatus();
  return more ? now : now + poll_interval_;
}

absl::StatusOr<bool> JsonLinesSource::ReadFile(absl::Time now, File* file, RowSink* sink) {
  if (file->tail == nullptr) {
    const std::string& path = file->config.path();
    file->tail = std::make_unique<LineTail>(path, sink->ReadCheckpoint(CheckpointKey(path)));
  }
  LineTail& tail = *file->tail;
  Pending pending;
  absl::Status status;
  const uint64_t too_long = tail.too_long();
  for (int reads = 0; status.ok() && reads < kReadsATurn; ++reads) {
    status = tail.Read();
    absl::string_view line;
    while (status.ok() && tail.Next(&line)) {
      if (absl::StripAsciiWhitespace(line).empty()) continue;
      Row row;
      if (const absl::Status parsed = ParseLine(now, *file, line, &row); !parsed.ok()) {
        ++file->lines_left_out;
        file->why = std::string(parsed.message());
      } else {
        status = Append(now, file, std::move(row), tail.place(), &pending, sink);
      }
    }
    if (!tail.more()) break;
  }
  if (tail.too_long() > too_long) {
    file->lines_left_out += tail.too_long() - too_long;
    file->why = "a line is longer than a MiB";
  }
  if (status.ok()) status = Flush(now, file, &pending, sink);
  if (!status.ok()) {
    file->tail = nullptr;  // Begins again behind what is stored.
    return status;
  }
  return tail.more();
}

absl::Status JsonLinesSource::ParseLine(absl::Time now, const File& file, absl::string_view line,
                                        Row* row) {
  FlatObject object;
  TACHO_RETURN_IF_ERROR(object.Parse(line));
  if (object.members().size() > kMaxMembers) {
    return absl::InvalidArgumentError(absl::StrCat("more than ", kMaxMembers, " members"));
  }
  const JsonMember* const step = object.Find(file.config.step_field());
  const JsonMember* const time = object.Find(file.config.time_field());
  row->time_ns = absl::ToUnixNanos(now);
  if (time != nullptr) {
    const auto ns =
        importer::ParseTimeNs(time->text, importer::UnitOfName(time->name), absl::UTCTimeZone());
    if (!ns) return absl::InvalidArgumentError(absl::StrCat(time->name, " is no time"));
    row->time_ns = *ns;
  }
  if (step != nullptr) {
    const auto number = importer::ParseInteger(step->text);
    if (!number) return absl::InvalidArgumentError(absl::StrCat(step->name, " is no whole number"));
    row->has_step = true;
    row->step = *number;
  }
  for (const JsonMember& member : object.members()) {
    if (&member == step || &member == time) continue;
    // The last one of a name counts, as everywhere in JSON.
    if (object.Find(member.name) != &member || !file.names.Wants(member.name)) continue;
    const std::optional<double> value = ValueOf(member);
    if (!value || IsStaleMarker(*value)) continue;
    row->metrics.push_back(member.name);
    row->values.push_back(*value);
  }
  if (row->metrics.empty()) return absl::InvalidArgumentError("no number beside step and time");
  return absl::OkStatus();
}

absl::Status JsonLinesSource::Append(absl::Time now, File* file, Row row, const std::string& place,
                                     Pending* pending, RowSink* sink) {
  const bool fits = pending->metrics == row.metrics && pending->has_steps == row.has_step &&
                    pending->times_ns.size() < kRowsAtOnce;
  if (!fits) {
    TACHO_RETURN_IF_ERROR(Flush(now, file, pending, sink));
    pending->metrics = std::move(row.metrics);
    pending->has_steps = row.has_step;
  }
  pending->times_ns.push_back(row.time_ns);
  if (row.has_step) pending->steps.push_back(row.step);
  pending->values.insert(pending->values.end(), row.values.begin(), row.values.end());
  pending->place = place;
  return absl::OkStatus();
}

absl::Status JsonLinesSource::Flush(absl::Time now, File* file, Pending* pending, RowSink* sink) {
  Pending rows = std::exchange(*pending, {});
  if (rows.times_ns.empty()) return absl::OkStatus();
  const RowSink::Checkpoint checkpoint{.key = CheckpointKey(file->config.path()),
                                       .value = rows.place};
  const absl::StatusOr<uint32_t> layout = LayoutOf(now, file, rows, sink);
  if (absl::IsResourceExhausted(layout.status())) {
    file->lines_left_out += rows.times_ns.size();
    file->why = std::string(layout.status().message());
    return sink->WriteCheckpoint(checkpoint);
  }
  if (!layout.ok()) return layout.status();
  return sink->AppendRows(*layout, rows.times_ns, rows.steps, rows.values, checkpoint);
}

absl::StatusOr<uint32_t> JsonLinesSource::LayoutOf(absl::Time now, File* file,
                                                   const Pending& pending, RowSink* sink) {
  const std::string content =
      absl::StrCat(pending.has_steps ? "s" : "", "\n", absl::StrJoin(pending.metrics, "\n"));
  if (const auto known = file->layouts.find(content); known != file->layouts.end()) {
    return known->second;
  }
  if (!file->budget.Take(now)) {
    return absl::ResourceExhaustedError(
        "its members are others in each line; choose some with allow");
  }
  v1::Layout layout;
  layout.mutable_source()->set_job(file->config.job());
  layout.mutable_source()->set_task(file->config.task());
  layout.mutable_source()->set_attempt(file->config.attempt());
  layout.mutable_source()->set_host(host_);
  layout.set_has_steps(pending.has_steps);
  for (const std::string& metric : pending.metrics) {
    v1::Metric* const definition = layout.add_series()->mutable_metric();
    definition->set_name(metric);
    definition->set_type(v1::METRIC_TYPE_GAUGE);
  }
  absl::StatusOr<uint32_t> id = sink->DefineLayout(layout);
  if (id.ok()) file->layouts.emplace(content, *id);
  return id;
}

}  // namespace tacho::agent
