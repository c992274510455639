#include "server/promread/read_request.h"

#include <snappy.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "interop/prometheus_read.pb.h"
#include "proto/base/status_macros.h"
#include "proto/base/utf8.h"
#include "server/errors/error_table.h"

namespace tacho::server::promread {
namespace {

absl::Status MalformedRequest(absl::string_view text) {
  return errors::ErrorOf(errors::Failure::kMalformed, text);
}

absl::Status LargeRequest(absl::string_view text) {
  return errors::ErrorOf(errors::Failure::kTooLarge, text);
}

// The length that the packed bytes announce is looked at before memory is taken for it.
absl::StatusOr<std::string> Unpack(absl::string_view body) {
  const auto damaged = [] {
    return MalformedRequest("the body is not in Snappy's block format, or is damaged");
  };
  size_t bytes = 0;
  if (!snappy::GetUncompressedLength(body.data(), body.size(), &bytes)) return damaged();
  if (bytes > kMaxRequestBytes) {
    return LargeRequest(absl::StrCat("the body has ", bytes, " bytes when unpacked; at most ",
                                     kMaxRequestBytes, " are allowed: ask for less at once"));
  }
  std::string unpacked;
  if (!snappy::Uncompress(body.data(), body.size(), &unpacked)) return damaged();
  return unpacked;
}

absl::StatusOr<storage::Matcher> ToMatcher(const ::prometheus_remote::LabelMatcher& from,
                                           absl::string_view place) {
  using Op = storage::Matcher::Op;
  Op op = Op::kEqual;
  switch (from.type()) {
    case ::prometheus_remote::LabelMatcher::EQ:
      break;
    case ::prometheus_remote::LabelMatcher::NEQ:
      op = Op::kNotEqual;
      break;
    case ::prometheus_remote::LabelMatcher::RE:
      op = Op::kMatches;
      break;
    case ::prometheus_remote::LabelMatcher::NRE:
      op = Op::kNotMatches;
      break;
    default:
      return MalformedRequest(absl::StrCat(place, ".type: there is no type ", from.type()));
  }
  if (!IsUtf8(from.name()) || !IsUtf8(from.value())) {
    return MalformedRequest(absl::StrCat(place, ": the name or the value is no UTF-8"));
  }
  auto matcher = storage::Matcher::Create(from.name(), op, from.value());
  if (!matcher.ok()) {
    return MalformedRequest(absl::StrCat(place, ": ", matcher.status().message()));
  }
  return matcher;
}

absl::StatusOr<AnswerForm> ChooseForm(const ::prometheus_remote::ReadRequest& request) {
  if (request.accepted_response_types().empty()) return AnswerForm::kSamples;
  for (const int type : request.accepted_response_types()) {
    if (type == ::prometheus_remote::ReadRequest::SAMPLES) return AnswerForm::kSamples;
    if (type == ::prometheus_remote::ReadRequest::STREAMED_XOR_CHUNKS) return AnswerForm::kChunks;
  }
  return MalformedRequest(
      "accepted_response_types: none of them is known; SAMPLES and STREAMED_XOR_CHUNKS are");
}

}  // namespace

absl::StatusOr<ReadRequest> UnpackReadRequest(absl::string_view body) {
  TACHO_ASSIGN_OR_RETURN(const std::string bytes, Unpack(body));
  ::prometheus_remote::ReadRequest message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return MalformedRequest("the body is no prometheus.ReadRequest");
  }
  if (message.queries_size() > kMaxQueries) {
    return LargeRequest(absl::StrCat("the request has ", message.queries_size(),
                                     " queries; at most ", kMaxQueries, " are allowed"));
  }
  ReadRequest request;
  TACHO_ASSIGN_OR_RETURN(request.form, ChooseForm(message));
  for (int i = 0; i < message.queries_size(); ++i) {
    const auto& from = message.queries(i);
    if (from.matchers_size() > kMaxMatchers) {
      return LargeRequest(absl::StrCat("queries[", i, "] has ", from.matchers_size(),
                                       " matchers; at most ", kMaxMatchers, " are allowed"));
    }
    ReadQuery& query = request.queries.emplace_back();
    query.begin_ms = from.start_timestamp_ms();
    query.end_ms = from.end_timestamp_ms();
    for (int m = 0; m < from.matchers_size(); ++m) {
      TACHO_ASSIGN_OR_RETURN(
          auto matcher,
          ToMatcher(from.matchers(m), absl::StrCat("queries[", i, "].matchers[", m, "]")));
      query.matchers.push_back(std::move(matcher));
    }
  }
  return request;
}

}  // namespace tacho::server::promread
