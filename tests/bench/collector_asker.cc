#include "tests/bench/collector_asker.h"

#include <google/protobuf/text_format.h>

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tacho/v1/query.grpc.pb.h"

namespace tacho::bench {
namespace {

void Count(const v1::RangeResponse& piece, Answer* answer) {
  if (piece.has_series()) ++answer->series;
  answer->samples +=
      static_cast<uint64_t>(piece.points().times_unix_ns_size() + piece.buckets().counts_size());
  for (const v1::RangeResponse& next : piece.more()) Count(next, answer);
}

void Count(const v1::LatestResponse& piece, Answer* answer) {
  answer->series += static_cast<uint64_t>(piece.samples_size());
  answer->samples += static_cast<uint64_t>(piece.samples_size());
}

void Count(const v1::CompareResponse& piece, Answer* answer) {
  const auto columns = static_cast<uint64_t>(piece.metric().columns_size());
  answer->series += columns;
  answer->samples += static_cast<uint64_t>(piece.metric().positions_size()) * columns;
  for (const v1::CompareResponse& next : piece.more()) Count(next, answer);
}

grpc::ByteBuffer AsBuffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

template <typename Request>
absl::StatusOr<grpc::ByteBuffer> ParseRequest(const std::string& text) {
  Request request;
  if (!google::protobuf::TextFormat::ParseFromString(text, &request)) {
    return absl::InvalidArgumentError(
        absl::StrCat("no ", request.GetTypeName(), " in text format: ", text));
  }
  return AsBuffer(request.SerializeAsString());
}

template <typename Response>
bool Decode(grpc::ByteBuffer* message, Answer* answer) {
  Response response;
  if (!grpc::SerializationTraits<Response>::Deserialize(message, &response).ok()) return false;
  Count(response, answer);
  return true;
}

}  // namespace

CollectorAsker::CollectorAsker(const std::string& address)
    : channel_(grpc::CreateChannel(address, grpc::InsecureChannelCredentials())), stub_(channel_) {}

absl::Status CollectorAsker::Add(const std::string& kind, const std::string& requests) {
  for (absl::string_view line : absl::StrSplit(requests, '\n', absl::SkipEmpty())) {
    const std::string text(line);
    Call call;
    absl::StatusOr<grpc::ByteBuffer> request;
    if (kind == "range") {
      call.method = "/tacho.v1.Query/Range";
      request = ParseRequest<v1::RangeRequest>(text);
      call.decode = bench::Decode<v1::RangeResponse>;
    } else if (kind == "latest") {
      call.method = "/tacho.v1.Query/Latest";
      request = ParseRequest<v1::LatestRequest>(text);
      call.decode = bench::Decode<v1::LatestResponse>;
    } else if (kind == "compare") {
      call.method = "/tacho.v1.Query/Compare";
      request = ParseRequest<v1::CompareRequest>(text);
      call.decode = bench::Decode<v1::CompareResponse>;
    } else {
      call.method = "/grpc.health.v1.Health/Check";
      request = AsBuffer("");
      call.decode = [](grpc::ByteBuffer*, Answer*) { return true; };
    }
    if (!request.ok()) return request.status();
    call.request = *std::move(request);
    calls_.push_back(std::move(call));
  }
  return absl::OkStatus();
}

absl::Status CollectorAsker::Connect() {
  if (channel_->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(10))) {
    return absl::OkStatus();
  }
  return absl::UnavailableError("no collector there");
}

absl::Status CollectorAsker::Ask() {
  for (Call& call : calls_) {
    if (absl::Status status = Ask(&call); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status CollectorAsker::Ask(Call* call) {
  call->messages.clear();
  grpc::ClientContext context;
  context.set_initial_metadata_corked(true);  // They leave together with the request.
  const auto stream = stub_.PrepareCall(&context, call->method, &queue_);
  grpc::ByteBuffer message;
  grpc::Status status;
  int asked = 0;
  int read = 0;
  int ended = 0;
  stream->StartCall(&asked);
  stream->WriteLast(call->request, grpc::WriteOptions(), &asked);
  stream->Read(&message, &read);
  void* done = nullptr;
  for (bool ok = false; queue_.Next(&done, &ok);) {
    if (done == &ended) break;
    if (done != &read) continue;
    if (ok) {
      call->messages.push_back(std::move(message));
      message.Clear();
      stream->Read(&message, &read);
    } else {
      stream->Finish(&status, &ended);
    }
  }
  if (status.ok()) return absl::OkStatus();
  return absl::UnknownError(
      absl::StrCat("code ", status.error_code(), ": ", status.error_message()));
}

absl::StatusOr<Answer> CollectorAsker::Decode() {
  Answer answer;
  for (Call& call : calls_) {
    for (grpc::ByteBuffer& message : call.messages) {
      answer.bytes += message.Length();
      if (!call.decode(&message, &answer)) return absl::UnknownError("a message does not parse");
    }
  }
  return answer;
}

}  // namespace tacho::bench
