#include "server/security/refusal_log.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tacho::server {
namespace {

// Names of certificates and jobs come from outside: none may begin a line of its own.
std::string OneLine(absl::string_view text) {
  std::string line(text);
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return line;
}

}  // namespace

RefusalLog::RefusalLog(RefusalLogOptions options) : options_(std::move(options)) {
  if (options_.registry == nullptr) return;
  auto& family = prometheus::BuildCounter()
                     .Name("tacho_auth_refused_total")
                     .Help("Calls and requests that were not let in, by status code.")
                     .Register(*options_.registry);
  unauthenticated_ = &family.Add({{"code", "UNAUTHENTICATED"}});
  not_allowed_ = &family.Add({{"code", "PERMISSION_DENIED"}});
}

void RefusalLog::Refused(const absl::Status& why, absl::string_view peer) {
  prometheus::Counter* const counter =
      absl::IsUnauthenticated(why) ? unauthenticated_ : not_allowed_;
  if (counter != nullptr) counter->Increment();
  if (!options_.log) return;
  std::string line = absl::StrCat("not let in: ", peer, ": ", OneLine(why.message()));
  {
    absl::MutexLock lock(&mutex_);
    const absl::Time now = options_.now();
    if (now < next_line_) {
      ++silent_;
      return;
    }
    next_line_ = now + options_.pause;
    if (silent_ > 0) absl::StrAppend(&line, " (and ", std::exchange(silent_, 0), " others before)");
  }
  options_.log(line);
}

}  // namespace tacho::server
