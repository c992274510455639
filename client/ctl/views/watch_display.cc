#include "client/ctl/views/watch_display.h"

#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "client/ctl/text/csv.h"
#include "client/ctl/text/json_writer.h"
#include "client/ctl/text/number_format.h"
#include "client/ctl/text/series_name.h"
#include "client/ctl/text/text.h"
#include "client/ctl/text/time_format.h"

namespace tacho::ctl {
namespace {

class ScreenDisplay : public WatchDisplay {
 public:
  explicit ScreenDisplay(const Environment& env) : env_(env) {
    // The other screen, without a cursor; what was there before comes back at the end.
    *env_.out << "\x1b[?1049h\x1b[?25l" << std::flush;
  }
  ~ScreenDisplay() override {
    *env_.out << "\x1b[?25h\x1b[?1049l";
    if (!last_.empty()) *env_.out << last_ << '\n';
    *env_.out << std::flush;
  }

  void Sample(const v1::SeriesInfo&, const Point&) override {}
  void Event(const v1::RecordedEvent&) override {}
  void Note(const std::string&) override {}

  void Show(const WatchView& view) override {
    ScreenSize size;
    if (env_.terminal_size) {
      const TerminalSize now = env_.terminal_size();
      if (now.width > 0) size.width = now.width;
      if (now.height > 0) size.height = now.height;
    }
    std::string text = "\x1b[H";
    bool first = true;
    for (const std::string& line : DrawWatch(view, size, env_.unicode, env_.color)) {
      absl::StrAppend(&text, first ? "" : "\r\n", line, "\x1b[K");
      first = false;
    }
    *env_.out << text << "\x1b[J" << std::flush;
    last_ = WatchLine(view);
  }

 private:
  const Environment& env_;
  std::string last_;  // What stays on the terminal at the end.
};

class LineDisplay : public WatchDisplay {
 public:
  explicit LineDisplay(const Environment& env) : env_(env) {}

  void Sample(const v1::SeriesInfo&, const Point&) override {}
  void Event(const v1::RecordedEvent& event) override {
    *env_.out << "event " << EventLine(event, env_.zone) << '\n' << std::flush;
  }
  void Note(const std::string& text) override {
    *env_.out << Printable(text) << '\n' << std::flush;
  }

  void Show(const WatchView& view) override {
    const auto state = view.status == nullptr ? -1 : static_cast<int>(view.status->state);
    if (state == state_ && view.model->samples() == samples_) return;
    state_ = state;
    samples_ = view.model->samples();
    *env_.out << WatchLine(view) << '\n' << std::flush;
  }

 private:
  const Environment& env_;
  int state_ = -2;
  uint64_t samples_ = 0;
};

// One document a line.
class JsonDisplay : public WatchDisplay {
 public:
  explicit JsonDisplay(std::ostream& out) : out_(out) {}

  void Sample(const v1::SeriesInfo& series, const Point& point) override {
    std::string labels;
    for (const v1::Label& label : series.labels()) {
      absl::StrAppend(&labels, labels.empty() ? "" : ", ", JsonString(label.name()), ": ",
                      JsonString(label.value()));
    }
    const std::string value = ExactNumber(point.value);
    out_ << absl::StrCat("{\"metric\": ", JsonString(series.metric().name()),
                         ", \"task\": ", series.has_task() ? absl::StrCat(series.task()) : "null",
                         ", \"host\": ", JsonString(series.host()), ", \"labels\": {", labels,
                         "}, ", TimeMembers(point.time_unix_ns),
                         ", \"step\": ", point.step ? absl::StrCat(*point.step) : "null",
                         ", \"attempt\": ", point.attempt,
                         ", \"value\": ", std::isfinite(point.value) ? value : JsonString(value),
                         "}\n");
  }

  void Event(const v1::RecordedEvent& event) override {
    std::string fields;
    for (const auto& [name, value] :
         std::map<std::string, std::string>(event.fields().begin(), event.fields().end())) {
      absl::StrAppend(&fields, fields.empty() ? "" : ", ", JsonString(name), ": ",
                      JsonString(value));
    }
    const v1::Source& source = event.source();
    out_ << absl::StrCat(
        "{\"event\": ", JsonString(event.kind()),
        ", \"task\": ", source.has_task() ? absl::StrCat(source.task()) : "null",
        ", \"host\": ", JsonString(source.host()), ", ", TimeMembers(event.time_unix_ns()),
        ", \"step\": ", event.has_step() ? absl::StrCat(event.step()) : "null",
        ", \"attempt\": ", source.attempt(), ", \"message\": ", JsonString(event.message()),
        ", \"fields\": {", fields, "}}\n");
  }

  void Note(const std::string& text) override {
    out_ << "{\"note\": " << JsonString(text) << "}\n" << std::flush;
  }
  void Show(const WatchView&) override { out_ << std::flush; }

 private:
  static std::string TimeMembers(int64_t unix_ns) {
    return absl::StrCat("\"time\": ", JsonString(ExactTime(unix_ns)),
                        ", \"time_unix_ns\": ", unix_ns);
  }

  std::ostream& out_;
};

class CsvDisplay : public WatchDisplay {
 public:
  explicit CsvDisplay(const Environment& env) : env_(env) {
    *env_.out << "job,metric,task,host,labels,attempt,time,time_unix_ns,step,value\r\n";
  }

  void Sample(const v1::SeriesInfo& series, const Point& point) override {
    *env_.out << CsvLine({series.job(), series.metric().name(),
                          series.has_task() ? absl::StrCat(series.task()) : "", series.host(),
                          OwnLabels(series), absl::StrCat(point.attempt),
                          ExactTime(point.time_unix_ns), absl::StrCat(point.time_unix_ns),
                          point.step ? absl::StrCat(*point.step) : "", ExactNumber(point.value)});
  }
  void Event(const v1::RecordedEvent&) override {}
  void Note(const std::string& text) override {
    *env_.err << "tachoctl: " << Printable(text) << '\n';
  }
  void Show(const WatchView&) override { *env_.out << std::flush; }

 private:
  const Environment& env_;
};

}  // namespace

std::unique_ptr<WatchDisplay> MakeWatchDisplay(const Invocation& invocation) {
  const Environment& env = invocation.env;
  switch (invocation.common.format) {
    case Format::kJson:
      return std::make_unique<JsonDisplay>(*env.out);
    case Format::kCsv:
      return std::make_unique<CsvDisplay>(env);
    case Format::kTable:
      break;
  }
  if (env.out_is_terminal) return std::make_unique<ScreenDisplay>(env);
  return std::make_unique<LineDisplay>(env);
}

}  // namespace tacho::ctl
