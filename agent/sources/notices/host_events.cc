#include "agent/sources/notices/host_events.h"

#include <cstdint>

#include "absl/strings/numbers.h"
#include "tacho/v1/ingest.pb.h"

namespace tacho::agent {

void HostEvents::Add(absl::Time now, const std::string& kind, const std::string& message,
                     const std::map<std::string, std::string>& fields, NoticeBook* book) {
  v1::Event event;
  event.mutable_source()->set_job(options_.job);
  event.mutable_source()->set_host(options_.host);
  event.set_time_unix_ns(absl::ToUnixNanos(now));
  event.set_kind(kind);
  event.set_message(message);
  event.mutable_fields()->insert(fields.begin(), fields.end());
  book->Add(event);
  if (!tasks_.has_value() && options_.running_tasks) tasks_ = options_.running_tasks();
  if (!tasks_.has_value()) return;
  for (const ProcessJob& task : *tasks_) {
    uint32_t number = 0;
    uint32_t attempt = 0;
    if (!absl::SimpleAtoi(task.task, &number) || !absl::SimpleAtoi(task.attempt, &attempt))
      continue;
    event.mutable_source()->set_job(task.job);
    event.mutable_source()->set_task(number);
    event.mutable_source()->set_attempt(attempt);
    book->Add(event);
  }
}

}  // namespace tacho::agent
