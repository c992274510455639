// tacho-bench-query: asks a server the same thing many times over one connection, and counts what
// comes back. Prints one line of JSON.
//
// A time ends when the last byte is in and the samples in it are counted: our messages are parsed
// in full, the peers' JSON is only searched for the marks that end a sample. The first time stands
// apart: the connection is made before it, nothing has been asked on it yet.
#include <httplib.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/text_format.h"
#include "grpcpp/grpcpp.h"
#include "tacho/v1/query.grpc.pb.h"
#include "tests/bench/bench_flags.h"
#include "tests/bench/load_report.h"

namespace tacho::bench {
namespace {

struct Answer {
  uint64_t series = 0;
  uint64_t samples = 0;  // Or buckets, where the samples were reduced.
  uint64_t bytes = 0;
};

// A server and the requests that are one query, asked one after the other.
class Asker {
 public:
  virtual ~Asker() = default;
  virtual absl::StatusOr<Answer> Ask() = 0;
};

class CollectorAsker final : public Asker {
 public:
  explicit CollectorAsker(const std::string& address)
      : channel_(grpc::CreateChannel(address, grpc::InsecureChannelCredentials())),
        stub_(v1::Query::NewStub(channel_)) {}

  // Requests in protobuf's text format.
  absl::Status Prepare(const std::string& ranges, const std::string& latests,
                       const std::string& compares) {
    for (absl::string_view text : absl::StrSplit(ranges, '\n', absl::SkipEmpty())) {
      if (!google::protobuf::TextFormat::ParseFromString(std::string(text),
                                                         &ranges_.emplace_back())) {
        return absl::InvalidArgumentError("--range: no RangeRequest");
      }
    }
    for (absl::string_view text : absl::StrSplit(latests, '\n', absl::SkipEmpty())) {
      if (!google::protobuf::TextFormat::ParseFromString(std::string(text),
                                                         &latests_.emplace_back())) {
        return absl::InvalidArgumentError("--latest: no LatestRequest");
      }
    }
    for (absl::string_view text : absl::StrSplit(compares, '\n', absl::SkipEmpty())) {
      if (!google::protobuf::TextFormat::ParseFromString(std::string(text),
                                                         &compares_.emplace_back())) {
        return absl::InvalidArgumentError("--compare: no CompareRequest");
      }
    }
    if (!channel_->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(10))) {
      return absl::UnavailableError("no collector there");
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Answer> Ask() override {
    Answer answer;
    for (const v1::RangeRequest& request : ranges_) {
      if (const absl::Status status = Range(request, &answer); !status.ok()) return status;
    }
    for (const v1::LatestRequest& request : latests_) {
      if (const absl::Status status = Latest(request, &answer); !status.ok()) return status;
    }
    for (const v1::CompareRequest& request : compares_) {
      if (const absl::Status status = Compare(request, &answer); !status.ok()) return status;
    }
    return answer;
  }

 private:
  static absl::Status ToStatus(const grpc::Status& status) {
    if (status.ok()) return absl::OkStatus();
    return absl::UnknownError(
        absl::StrCat("code ", status.error_code(), ": ", status.error_message()));
  }

  absl::Status Range(const v1::RangeRequest& request, Answer* answer) {
    grpc::ClientContext context;
    const auto reader = stub_->Range(&context, request);
    v1::RangeResponse piece;
    while (reader->Read(&piece)) {
      CountPiece(piece, answer);
      for (const v1::RangeResponse& next : piece.more()) CountPiece(next, answer);
      answer->bytes += piece.ByteSizeLong();
    }
    return ToStatus(reader->Finish());
  }

  static void CountPiece(const v1::RangeResponse& piece, Answer* answer) {
    if (piece.has_series()) ++answer->series;
    answer->samples +=
        static_cast<uint64_t>(piece.points().times_unix_ns_size() + piece.buckets().counts_size());
  }

  absl::Status Compare(const v1::CompareRequest& request, Answer* answer) {
    grpc::ClientContext context;
    const auto reader = stub_->Compare(&context, request);
    v1::CompareResponse piece;
    while (reader->Read(&piece)) {
      answer->series += static_cast<uint64_t>(piece.metric().columns_size());
      answer->samples += static_cast<uint64_t>(piece.metric().positions_size()) *
                         static_cast<uint64_t>(piece.metric().columns_size());
      answer->bytes += piece.ByteSizeLong();
    }
    return ToStatus(reader->Finish());
  }

  absl::Status Latest(const v1::LatestRequest& request, Answer* answer) {
    grpc::ClientContext context;
    const auto reader = stub_->Latest(&context, request);
    v1::LatestResponse piece;
    while (reader->Read(&piece)) {
      answer->series += static_cast<uint64_t>(piece.samples_size());
      answer->samples += static_cast<uint64_t>(piece.samples_size());
      answer->bytes += piece.ByteSizeLong();
    }
    return ToStatus(reader->Finish());
  }

  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::Query::Stub> stub_;
  std::vector<v1::RangeRequest> ranges_;
  std::vector<v1::LatestRequest> latests_;
  std::vector<v1::CompareRequest> compares_;
};

uint64_t Count(const std::string& text, absl::string_view mark) {
  uint64_t count = 0;
  for (size_t at = text.find(mark.data(), 0, mark.size()); at != std::string::npos;
       at = text.find(mark.data(), at + mark.size(), mark.size())) {
    ++count;
  }
  return count;
}

// Values in the lists "timestamps":[1,2,3] of VictoriaMetrics' /api/v1/export.
uint64_t CountExported(const std::string& text) {
  constexpr absl::string_view kMark = "\"timestamps\":[";
  uint64_t count = 0;
  for (size_t at = text.find(kMark.data(), 0, kMark.size()); at != std::string::npos;
       at = text.find(kMark.data(), at, kMark.size())) {
    const size_t end = text.find(']', at + kMark.size());
    if (end == std::string::npos) break;
    const auto begin = text.begin() + static_cast<std::ptrdiff_t>(at + kMark.size());
    count += 1 + static_cast<uint64_t>(
                     std::count(begin, text.begin() + static_cast<std::ptrdiff_t>(end), ','));
    at = end;
  }
  return count;
}

// Prometheus' HTTP API, which VictoriaMetrics has too.
class PrometheusAsker final : public Asker {
 public:
  PrometheusAsker(const std::string& host, int port, const std::string& paths)
      : client_(host, port), paths_(absl::StrSplit(paths, '\n', absl::SkipEmpty())) {
    client_.set_keep_alive(true);
    client_.set_tcp_nodelay(true);
    client_.set_read_timeout(120);
  }

  absl::Status Prepare() {
    const httplib::Result result = client_.Get("/health");  // Not found is an answer, too.
    return result ? absl::OkStatus() : absl::UnavailableError("no server there");
  }

  absl::StatusOr<Answer> Ask() override {
    Answer answer;
    for (const std::string& path : paths_) {
      const httplib::Result result = client_.Get(path);
      if (!result) return absl::UnavailableError(httplib::to_string(result.error()));
      if (result->status != 200) {
        return absl::UnknownError(absl::StrCat(result->status, ": ", result->body.substr(0, 300)));
      }
      answer.series += Count(result->body, "\"metric\":");
      answer.samples += absl::StrContains(path, "/export?")
                            ? CountExported(result->body)
                            : Count(result->body, "\"]");  // [time,"value"]
      answer.bytes += result->body.size();
    }
    return answer;
  }

 private:
  httplib::Client client_;
  const std::vector<std::string> paths_;
};

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}

struct Effort {
  int64_t runs = 0;  // After the first.
  double min_seconds = 0;
  double max_seconds = 0;
};

int Report(Asker* asker, const Effort& effort) {
  std::vector<double> times_ms;
  Answer answer;
  const double start = MonotonicSeconds();
  double spent = 0;
  do {
    const double begin = MonotonicSeconds();
    absl::StatusOr<Answer> got = asker->Ask();
    if (!got.ok()) return Fail(got.status());
    times_ms.push_back((MonotonicSeconds() - begin) * 1e3);
    answer = *got;
    spent = MonotonicSeconds() - start;
  } while (spent < effort.max_seconds &&
           (static_cast<int64_t>(times_ms.size()) <= effort.runs || spent < effort.min_seconds));
  const double first_ms = times_ms.front();
  if (times_ms.size() > 1) times_ms.erase(times_ms.begin());
  std::sort(times_ms.begin(), times_ms.end());
  const auto last = static_cast<double>(times_ms.size() - 1);
  std::printf(
      "{\"runs\": %zu, \"first_ms\": %.3f, \"p50_ms\": %.3f, \"p90_ms\": %.3f, \"series\": %llu, "
      "\"samples\": %llu, \"bytes\": %llu}\n",
      times_ms.size(), first_ms, times_ms[static_cast<size_t>(0.5 * last)],
      times_ms[static_cast<size_t>(0.9 * last)], static_cast<unsigned long long>(answer.series),
      static_cast<unsigned long long>(answer.samples),
      static_cast<unsigned long long>(answer.bytes));
  return 0;
}

int Main(int argc, char** argv) {
  // A query may be several requests, a line each. Exactly one of the four kinds is given.
  std::map<std::string, std::string> flags = {{"address", "127.0.0.1:7411"},
                                              {"range", ""},
                                              {"latest", ""},
                                              {"compare", ""},
                                              {"http-path", ""},
                                              {"runs", "20"},
                                              {"min-seconds", "0"},
                                              {"max-seconds", "60"}};
  ParseFlags(argc, argv, &flags);
  const Effort effort = {.runs = NumberFlag(flags, "runs"),
                         .min_seconds = static_cast<double>(NumberFlag(flags, "min-seconds")),
                         .max_seconds = static_cast<double>(NumberFlag(flags, "max-seconds"))};
  if (!flags.at("http-path").empty()) {
    const std::vector<std::string> address = absl::StrSplit(flags.at("address"), ':');
    int port = 0;
    if (address.size() != 2 || !absl::SimpleAtoi(address[1], &port)) {
      return Fail(absl::InvalidArgumentError("--address: expected HOST:PORT"));
    }
    PrometheusAsker asker(address[0], port, flags.at("http-path"));
    if (const absl::Status status = asker.Prepare(); !status.ok()) return Fail(status);
    return Report(&asker, effort);
  }
  CollectorAsker asker(flags.at("address"));
  if (const absl::Status status =
          asker.Prepare(flags.at("range"), flags.at("latest"), flags.at("compare"));
      !status.ok()) {
    return Fail(status);
  }
  return Report(&asker, effort);
}

}  // namespace
}  // namespace tacho::bench

int main(int argc, char** argv) { return tacho::bench::Main(argc, argv); }
