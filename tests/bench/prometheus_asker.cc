#include "tests/bench/prometheus_asker.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <rapidjson/reader.h>
#include <rapidjson/stream.h>
#include <sys/socket.h>

#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/base/clock.h"
#include "proto/base/status_macros.h"

namespace tacho::bench {
namespace {

constexpr absl::Duration kPatience = absl::Minutes(2);
constexpr uint64_t kMaxBodyBytes = uint64_t{4} << 30;

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

PrometheusAsker::PrometheusAsker(std::string host, int port, const std::string& paths)
    : host_(std::move(host)), port_(port), paths_(absl::StrSplit(paths, '\n', absl::SkipEmpty())) {}

absl::Status PrometheusAsker::Connect() {
  TACHO_ASSIGN_OR_RETURN(socket_,
                         agent::ConnectTcp(host_, absl::StrCat(port_), MonotonicNow() + kPatience));
  const int on = 1;
  setsockopt(socket_->fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return Get("/health").status();  // Not found is an answer, too.
}

absl::StatusOr<agent::HttpResponse> PrometheusAsker::Get(const std::string& path) {
  const absl::Time deadline = MonotonicNow() + kPatience;
  TACHO_RETURN_IF_ERROR(socket_->Send(
      absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: ", host_, ":", port_, "\r\n\r\n"), deadline));
  agent::HttpResponseReader reader(kMaxBodyBytes);
  std::vector<char> buffer(64 << 10);
  while (!reader.done()) {
    TACHO_ASSIGN_OR_RETURN(const size_t got,
                           socket_->Receive(buffer.data(), buffer.size(), deadline));
    if (got == 0) return absl::UnavailableError("the server closed the connection");
    TACHO_RETURN_IF_ERROR(reader.Feed({buffer.data(), got}));
  }
  return reader.response();
}

absl::Status PrometheusAsker::Ask() {
  bodies_.clear();
  for (const std::string& path : paths_) {
    TACHO_ASSIGN_OR_RETURN(agent::HttpResponse answer, Get(path));
    if (answer.status != 200) {
      return absl::UnknownError(absl::StrCat(answer.status, ": ", answer.body.substr(0, 300)));
    }
    bodies_.push_back(std::move(answer.body));
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
