// Lays out the live screen of a job as lines that fit the terminal; a count stands for rows that
// do not fit.
#include "client/ctl/views/watch_screen.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "client/ctl/text/condition_text.h"
#include "client/ctl/text/dot_canvas.h"
#include "client/ctl/text/format.h"
#include "client/ctl/text/table.h"
#include "client/ctl/text/text.h"
#include "client/ctl/views/condition_report.h"
#include "proto/base/progress.h"

namespace tacho::ctl {
namespace {

constexpr int kRed = 31;
constexpr int kGreen = 32;
constexpr int kYellow = 33;
constexpr size_t kFewEvents = 3;
constexpr size_t kMostMetrics = 8;
constexpr size_t kMostConditions = 4;

std::string StateText(const WatchView& view) {
  if (view.status == nullptr) return "not known yet, waiting";
  switch (view.status->state) {
    case JobStatus::State::kReporting:
      return "running";
    case JobStatus::State::kSilent:
      return absl::StrCat("SILENT for ", ReadableDuration(view.status->age));
    case JobStatus::State::kEnded:
      break;
  }
  const std::string& message = view.status->ended->message();
  return absl::StrCat("ended", message.empty() ? "" : ": ", message);
}

int StateColor(const WatchView& view) {
  if (view.status == nullptr) return kYellow;
  return view.status->state == JobStatus::State::kReporting ? kGreen
         : view.status->state == JobStatus::State::kSilent  ? kRed
                                                            : 0;
}

// The newest step that anything says.
std::optional<int64_t> LastStep(const WatchView& view) {
  std::optional<int64_t> step = view.model->last_step();
  if (step || view.status == nullptr || view.status->attempt() == nullptr) return step;
  const v1::Attempt& attempt = *view.status->attempt();
  return attempt.has_last_step() ? std::optional<int64_t>(attempt.last_step()) : std::nullopt;
}

// Steps that are done, if it is known how many are planned.
std::optional<int64_t> Done(const WatchView& view) {
  const std::optional<int64_t> step = LastStep(view);
  if (!step || view.status == nullptr || !view.status->planned_steps) return std::nullopt;
  return StepsDone(*step, view.status->from_zero);
}

std::optional<double> Progress(const WatchView& view) {
  const std::optional<int64_t> done = Done(view);
  if (!done) return std::nullopt;
  return ProgressRatio(*done, *view.status->planned_steps);
}

std::string ProgressText(const WatchView& view) {
  const std::optional<int64_t> step = LastStep(view);
  if (!step) return "no step yet";
  std::string text = absl::StrCat("step ", *step);
  const std::optional<double> progress = Progress(view);
  if (progress) {
    absl::StrAppend(&text, " of ", *view.status->planned_steps, " (", ShareText(*progress), ")");
  }
  const std::optional<double> rate = view.model->StepsPerSecond();
  if (!rate) return text;
  absl::StrAppend(&text, ", ", absl::StrFormat("%.3g", *rate), " steps/s");
  const bool running = view.status != nullptr && view.status->state == JobStatus::State::kReporting;
  if (progress && running && *progress < 1) {
    const auto missing = static_cast<double>(*view.status->planned_steps - *Done(view));
    absl::StrAppend(&text, ", about ", ReadableDuration(absl::Seconds(missing / *rate)), " to go");
  }
  return text;
}

std::string Bar(double progress, size_t width, bool unicode) {
  const double filled = std::clamp(progress, 0.0, 1.0) * static_cast<double>(width);
  std::string bar;
  for (size_t i = 0; i < width; ++i) {
    const bool full = static_cast<double>(i) + 0.5 <= filled;
    bar += unicode ? (full ? "█" : "░") : (full ? "#" : ".");
  }
  return bar;
}

// The most severe first.
std::vector<v1::Condition> HoldingNow(const WatchView& view) {
  if (view.status == nullptr || !view.status->conditions) return {};
  return Holding(*view.status->conditions);
}

struct Problem {
  const TaskStatus* task = nullptr;
  int rank = 0;  // Higher is worse.
  std::string text;
};

// NaN and infinity first, because they spoil everything after them. Then silence, then tasks
// behind.
Problem ProblemOf(const WatchView& view, const TaskStatus& task) {
  for (const auto& [metric, sample] : task.latest) {
    if (std::isfinite(sample.value())) continue;
    std::string text = absl::StrCat(metric, " is ", ReadableNumber(sample.value()));
    if (sample.has_step()) absl::StrAppend(&text, " at step ", sample.step());
    return {&task, 3, std::move(text)};
  }
  if (task.silent && view.status->state != JobStatus::State::kSilent) {
    return {&task, 2, absl::StrCat("SILENT for ", ReadableDuration(task.age))};
  }
  if (task.behind_steps >= kBehindSteps) {
    return {&task, 1, absl::StrCat("behind by ", task.behind_steps)};
  }
  return {&task, 0, ""};
}

std::vector<Problem> WorstFirst(const WatchView& view) {
  std::vector<Problem> problems;
  if (view.status == nullptr) return problems;
  for (const TaskStatus& task : view.status->tasks) problems.push_back(ProblemOf(view, task));
  std::stable_sort(problems.begin(), problems.end(), [](const Problem& a, const Problem& b) {
    return std::make_tuple(a.rank, a.task->behind_steps, a.task->age) >
           std::make_tuple(b.rank, b.task->behind_steps, b.task->age);
  });
  return problems;
}

std::vector<std::string> TableLines(const Table& table, size_t width, bool unicode) {
  std::ostringstream out;
  table.Print(out, width, unicode);
  std::vector<std::string> lines = absl::StrSplit(out.str(), '\n');
  lines.pop_back();
  for (std::string& line : lines) line = Shorten(line, width, unicode);
  return lines;
}

class Screen {
 public:
  Screen(const WatchView& view, ScreenSize size, bool unicode, bool color)
      : view_(view), size_(size), unicode_(unicode), color_(color) {}

  std::vector<std::string> Draw() {
    AddHeader();
    AddConditions();
    AddMetrics();
    const std::vector<std::string> footer = Footer();
    AddTasks(size_.height - std::min(size_.height, lines_.size() + footer.size()));
    lines_.insert(lines_.end(), footer.begin(), footer.end());
    if (lines_.size() > size_.height) lines_.resize(size_.height);
    return std::move(lines_);
  }

 private:
  void Add(const std::string& text, int color = 0) {
    lines_.push_back(
        Colored(Shorten(Printable(text), size_.width, unicode_), color, false, color_));
  }

  void AddHeader() {
    const std::string clock = absl::FormatTime("%H:%M:%S", view_.now, view_.zone);
    std::string text = absl::StrCat(view_.job, "  ", StateText(view_));
    if (view_.status != nullptr && view_.status->attempt() != nullptr) {
      absl::StrAppend(&text, "  attempt ", view_.status->attempt()->attempt());
    }
    text =
        Shorten(Printable(text), size_.width - std::min(size_.width, clock.size() + 2), unicode_);
    const size_t used = DisplayWidth(text) + clock.size();
    lines_.push_back(absl::StrCat(Colored(text, StateColor(view_), false, color_),
                                  std::string(size_.width - std::min(size_.width, used), ' '),
                                  clock));
    Add(ProgressText(view_));
    if (const std::optional<double> progress = Progress(view_)) {
      lines_.push_back(
          Colored(Bar(*progress, size_.width, unicode_), StateColor(view_), false, color_));
    }
  }

  void AddConditions() {
    const std::vector<v1::Condition> holding = HoldingNow(view_);
    if (holding.empty()) return;
    lines_.emplace_back();
    const size_t shown = std::min(holding.size(), kMostConditions);
    for (size_t i = 0; i < shown; ++i) {
      const bool critical = holding[i].severity() == v1::CONDITION_SEVERITY_CRITICAL;
      Add(ConditionSummary(holding[i], view_.now), critical ? kRed : kYellow);
    }
    if (shown < holding.size()) {
      Add(absl::StrCat("... ", Count(holding.size() - shown, "more condition")));
    }
  }

  void AddMetrics() {
    const size_t room = std::clamp<size_t>(size_.width / 4, 8, 40);
    std::vector<WatchModel::MetricView> metrics = view_.model->Metrics(room);
    if (metrics.empty()) return;
    const size_t left_out = metrics.size() - std::min(metrics.size(), kMostMetrics);
    metrics.resize(metrics.size() - left_out);
    const bool wide = size_.width >= 60;
    std::vector<TableColumn> columns = {{"METRIC", Align::kLeft, true},
                                        {"NOW", Align::kRight, false}};
    if (wide) {
      columns.push_back({"LOWEST", Align::kRight, false});
      columns.push_back({"HIGHEST", Align::kRight, false});
    }
    columns.push_back({"COURSE", Align::kLeft, false});
    Table table(std::move(columns));
    for (const WatchModel::MetricView& metric : metrics) {
      std::vector<std::string> cells = {metric.metric.name(), ReadableNumber(metric.average)};
      if (wide) {
        cells.push_back(ReadableNumber(metric.low));
        cells.push_back(ReadableNumber(metric.high));
      }
      cells.push_back(Sparkline(metric.course, room, unicode_));
      table.AddRow(std::move(cells));
    }
    lines_.emplace_back();
    const std::vector<std::string> rows = TableLines(table, size_.width, unicode_);
    for (size_t i = 0; i < rows.size(); ++i) {
      const bool alarm = i > 0 && metrics[i - 1].non_finite > 0;
      lines_.push_back(Colored(rows[i], alarm ? kRed : 0, false, color_));
    }
    if (left_out > 0) Add(absl::StrCat("... ", Count(left_out, "more metric")));
  }

  void AddTasks(size_t room) {
    const std::vector<Problem> problems = WorstFirst(view_);
    constexpr size_t kAround = 3;  // A blank line, the headings, what is left out.
    if (problems.empty() || room <= kAround) return;
    const size_t shown = std::min(problems.size(), room - kAround);
    Table table({{"TASK", Align::kRight, false},
                 {"HOST", Align::kLeft, true},
                 {"STEP", Align::kRight, false},
                 {"LAST SEEN", Align::kLeft, false},
                 {"", Align::kLeft, true}});
    for (size_t i = 0; i < shown; ++i) {
      const v1::Task& task = problems[i].task->task;
      table.AddRow({task.has_task() ? absl::StrCat(task.task()) : "-", task.host(),
                    task.has_last_step() ? absl::StrCat(task.last_step()) : "",
                    Age(task.last_seen_unix_ns(), view_.now), problems[i].text});
    }
    lines_.emplace_back();
    const std::vector<std::string> rows = TableLines(table, size_.width, unicode_);
    for (size_t i = 0; i < rows.size(); ++i) {
      const int rank = i == 0 ? 0 : problems[i - 1].rank;
      lines_.push_back(Colored(rows[i], rank > 1 ? kRed : rank == 1 ? kYellow : 0, false, color_));
    }
    AddLeftOut(problems, shown);
  }

  void AddLeftOut(const std::vector<Problem>& problems, size_t shown) {
    if (shown == problems.size()) return;
    const auto bad = static_cast<size_t>(
        std::count_if(problems.begin() + static_cast<std::ptrdiff_t>(shown), problems.end(),
                      [](const Problem& problem) { return problem.rank > 0; }));
    Add(absl::StrCat("... ", Count(problems.size() - shown, "more task"),
                     bad > 0 ? absl::StrCat(", ", bad, " with a problem") : ""));
  }

  std::vector<std::string> Footer() const {
    std::vector<std::string> lines;
    const std::deque<v1::RecordedEvent>& events = view_.model->events();
    const size_t few = std::min(events.size(), kFewEvents);
    if (few > 0) lines.emplace_back();
    for (size_t i = events.size() - few; i < events.size(); ++i) {
      lines.push_back(Shorten(EventLine(events[i], view_.zone), size_.width, unicode_));
    }
    const std::string note = view_.note.empty() ? "Ctrl-C ends" : view_.note;
    lines.emplace_back();
    lines.push_back(Colored(Shorten(Printable(note), size_.width, unicode_), view_.alarm ? kRed : 0,
                            false, color_));
    return lines;
  }

  const WatchView& view_;
  const ScreenSize size_;
  const bool unicode_;
  const bool color_;
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> DrawWatch(const WatchView& view, ScreenSize size, bool unicode,
                                   bool color) {
  return Screen(view, size, unicode, color).Draw();
}

std::string WatchLine(const WatchView& view) {
  std::string line = absl::StrCat(absl::FormatTime("%Y-%m-%d %H:%M:%S", view.now, view.zone), "  ",
                                  StateText(view), "  ", ProgressText(view));
  for (const WatchModel::MetricView& metric : view.model->Metrics(1)) {
    absl::StrAppend(&line, "  ", metric.metric.name(), "=", ReadableNumber(metric.average));
    if (metric.non_finite > 0) {
      absl::StrAppend(&line, " (", metric.non_finite, " not finite)");
    }
  }
  for (const v1::Condition& one : HoldingNow(view)) {
    absl::StrAppend(&line, "  ", one.condition(), " (", SeverityName(one.severity()), ")");
  }
  size_t bad = 0;
  const std::vector<Problem> problems = WorstFirst(view);
  for (const Problem& problem : problems) bad += problem.rank > 0 ? 1 : 0;
  if (bad > 0) {
    const v1::Task& task = problems[0].task->task;
    absl::StrAppend(&line, "  ", Count(bad, "task"), " with a problem, worst: ",
                    task.has_task() ? absl::StrCat("task ", task.task()) : task.host(), " ",
                    problems[0].text);
  }
  return Printable(line);
}

std::string EventLine(const v1::RecordedEvent& event, absl::TimeZone zone) {
  std::string line =
      absl::StrCat(absl::FormatTime("%H:%M:%S", absl::FromUnixNanos(event.time_unix_ns()), zone),
                   " ", event.kind());
  if (event.has_step()) absl::StrAppend(&line, " step ", event.step());
  if (event.source().has_task()) absl::StrAppend(&line, " task ", event.source().task());
  if (!event.message().empty()) absl::StrAppend(&line, ": ", event.message());
  return Printable(line);
}

}  // namespace tacho::ctl
