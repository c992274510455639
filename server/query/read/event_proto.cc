#include "server/query/read/event_proto.h"

namespace tacho::server::query {

void ToProto(const storage::Event& event, v1::RecordedEvent* proto) {
  v1::Source* source = proto->mutable_source();
  source->set_job(event.source.job);
  if (event.source.task.has_value()) source->set_task(*event.source.task);
  source->set_attempt(event.source.attempt);
  source->set_host(event.source.host);
  proto->set_time_unix_ns(event.time_ns);
  if (event.step.has_value()) proto->set_step(*event.step);
  proto->set_kind(event.kind);
  proto->set_message(event.message);
  proto->mutable_fields()->insert(event.fields.begin(), event.fields.end());
}

}  // namespace tacho::server::query
