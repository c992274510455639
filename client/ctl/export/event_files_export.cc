// Exports as a directory of event files, one for each attempt and task, which appears under its
// name only when all of them are complete.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/ctl/export/export_writer.h"
#include "client/tfevents/event.h"
#include "client/tfevents/writer.h"
#include "proto/base/status_macros.h"

namespace tacho::ctl {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBufferBytes = size_t{64} << 10;
constexpr size_t kMaxBuffered = size_t{32} << 20;  // In all files together.

// A name that is one component of a path and no surprise in a shell.
std::string SafeComponent(const std::string& name) {
  std::string safe;
  for (const char c : name) {
    const bool allowed = absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' ||
                         c == '_' || c == '.' || c == '+' || c == '=';
    safe += allowed ? c : '_';
  }
  if (safe.empty() || safe[0] == '.') safe = "_" + safe;
  return safe;
}

// The files of a directory that comes to be as a whole. They are opened only to be appended to, so
// that there may be more of them than a process may have open.
class EventFilesExport : public ExportWriter {
 public:
  EventFilesExport(std::string directory, std::string partial)
      : directory_(std::move(directory)), partial_(std::move(partial)) {}
  ~EventFilesExport() override {
    std::error_code ignored;
    if (!partial_.empty()) fs::remove_all(partial_, ignored);
  }

  absl::Status Job(const v1::GetJobResponse& job) override {
    job_ = SafeComponent(job.job().name());
    many_tasks_ = job.job().tasks() > 1;
    return absl::OkStatus();
  }
  absl::Status Event(const v1::RecordedEvent&) override {
    ++events_;
    return absl::OkStatus();
  }

  absl::Status Series(const v1::WatchedSeries& watched) override {
    const v1::SeriesInfo& series = watched.series();
    tag_ = series.metric().name();
    if (const std::string labels = LabelsAsMatchers(series); !labels.empty()) {
      absl::StrAppend(&tag_, "{", labels, "}");
    }
    place_ = !series.has_task() ? absl::StrCat("/host-", SafeComponent(series.host()))
             : many_tasks_      ? absl::StrCat("/task-", series.task())
                                : "";
    unstepped_.clear();
    return absl::OkStatus();
  }

  absl::Status Samples(const v1::Points& points) override {
    for (int i = 0; i < points.times_unix_ns_size(); ++i) {
      const ExportedSample sample = SampleAt(points, i);
      std::string& buffer = buffers_[absl::StrCat(job_, "/", sample.attempt, place_)];
      const size_t before = buffer.size();
      TACHO_RETURN_IF_ERROR(Append(sample, &buffer));
      buffered_ += buffer.size() - before;
      absl::Status status;
      if (buffer.size() >= kBufferBytes) {
        status = Flush(absl::StrCat(job_, "/", sample.attempt, place_), &buffer);
      } else if (buffered_ >= kMaxBuffered) {
        status = FlushAll();
      }
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status Finish(const v1::ExportEnd&) override {
    TACHO_RETURN_IF_ERROR(FlushAll());
    std::error_code error;
    fs::create_directories(fs::path(partial_) / job_, error);
    fs::remove(directory_, error);  // If it is there, it is empty.
    error.clear();
    fs::rename(partial_, directory_, error);
    if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot make ", directory_));
    partial_.clear();
    return absl::OkStatus();
  }

  std::vector<std::string> Losses() const override {
    std::vector<std::string> losses;
    const auto say = [&losses](uint64_t count, absl::string_view what) {
      if (count > 0) losses.push_back(absl::StrCat(count, " ", what));
    };
    say(rounded_values_, "values were rounded to float32, which is all that event files hold");
    say(rounded_times_, "times were rounded to what a double of seconds holds (about 240 ns)");
    say(numbered_, "samples have no step and were numbered in their order");
    say(events_, "events are left out; --format jsonl has everything");
    return losses;
  }

 private:
  absl::Status Append(const ExportedSample& sample, std::string* buffer) {
    client::ScalarEvent event;
    event.wall_time = client::WallTimeOfUnixNs(sample.time_unix_ns);
    if (client::UnixNsOfWallTime(event.wall_time) != sample.time_unix_ns) ++rounded_times_;
    event.step = sample.has_step ? sample.step : unstepped_[sample.attempt]++;
    if (!sample.has_step) ++numbered_;
    event.tag = tag_;
    bool exact = true;
    event.value_bits = client::NarrowToFloat(sample.value, &exact);
    if (!exact) ++rounded_values_;
    if (buffer->empty() && !files_.contains(absl::StrCat(job_, "/", sample.attempt, place_))) {
      *buffer = client::FirstRecord(event.wall_time);
    }
    client::AppendScalar(event, buffer);
    return absl::OkStatus();
  }

  absl::Status FlushAll() {
    for (auto& [run, buffer] : buffers_) {
      if (absl::Status status = Flush(run, &buffer); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status Flush(const std::string& run, std::string* buffer) {
    if (buffer->empty()) return absl::OkStatus();
    std::string& name = files_[run];
    if (name.empty()) {
      std::error_code error;
      fs::create_directories(fs::path(partial_) / run, error);
      if (error)
        return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot make ", directory_));
      // TensorBoard looks for "tfevents", and reads files of a run in the order of their names.
      name = (fs::path(partial_) / run / "events.out.tfevents.0.tachograph").string();
    }
    const int fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot write below ", directory_));
    absl::string_view rest = *buffer;
    int failure = 0;
    while (!rest.empty() && failure == 0) {
      const ssize_t written = ::write(fd, rest.data(), rest.size());
      if (written >= 0) {
        rest.remove_prefix(static_cast<size_t>(written));
      } else if (errno != EINTR) {
        failure = errno;
      }
    }
    if (::close(fd) != 0 && failure == 0) failure = errno;
    if (failure != 0) {
      return absl::ErrnoToStatus(failure, absl::StrCat("cannot write below ", directory_));
    }
    buffered_ -= buffer->size();
    buffer->clear();
    return absl::OkStatus();
  }

  const std::string directory_;
  std::string partial_;  // Empty when it is in its place.
  std::string job_;
  bool many_tasks_ = false;
  std::map<std::string, std::string> buffers_;  // By run, below the directory.
  std::map<std::string, std::string> files_;    // Those that were begun.
  size_t buffered_ = 0;
  // The current series.
  std::string tag_, place_;
  std::map<uint32_t, int64_t> unstepped_;  // By attempt.
  uint64_t rounded_values_ = 0;
  uint64_t rounded_times_ = 0;
  uint64_t numbered_ = 0;
  uint64_t events_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ExportWriter>> MakeEventFilesExport(const std::string& directory) {
  std::error_code error;
  if (fs::exists(directory, error) && !fs::is_empty(directory, error)) {
    return absl::AlreadyExistsError(
        absl::StrCat(directory, " is there and not empty; name a directory that is not there"));
  }
  fs::path target(directory);
  if (!target.has_filename()) target = target.parent_path();
  const std::string partial = PartialName(target.string());
  fs::create_directories(partial, error);
  if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot make ", directory));
  return std::make_unique<EventFilesExport>(target.string(), partial);
}

}  // namespace tacho::ctl
