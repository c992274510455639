// The recorder of one task, with the metrics, attributes and events that docs/notation.md names.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "client/recorder.h"
#include "tests/support/fleet/job_model.h"

namespace tacho::fleet {

// One thread for all of them: their clock is one variable, as a recorder's clock is a plain
// function.
class TaskRecord {
 public:
  struct Place {
    std::string directory;
    uint32_t task = 0;
    uint32_t attempt = 0;
    uint64_t ring_bytes = 0;
    uint64_t seed = 0;
  };
  TaskRecord(const JobSpec& spec, const Place& place);

  void Event(std::string_view kind, int64_t time_ns, std::string_view message,
             std::span<const client::Recorder::EventField> fields = {});
  void Step(const JobStep& job, const TaskStep& own, int64_t step, int64_t time_ns);
  // Forgets the ring as a process does that dies: it stays without being marked as ended.
  void Abandon();

 private:
  void Describe(const JobSpec& spec, const Place& place);

  client::Recorder recorder_;
  client::Metric loss_, eval_loss_, accuracy_, eval_accuracy_, learning_rate_, grad_norm_,
      param_norm_, update_norm_, step_time_, data_wait_, compute_, comm_wait_, checkpoint_, eval_,
      tokens_, examples_, epoch_;
};

}  // namespace tacho::fleet
