#include "server/interop/events_in_flight.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/base/check.h"

namespace tacho::server::interop {
namespace {

void AppendPart(absl::string_view part, std::string* identity) {
  absl::StrAppend(identity, part.size(), ":", part);
}

}  // namespace

std::string EventsInFlight::IdentityOf(const storage::Event& event) {
  const storage::Source& source = event.source;
  std::string identity = absl::StrCat(event.time_ns, ",", source.attempt, ",");
  if (source.task.has_value()) absl::StrAppend(&identity, *source.task);
  identity.push_back(',');
  if (event.step.has_value()) absl::StrAppend(&identity, *event.step);
  identity.push_back(',');
  for (const std::string* part : {&source.job, &source.host, &event.kind, &event.message}) {
    AppendPart(*part, &identity);
  }
  for (const auto& [name, value] : event.fields) {
    AppendPart(name, &identity);
    AppendPart(value, &identity);
  }
  return identity;
}

bool EventsInFlight::Begin(const std::string& identity, Done done) {
  absl::MutexLock lock(&mutex_);
  auto& waiting = waiting_[identity];
  waiting.push_back(std::move(done));
  return waiting.size() == 1;
}

void EventsInFlight::End(const std::string& identity, const absl::Status& status) {
  std::vector<Done> waiting;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = waiting_.find(identity);
    TACHO_CHECK(found != waiting_.end());
    waiting = std::move(found->second);
    waiting_.erase(found);
  }
  for (const Done& done : waiting) done(status);
}

}  // namespace tacho::server::interop
