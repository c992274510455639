#include "tests/support/fleet/task_record.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tacho::fleet {
namespace {

constexpr int64_t kSequence = 2048;  // Tokens of an example.
constexpr int64_t kStepsPerEpoch = 1000;

thread_local int64_t recorder_now_ns = 0;
int64_t RecorderNow() { return recorder_now_ns; }

}  // namespace

TaskRecord::TaskRecord(const JobSpec& spec, const Place& place)
    : recorder_(client::Recorder::Open({.directory = place.directory,
                                        .job = spec.name,
                                        .task = place.task,
                                        .attempt = place.attempt,
                                        .ring_bytes = place.ring_bytes,
                                        .now_unix_ns = RecorderNow})) {
  client::Recorder& r = recorder_;
  loss_ = r.Gauge("loss", "nats", "Training loss of the task's part of the batch.");
  eval_loss_ = r.Gauge("eval_loss", "nats", "Loss on held-out data.");
  accuracy_ = r.Gauge("accuracy", "1", "Share of tokens that were predicted.");
  eval_accuracy_ = r.Gauge("eval_accuracy", "1", "The same on held-out data.");
  learning_rate_ = r.Gauge("learning_rate", "1", "Learning rate of the step.");
  grad_norm_ = r.Gauge("grad_norm", "1", "Euclidean norm of the task's gradient.");
  param_norm_ = r.Gauge("param_norm", "1", "Euclidean norm of the weights.");
  update_norm_ = r.Gauge("update_norm", "1", "Euclidean norm of the weights' change.");
  step_time_ = r.Gauge("step_time_seconds", "s", "From this step's start to the next one's.");
  data_wait_ = r.Gauge("data_wait_seconds", "s", "Waiting for input.");
  compute_ = r.Gauge("compute_seconds", "s", "Own work before the collective.");
  comm_wait_ = r.Gauge("comm_wait_seconds", "s", "Time in the collective.");
  checkpoint_ = r.Gauge("checkpoint_seconds", "s", "Of the step, for a checkpoint.");
  eval_ = r.Gauge("eval_seconds", "s", "Of the step, for an evaluation.");
  tokens_ = r.Counter("tokens", "1", "Tokens trained on so far.");
  examples_ = r.Counter("examples", "1", "Examples trained on so far.");
  epoch_ = r.Gauge("epoch", "1", "Passes through the data.");
  Describe(spec, place);
}

void TaskRecord::Describe(const JobSpec& spec, const Place& place) {
  const int64_t tokens = JobModel::kTokensPerTask * spec.tasks;
  const double flops = JobModel::kUtilization * JobModel::kPeakFlops * spec.step_seconds;
  const auto set = [this](std::string_view key, const std::string& value) {
    recorder_.SetAttribute(key, value);
  };
  set("model", "decoder-7b");
  set("parameters", absl::StrCat(JobModel::kParameters));
  set("batch_size", absl::StrCat(tokens / kSequence));
  set("tokens_per_step", absl::StrCat(tokens));
  set("flops_per_step", absl::StrCat(flops * spec.tasks));
  set("device_kind", "simulated H100");
  set("device_count", absl::StrCat(spec.tasks));
  set("device_peak_flops", absl::StrCat(JobModel::kPeakFlops));
  set("planned_steps", absl::StrCat(spec.steps));
  set("config_fingerprint", absl::StrCat("simulated-", spec.name));
  set("source_revision", "simulated");
  set("epochs", absl::StrCat((spec.steps + kStepsPerEpoch - 1) / kStepsPerEpoch));
  set("seed", absl::StrCat(place.seed));
  set("tasks", absl::StrCat(spec.tasks));
}

void TaskRecord::Event(std::string_view kind, int64_t time_ns, std::string_view message,
                       std::span<const client::Recorder::EventField> fields) {
  recorder_now_ns = time_ns;
  recorder_.Event(kind, message, fields);
}

void TaskRecord::Step(const JobStep& job, const TaskStep& own, int64_t step, int64_t time_ns) {
  client::Recorder& r = recorder_;
  r.Set(loss_, own.loss);
  r.Set(grad_norm_, own.grad_norm);
  r.Set(param_norm_, own.param_norm);
  r.Set(update_norm_, job.update_norm);
  r.Set(accuracy_, job.accuracy);
  r.Set(learning_rate_, job.learning_rate);
  r.Set(step_time_, job.seconds);
  r.Set(data_wait_, own.data_wait);
  r.Set(compute_, own.compute);
  r.Set(comm_wait_, own.comm_wait);
  if (job.eval_seconds > 0) {
    r.Set(eval_loss_, job.eval_loss);
    r.Set(eval_accuracy_, job.eval_accuracy);
    r.Set(eval_, job.eval_seconds);
  }
  if (job.checkpoint_seconds > 0) r.Set(checkpoint_, job.checkpoint_seconds);
  r.Add(tokens_, JobModel::kTokensPerTask);
  r.Add(examples_, static_cast<double>(JobModel::kTokensPerTask) / kSequence);
  r.Set(epoch_, static_cast<double>(step) / kStepsPerEpoch);
  r.CommitStep(step, time_ns);
}

void TaskRecord::Abandon() {
  // Leaked on purpose: its destructor is what marks the ring.
  static_cast<void>(std::make_unique<client::Recorder>(std::move(recorder_)).release());
  recorder_ = client::Recorder();
}

}  // namespace tacho::fleet
