#include "tests/bench/prometheus_asker.h"

#include <rapidjson/reader.h>
#include <rapidjson/stream.h>

#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tacho::bench {
namespace {

// Takes times and values out of the events of a parser:
//   /query, /query_range  {"metric":{...},"value":[time,"value"]}, or "values":[[time,"value"],...]
//   /export               {"metric":{...},"values":[value,...],"timestamps":[time,...]} a line
class Columns : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, Columns> {
 public:
  explicit Columns(bool exported) : exported_(exported) {}

  uint64_t series() const { return series_; }
  uint64_t samples() const { return times_.size() == values_.size() ? times_.size() : 0; }

  bool Key(const char* text, rapidjson::SizeType size, bool /*copy*/) {
    const absl::string_view key(text, size);
    if (in_metric_) return true;
    is_metric_ = key == "metric";
    if (is_metric_) ++series_;
    into_ = key == "timestamps" ? &times_ : key == "values" || key == "value" ? &values_ : nullptr;
    return true;
  }
  bool StartObject() {
    in_metric_ = is_metric_;
    return true;
  }
  bool EndObject(rapidjson::SizeType /*members*/) {
    in_metric_ = is_metric_ = false;
    return true;
  }
  bool String(const char* text, rapidjson::SizeType size, bool /*copy*/) {
    if (in_metric_ || into_ == nullptr) return true;
    double value = 0;
    if (!absl::SimpleAtod(absl::string_view(text, size), &value)) return false;
    values_.push_back(value);
    return true;
  }
  bool Null() { return Double(std::numeric_limits<double>::quiet_NaN()); }
  bool Int(int value) { return Double(value); }
  bool Uint(unsigned value) { return Double(value); }
  bool Int64(int64_t value) { return Double(static_cast<double>(value)); }
  bool Uint64(uint64_t value) { return Double(static_cast<double>(value)); }
  bool Double(double value) {
    if (into_ == nullptr) return true;
    (exported_ ? *into_ : times_).push_back(value);  // Others write values as strings.
    return true;
  }

 private:
  const bool exported_;
  uint64_t series_ = 0;
  bool is_metric_ = false;  // The last key was that of the labels.
  bool in_metric_ = false;
  std::vector<double>* into_ = nullptr;  // The column that the last key begins; null: none.
  std::vector<double> times_;
  std::vector<double> values_;
};

bool Parse(bool exported, std::string* body, Answer* answer) {
  Columns columns(exported);
  rapidjson::Reader reader;
  rapidjson::InsituStringStream stream(body->data());
  constexpr unsigned kFlags =
      rapidjson::kParseInsituFlag | rapidjson::kParseStopWhenDoneFlag;  // A line is a document.
  do {
    if (!reader.Parse<kFlags>(stream, columns)) return false;
    while (stream.Peek() == '\n') stream.Take();
  } while (stream.Peek() != '\0');
  answer->series += columns.series();
  answer->samples += columns.samples();
  return true;
}

}  // namespace

PrometheusAsker::PrometheusAsker(const std::string& host, int port, const std::string& paths)
    : client_(host, port), paths_(absl::StrSplit(paths, '\n', absl::SkipEmpty())) {
  client_.set_keep_alive(true);
  client_.set_tcp_nodelay(true);
  client_.set_read_timeout(120);
}

absl::Status PrometheusAsker::Connect() {
  const httplib::Result result = client_.Get("/health");  // Not found is an answer, too.
  return result ? absl::OkStatus() : absl::UnavailableError("no server there");
}

absl::Status PrometheusAsker::Ask() {
  bodies_.clear();
  for (const std::string& path : paths_) {
    httplib::Result result = client_.Get(path);
    if (!result) return absl::UnavailableError(httplib::to_string(result.error()));
    if (result->status != 200) {
      return absl::UnknownError(absl::StrCat(result->status, ": ", result->body.substr(0, 300)));
    }
    bodies_.push_back(std::move(result->body));
  }
  return absl::OkStatus();
}

absl::StatusOr<Answer> PrometheusAsker::Decode() {
  Answer answer;
  for (size_t i = 0; i < paths_.size(); ++i) {
    answer.bytes += bodies_[i].size();
    if (bodies_[i].empty() || !absl::StartsWith(paths_[i], "/api/")) continue;
    if (!Parse(absl::StrContains(paths_[i], "/export?"), &bodies_[i], &answer)) {
      return absl::UnknownError(absl::StrCat("an answer does not parse: ", paths_[i]));
    }
  }
  return answer;
}

}  // namespace tacho::bench
