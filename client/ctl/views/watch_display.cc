// Four displays of a live view: a screen, lines, JSON and CSV.
#include "client/ctl/views/watch_display.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "client/ctl/text/format.h"
#include "client/ctl/text/json_writer.h"
#include "client/ctl/text/samples.h"
#include "client/ctl/text/text.h"

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
  std::string last_;  // Stays on the terminal at the end.
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
  explicit JsonDisplay(std::ostream& out) : out_(out), json_(out, /*one_line=*/true) {}

  void Sample(const v1::SeriesInfo& series, const Point& point) override {
    json_.Object([&] {
      json_.Field("metric", series.metric().name());
      json_.Field("task", Maybe(series.has_task(), series.task()));
      json_.Field("host", series.host());
      json_.Field("labels", OwnLabelPairs(series));
      json_.TimeFields("time", point.time_unix_ns);
      json_.Field("step", point.step);
      json_.Field("attempt", point.attempt);
      json_.Field("value", point.value);
    });
  }
  void Event(const v1::RecordedEvent& event) override {
    const v1::Source& source = event.source();
    json_.Object([&] {
      json_.Field("event", event.kind());
      json_.Field("task", Maybe(source.has_task(), source.task()));
      json_.Field("host", source.host());
      json_.TimeFields("time", event.time_unix_ns());
      json_.Field("step", Maybe(event.has_step(), event.step()));
      json_.Field("attempt", source.attempt());
      json_.Field("message", event.message());
      json_.Field("fields",
                  std::map<std::string, std::string>(event.fields().begin(), event.fields().end()));
    });
  }
  void Note(const std::string& text) override {
    json_.Object([&] { json_.Field("note", text); });
    out_ << std::flush;
  }
  void Show(const WatchView&) override { out_ << std::flush; }

 private:
  std::ostream& out_;
  JsonWriter json_;
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
