// Shows attributes and events as texts, which TensorBoard renders as Markdown: attributes and
// fields as tables, and the events of one kind as one tag.
#include "server/tensorboard/texts.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "proto/base/status_macros.h"

namespace tacho::server::tb {
namespace {

struct Text {
  int64_t step = 0;
  int64_t time_ns = 0;
  std::string markdown;
};
using TextTags = std::map<std::string, std::vector<Text>>;

// Events of one job, which all its runs share.
struct JobEvents {
  std::string job;
  std::vector<storage::Event> events;
};

std::string Cell(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"|", "\\|"}, {"\n", " "}, {"\r", " "}});
}

std::string Table(const std::map<std::string, std::string>& fields) {
  std::string table = "| name | value |\n|---|---|\n";
  for (const auto& [name, value] : fields) {
    absl::StrAppend(&table, "| ", Cell(name), " | ", Cell(value), " |\n");
  }
  return table;
}

std::string EventText(const storage::Event& event) {
  std::string text = event.message;
  if (event.source.task.has_value()) {
    absl::StrAppend(&text, text.empty() ? "" : " ", "(task ", *event.source.task, ", ",
                    event.source.host, ")");
  }
  if (!event.fields.empty())
    absl::StrAppend(&text, text.empty() ? "" : "\n\n", Table(event.fields));
  return text;
}

absl::Status UseEventsOf(const World& world, absl::string_view job, JobEvents* events) {
  if (events->job == job) return absl::OkStatus();
  TACHO_ASSIGN_OR_RETURN(auto read, world.store.Events(job, INT64_MIN, INT64_MAX));
  *events = {std::string(job), std::move(read)};
  return absl::OkStatus();
}

TextTags TagsOf(const Run& run, const JobEvents& events, const NameFilter& filter) {
  TextTags tags;
  if (!run.attempt.attributes.empty() && filter.Allows("attributes")) {
    tags["attributes"] = {{0, run.first_time_ns(), Table(run.attempt.attributes)}};
  }
  for (const storage::Event& event : events.events) {
    if (event.source.attempt != run.attempt.attempt) continue;
    std::string tag = absl::StrCat("events/", event.kind);
    if (!filter.Allows(tag)) continue;
    tags[std::move(tag)].push_back({event.step.value_or(0), event.time_ns, EventText(event)});
  }
  return tags;
}

// Calls visit for every run that the request is about and that has a text.
template <typename Request>
absl::Status ForEachRun(const World& world, const Request& request,
                        absl::FunctionRef<absl::Status(const Run&, TextTags)> visit) {
  TACHO_RETURN_IF_ERROR(CheckPlugin(request.plugin_filter()));
  TACHO_ASSIGN_OR_RETURN(auto experiment, FindExperiment(world.store, request.experiment_id(),
                                                         world.rights, world.now));
  if (request.plugin_filter().plugin_name() != kTextPlugin) return absl::OkStatus();
  const NameFilter filter = NameFilter::Tags(request.run_tag_filter());
  JobEvents events;
  for (const Run& run :
       FindRuns(world.store, experiment, NameFilter::Runs(request.run_tag_filter()))) {
    TACHO_RETURN_IF_ERROR(world.control.Check());
    TACHO_RETURN_IF_ERROR(UseEventsOf(world, run.job, &events));
    TextTags tags = TagsOf(run, events, filter);
    if (tags.empty()) continue;
    TACHO_RETURN_IF_ERROR(visit(run, std::move(tags)));
  }
  return absl::OkStatus();
}

void FillMetadata(const std::vector<Text>& texts, ::tensorboard::data::TensorMetadata* to) {
  int64_t max_step = texts.front().step;
  int64_t max_time_ns = texts.front().time_ns;
  for (const Text& text : texts) {
    max_step = std::max(max_step, text.step);
    max_time_ns = std::max(max_time_ns, text.time_ns);
  }
  to->set_max_step(max_step);
  to->set_max_wall_time(WallTime(max_time_ns));
  ::tensorboard::SummaryMetadata* summary = to->mutable_summary_metadata();
  summary->mutable_plugin_data()->set_plugin_name(kTextPlugin.data(), kTextPlugin.size());
  summary->set_data_class(::tensorboard::DATA_CLASS_TENSOR);
}

}  // namespace

absl::Status ListTensors(const World& world, const ::tensorboard::data::ListTensorsRequest& request,
                         ::tensorboard::data::ListTensorsResponse* response) {
  return ForEachRun(world, request, [&](const Run& run, const TextTags& tags) {
    auto* entry = response->add_runs();
    entry->set_run_name(run.name);
    for (const auto& [name, texts] : tags) {
      auto* to = entry->add_tags();
      to->set_tag_name(name);
      FillMetadata(texts, to->mutable_metadata());
    }
    return absl::OkStatus();
  });
}

absl::Status ReadTensors(const World& world, const ::tensorboard::data::ReadTensorsRequest& request,
                         ::tensorboard::data::ReadTensorsResponse* response) {
  TACHO_RETURN_IF_ERROR(CheckDownsample(request.has_downsample(), request.downsample()));
  int64_t points = 0;
  return ForEachRun(world, request, [&](const Run& run, const TextTags& tags) -> absl::Status {
    auto* entry = response->add_runs();
    entry->set_run_name(run.name);
    for (const auto& [name, texts] : tags) {
      auto* to = entry->add_tags();
      to->set_tag_name(name);
      const int64_t all = static_cast<int64_t>(texts.size());
      const int64_t shown = std::min(all, request.downsample().num_points());
      points += shown;
      if (points > kMaxTextsOfAnswer) {
        return absl::ResourceExhaustedError(absl::StrCat(
            "the answer has more than ", kMaxTextsOfAnswer, " texts: choose runs or tags"));
      }
      for (auto text = texts.end() - shown; text != texts.end(); ++text) {
        to->mutable_data()->add_step(text->step);
        to->mutable_data()->add_wall_time(WallTime(text->time_ns));
        ::tensorboard::TensorProto* value = to->mutable_data()->add_value();
        value->set_dtype(::tensorboard::DT_STRING);
        value->mutable_tensor_shape();
        value->add_string_val(text->markdown);
      }
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<bool> HasText(const World& world, const std::vector<Run>& runs) {
  for (const Run& run : runs) {
    if (!run.attempt.attributes.empty()) return true;
  }
  JobEvents events;
  for (const Run& run : runs) {
    TACHO_RETURN_IF_ERROR(world.control.Check());
    TACHO_RETURN_IF_ERROR(UseEventsOf(world, run.job, &events));
    if (!TagsOf(run, events, NameFilter()).empty()) return true;
  }
  return false;
}

}  // namespace tacho::server::tb
