#include "storage/bucket/bucket_errors.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "storage/bucket/bucket_answers.h"

namespace tacho::storage {
namespace {

bool IsConditional(BucketCall call) {
  return call == BucketCall::kPutNew || call == BucketCall::kPutIf;
}

bool IsOneOf(const std::string& code, const absl::flat_hash_set<absl::string_view>& codes) {
  return codes.contains(code);
}

bool IsExpired(const std::string& code) {
  return IsOneOf(code, {"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"});
}

// The request arrived damaged or late; as sent it would be fine.
bool IsDamaged(const std::string& code) {
  return IsOneOf(code, {"BadDigest", "XAmzContentSHA256Mismatch", "IncompleteBody",
                        "RequestTimeout", "InvalidDigest"});
}

std::string Advice(const ErrorAnswer& error, int status) {
  if (error.code == "RequestTimeTooSkewed") return ": set the clock of this machine";
  if (error.code == "NoSuchBucket") return ": create the bucket, or correct its url";
  if (!error.region.empty() && (status == 301 || status == 400)) {
    return absl::StrCat(": set region to ", error.region);
  }
  if (status >= 300 && status < 400) return ": set region and endpoint to those of the bucket";
  return "";
}

// What a status other than 2xx means, whatever the call.
absl::StatusCode CodeOf(int status, const std::string& code) {
  if (code == "RequestTimeTooSkewed") return absl::StatusCode::kInvalidArgument;
  if (code == "QuotaExceeded" || IsDamaged(code)) return absl::StatusCode::kUnavailable;
  if (status == 401 || status == 403 || IsExpired(code) || code == "InvalidToken") {
    return absl::StatusCode::kPermissionDenied;
  }
  if (status == 409 || status == 429 || status == 408 || status == 507 || status == 307 ||
      (status >= 500 && status != 501)) {
    return absl::StatusCode::kUnavailable;
  }
  return absl::StatusCode::kInvalidArgument;
}

}  // namespace

const char* NameOf(BucketCall call) {
  switch (call) {
    case BucketCall::kGet:
      return "get";
    case BucketCall::kGetIfChanged:
      return "get_if_changed";
    case BucketCall::kGetRange:
      return "get_range";
    case BucketCall::kPutNew:
      return "put_new";
    case BucketCall::kPutIf:
      return "put_if";
    case BucketCall::kPut:
      return "put";
    case BucketCall::kList:
      return "list";
    case BucketCall::kDelete:
      break;
  }
  return "delete";
}

const char* NameOf(Again again) {
  switch (again) {
    case Again::kNo:
      break;
    case Again::kSlow:
      return "slow";
    case Again::kFailed:
      return "failed";
    case Again::kBusy:
      return "busy";
    case Again::kError:
      return "error";
    case Again::kExpired:
      return "expired";
  }
  return "";
}

Again ShouldRepeat(BucketCall call, const HttpReply& reply) {
  switch (reply.failure) {
    case HttpFailure::kNone:
      break;
    case HttpFailure::kNotSent:
      return Again::kFailed;
    case HttpFailure::kSlow:
      return call == BucketCall::kDelete ? Again::kNo : Again::kSlow;
    case HttpFailure::kBroken:
      return call == BucketCall::kDelete ? Again::kNo : Again::kFailed;
    case HttpFailure::kUntrusted:
    case HttpFailure::kTooLarge:
      return Again::kNo;
  }
  if (reply.status < 400) return Again::kNo;
  if (reply.status == 409 || reply.status == 429 || reply.status == 503) return Again::kBusy;
  if (reply.status == 500 || reply.status == 502 || reply.status == 504) {
    return IsConditional(call) || call == BucketCall::kDelete ? Again::kNo : Again::kError;
  }
  if (reply.status == 412 || reply.status == 404 || reply.status == 416) return Again::kNo;
  const std::string code = ParseErrorAnswer(reply.body).code;
  if (IsExpired(code)) return Again::kExpired;
  return IsDamaged(code) ? Again::kError : Again::kNo;
}

absl::Status StatusOf(BucketCall call, const HttpReply& reply, absl::string_view name,
                      absl::string_view source) {
  const std::string what = absl::StrCat(NameOf(call), " ", name, ": ");
  if (reply.failure == HttpFailure::kUntrusted) {
    return absl::UnavailableError(absl::StrCat(
        what, reply.error, ": set ca_file to the authority of the service's certificate"));
  }
  if (reply.failure != HttpFailure::kNone) {
    return absl::UnavailableError(absl::StrCat(what, reply.error));
  }
  if (reply.status >= 200 && reply.status < 300) return absl::OkStatus();
  const ErrorAnswer error = ParseErrorAnswer(reply.body);
  std::string text = absl::StrCat(what, reply.status, error.code.empty() ? "" : " ", error.code);
  if (!error.message.empty()) absl::StrAppend(&text, ": ", error.message);
  if (reply.status == 412 && call == BucketCall::kPutNew) return absl::AlreadyExistsError(text);
  if (reply.status == 412 && call == BucketCall::kPutIf) return absl::FailedPreconditionError(text);
  // A proxy's 404 has no code.
  if (reply.status == 404 && error.code != "NoSuchBucket") {
    if (call == BucketCall::kDelete) return absl::OkStatus();
    if (call == BucketCall::kPutIf) return absl::FailedPreconditionError(text);
    if (!IsWrite(call) && call != BucketCall::kList) return absl::NotFoundError(text);
  }
  const absl::StatusCode code = CodeOf(reply.status, error.code);
  absl::StrAppend(&text, Advice(error, reply.status));
  if (code == absl::StatusCode::kPermissionDenied) {
    absl::StrAppend(&text, " (credentials from ", source, ")");
  }
  return absl::Status(code, text);
}

}  // namespace tacho::storage
