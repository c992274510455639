#include "client/ctl/requests/request_flags.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/ctl/line/parse.h"

namespace tacho::ctl {

absl::StatusOr<uint32_t> ParseTask(absl::string_view text) {
  uint32_t task = 0;
  if (absl::SimpleAtoi(text, &task)) return task;
  return absl::InvalidArgumentError(absl::StrCat("--task expects a number, not '", text, "'"));
}

absl::StatusOr<uint32_t> RequestMilliseconds(const Invocation& invocation, absl::string_view flag,
                                             absl::Duration usual) {
  absl::Duration time = usual;
  if (const auto text = invocation.args.Get(flag)) {
    const auto parsed = ParseDuration(*text);
    if (!parsed.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--", flag, " ", parsed.status().message()));
    }
    time = *parsed;
  }
  if (time > absl::Minutes(1) || time < absl::Milliseconds(1)) {
    return absl::InvalidArgumentError(absl::StrCat("--", flag, " expects 1ms to 1m"));
  }
  return static_cast<uint32_t>(absl::ToInt64Milliseconds(time));
}

}  // namespace tacho::ctl
