// Prometheus remote write over HTTP. Which version a receiver knows is found out with the first
// request, and holds for all that follow.
#include <atomic>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "server/forward/receiver_config.h"
#include "server/forward/sender.h"
#include "storage/bucket/http_pool.h"

namespace tacho::server::forward {
namespace {

class RemoteWriteSender final : public Sender {
 public:
  explicit RemoteWriteSender(SenderOptions options)
      : options_(std::move(options)),
        http_(options_.config.ca_file()),
        first_version_(options_.config.protocol() == "1.0"),
        open_version_(options_.config.protocol() == "auto") {}

  Answer Send(const WriteBatch& batch, int number, PackedBatch* packed) override {
    const WriteVersion version = first_version_ ? WriteVersion::k1 : WriteVersion::k2;
    if (packed->version != version) {
      packed->bytes = PackSnappy(batch.Encode(version));
      packed->version = version;
    }
    auto headers = Headers(version);
    if (!headers.ok()) return {.why = std::string(headers.status().message())};
    storage::HttpCall call;
    call.method = "POST";
    call.url = options_.config.url();
    call.headers = *std::move(headers);
    if (number > 1) call.headers.push_back(absl::StrCat("Retry-Attempt: ", number - 1));
    call.body = packed->bytes;
    call.patience = absl::Nanoseconds(options_.config.timeout());
    call.quick = true;
    storage::HttpReply reply = http_.Send(call);
    Answer answer;
    answer.verdict = Judge({version, batch.samples(), open_version_}, reply, options_.now());
    answer.code = absl::StrCat(reply.status);
    answer.why = std::move(reply.error.empty() ? reply.body : reply.error);
    answer.bytes = packed->bytes.size();
    if (version == WriteVersion::k2 && CountsWritten(reply)) open_version_ = false;
    if (answer.verdict.step == NextStep::kUseFirst && !first_version_.exchange(true)) {
      options_.log.Info("a receiver does not know remote write 2.0 and gets 1.0",
                        {{"receiver", options_.config.name()}, {"code", answer.code}});
    }
    return answer;
  }

 private:
  absl::StatusOr<std::vector<std::string>> Headers(WriteVersion version) const {
    std::vector<std::string> headers =
        HeadersOf(version, absl::StrCat("tacho-collector/", options_.version));
    for (const auto& [name, value] : options_.config.headers()) {
      headers.push_back(absl::StrCat(name, ": ", value));
    }
    TACHO_ASSIGN_OR_RETURN(const auto authorization, AuthorizationOf(options_.config));
    if (!authorization.empty()) headers.push_back(absl::StrCat("Authorization: ", authorization));
    return headers;
  }

  const SenderOptions options_;
  storage::HttpPool http_;
  std::atomic<bool> first_version_;  // 1.0 is spoken.
  std::atomic<bool> open_version_;   // It may still turn out to be 1.0.
};

}  // namespace

std::unique_ptr<Sender> NewRemoteWriteSender(SenderOptions options) {
  return std::make_unique<RemoteWriteSender>(std::move(options));
}

}  // namespace tacho::server::forward
