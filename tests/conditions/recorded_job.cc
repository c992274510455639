#include "tests/conditions/recorded_job.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/import/units.h"
#include "server/conditions/window/signal_names.h"

namespace tacho::conditions {
namespace {

namespace fs = std::filesystem;
using server::conditions::Point;
using server::conditions::Signal;
using server::conditions::TaskWindow;
using server::conditions::Track;

// Keeps what has a meaning for conditions.
class SignalSink : public importer::RecordSink {
 public:
  absl::Status FindSeries(const importer::SeriesKey& key,
                          std::optional<uint32_t>* series) override {
    const auto at = ids_.try_emplace({key.task.value_or(0), key.metric, key.attempt},
                                     static_cast<uint32_t>(series_.size()));
    *series = at.first->second;
    if (at.second) {
      series_.push_back({key.task.value_or(0), key.attempt, key.metric, names_.Find(key.metric)});
    }
    return absl::OkStatus();
  }
  absl::Status AddRow(const importer::Row& row) override {
    for (const importer::Cell& cell : row.cells) {
      Series& series = series_[cell.series];
      if (!series.match) continue;
      series.points.push_back({row.time_unix_ns,
                               row.step.value_or(server::conditions::kNoPointStep),
                               cell.value * series.match->factor});
    }
    return absl::OkStatus();
  }
  absl::Status AddEvent(v1::Event) override { return absl::OkStatus(); }
  absl::Status AddAttributes(uint32_t, const std::string&, const std::string&) override {
    return absl::OkStatus();
  }
  void AddSkipped(importer::Skip, uint64_t, absl::string_view) override {}
  void Note(absl::string_view) override {}

  // The tasks of the newest attempt, as windows have them.
  std::vector<TaskWindow> Tasks() {
    uint32_t newest = 0;
    for (const Series& series : series_) newest = std::max(newest, series.attempt);
    std::stable_sort(series_.begin(), series_.end(), [](const Series& a, const Series& b) {
      return (a.match ? a.match->rank : 0) < (b.match ? b.match->rank : 0);
    });
    std::map<uint32_t, TaskWindow> tasks;
    for (Series& series : series_) {
      if (!series.match || series.points.empty() || series.attempt != newest) continue;
      std::stable_sort(series.points.begin(), series.points.end(),
                       [](const Point& a, const Point& b) { return a.time_ns < b.time_ns; });
      TaskWindow& task = tasks[series.task];
      task.task = series.task;
      task.tracks[series.match->signal].push_back({series.metric, std::move(series.points)});
    }
    std::vector<TaskWindow> result;
    for (auto& [number, task] : tasks) result.push_back(std::move(task));
    return result;
  }

 private:
  struct Series {
    uint32_t task = 0;
    uint32_t attempt = 0;
    std::string metric;
    std::optional<server::conditions::SignalMatch> match;
    std::vector<Point> points;
  };

  const server::conditions::SignalNames names_;
  std::map<std::tuple<uint32_t, std::string, uint32_t>, uint32_t> ids_;
  std::vector<Series> series_;
};

bool IsTraining(Signal signal) {
  return signal == Signal::kLoss || signal == Signal::kEvalLoss || signal == Signal::kAccuracy ||
         signal == Signal::kEvalAccuracy || signal == Signal::kGradNorm;
}

bool HasTraining(const RecordedJob& job) {
  for (const TaskWindow& task : job.tasks) {
    for (const auto& [signal, tracks] : task.tracks) {
      if (IsTraining(signal)) return true;
    }
  }
  return false;
}

// The files of a directory that the importer is given, each alone; event files by their directory.
std::vector<std::string> PathsBelow(const fs::path& directory) {
  std::set<std::string> paths;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file() || absl::StrContains(name, "LICENSE")) continue;
    const bool events = absl::StrContains(name, "tfevents");
    paths.insert(events ? entry.path().parent_path().string() : entry.path().string());
  }
  return {paths.begin(), paths.end()};
}

std::vector<Point> Thinned(std::vector<Point> points, size_t most) {
  if (points.size() <= most) return points;
  // Strides double with each stretch of an eighth, counted from the newest.
  std::vector<Point> kept(points.rbegin(), points.rbegin() + static_cast<std::ptrdiff_t>(most / 2));
  const size_t stretch = most / 8;
  size_t stride = 2;
  for (size_t at = most / 2; at < points.size(); stride *= 2) {
    // The remaining points must fit into the remaining room.
    const size_t room = most - kept.size();
    const size_t left = points.size() - at;
    if (room <= stretch) stride = std::max(stride, (left + room - 1) / room);
    for (size_t i = 0; i < stretch && at < points.size(); ++i, at += stride) {
      kept.push_back(points[points.size() - 1 - at]);
    }
    if (room <= stretch) break;
  }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

}  // namespace

int64_t RecordedJob::first_time_ns() const { return Times().front(); }
int64_t RecordedJob::last_time_ns() const { return Times().back(); }

std::vector<int64_t> RecordedJob::Times() const {
  std::set<int64_t> times;
  for (const TaskWindow& task : tasks) {
    for (const auto& [signal, tracks] : task.tracks) {
      for (const Track& track : tracks) {
        for (const Point& point : track.points) times.insert(point.time_ns);
      }
    }
  }
  return {times.begin(), times.end()};
}

size_t RecordedJob::recorded_steps() const {
  size_t most = 0;
  for (const TaskWindow& task : tasks) {
    for (const auto& [signal, tracks] : task.tracks) {
      if (!IsTraining(signal)) continue;
      for (const Track& track : tracks) most = std::max(most, track.points.size());
    }
  }
  return most;
}

server::conditions::JobWindow WindowAt(const RecordedJob& job, int64_t now_ns, size_t max_points) {
  server::conditions::JobWindow window;
  window.job = job.name;
  window.now_ns = now_ns;
  for (const TaskWindow& recorded : job.tasks) {
    TaskWindow task;
    task.task = recorded.task;
    for (const auto& [signal, tracks] : recorded.tracks) {
      for (const Track& track : tracks) {
        const auto end =
            std::upper_bound(track.points.begin(), track.points.end(), now_ns,
                             [](int64_t now, const Point& point) { return now < point.time_ns; });
        if (end == track.points.begin()) continue;
        task.tracks[signal].push_back(
            {track.metric, Thinned({track.points.begin(), end}, max_points)});
      }
    }
    if (!task.tracks.empty()) window.tasks.push_back(std::move(task));
  }
  return window;
}

absl::StatusOr<std::vector<RecordedJob>> LoadRecordedJobs(const std::string& directory) {
  if (!fs::is_directory(directory)) {
    return absl::NotFoundError(absl::StrCat("there is no directory ", directory));
  }
  std::vector<RecordedJob> jobs;
  for (const char* set : {"hf", "megatron", "mlperf-tpu", "modded-nanogpt", "tfevents"}) {
    if (!fs::is_directory(fs::path(directory) / set)) continue;
    for (const std::string& path : PathsBelow(fs::path(directory) / set)) {
      importer::UnitOptions options;
      options.read.start = absl::FromUnixSeconds(1'700'000'000);
      options.read.step_time = absl::Seconds(1);
      options.read.skip_damaged = true;
      if (fs::is_directory(path)) options.format = importer::FileFormat::kEventFiles;
      const auto units = importer::FindUnits({path}, options);
      if (!units.ok()) continue;  // Licences, files without scalars.
      for (const importer::Unit& unit : *units) {
        // A directory of runs is listed with each of its runs too.
        if (units->size() > 1 && fs::is_directory(path) &&
            fs::path(unit.paths[0]).parent_path() != fs::path(path)) {
          continue;
        }
        SignalSink sink;
        absl::Status status = importer::ReadUnit(
            unit, [](uint64_t) {}, &sink);
        if (!status.ok()) continue;
        RecordedJob job{.name = fs::path(path).lexically_relative(directory).string(),
                        .data_set = set,
                        .tasks = sink.Tasks()};
        if (HasTraining(job)) jobs.push_back(std::move(job));
      }
    }
  }
  std::sort(jobs.begin(), jobs.end(),
            [](const RecordedJob& a, const RecordedJob& b) { return a.name < b.name; });
  return jobs;
}

}  // namespace tacho::conditions
