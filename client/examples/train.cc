// A small training that really learns, and how a trainer records itself.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <numbers>
#include <random>
#include <span>
#include <string>
#include <thread>

#include "client/examples/mlp.h"
#include "client/examples/train_flags.h"
#include "client/recorder.h"

namespace tacho::example {
namespace {

constexpr int kBatchSize = 64;
constexpr int kPointsPerTask = 4096;
constexpr int kEvalPoints = 1024;
constexpr int64_t kEvalEvery = 50;  // Steps.
constexpr double kPeakLearningRate = 0.05;
constexpr double kLearned = 0.95;  // Accuracy; guessing reaches 0.5.

// Linear warm-up over the first twentieth, then half a cosine down to a hundredth.
double LearningRate(int64_t step, int64_t steps) {
  const int64_t warmup = steps / 20 + 1;
  if (step < warmup) return kPeakLearningRate * double(step + 1) / double(warmup);
  const double done = double(step - warmup) / double(std::max<int64_t>(steps - warmup, 1));
  const double cosine = 0.5 * (1.0 + std::cos(std::numbers::pi * done));
  return kPeakLearningRate * (0.01 + 0.99 * cosine);
}

struct Metrics {
  explicit Metrics(client::Recorder* recorder)
      : loss(recorder->Gauge("loss", "nats", "Mean cross-entropy of the step's batch.")),
        learning_rate(recorder->Gauge("learning_rate", "1", "Learning rate of the step.")),
        grad_norm(recorder->Gauge("grad_norm", "1", "Euclidean norm of the gradient.")),
        update_seconds(recorder->Histogram("update_seconds", "s",
                                           "Time that the steps' gradients and updates took.",
                                           {.first = 1e-5, .factor = 2, .count = 16})),
        examples_per_second(
            recorder->Gauge("examples_per_second", "examples/s", "Examples trained on a second.")),
        examples(recorder->Counter("examples", "examples", "Examples trained on so far.")),
        accuracy(recorder->Gauge("accuracy", "1",
                                 "Share of held-out points that are told apart, now and then.")) {}

  const client::Metric loss;
  const client::Metric learning_rate;
  const client::Metric grad_norm;
  const client::HistogramMetric update_seconds;
  const client::Metric examples_per_second;
  const client::Metric examples;
  const client::Metric accuracy;
};

class Training {
 public:
  Training(const TrainFlags& flags, client::Recorder* recorder)
      : flags_(flags),
        recorder_(*recorder),
        metrics_(recorder),
        model_(flags.seed),
        // Each task draws points of its own; all are judged by the same ones.
        shard_(MakeSpirals(kPointsPerTask,
                           flags.seed + uint64_t{1000} * (flags.task.value_or(0) + 1))),
        held_out_(MakeSpirals(kEvalPoints, flags.seed + 500)),
        random_(flags.seed + flags.task.value_or(0)) {}

  // Returns the accuracy at the end.
  double Run() {
    DescribeAttempt();
    double accuracy = 0;
    for (int64_t step = 0; step < flags_.steps; ++step) {
      client::StepScope scope = recorder_.Step(step);
      const Mlp::StepResult result = RecordStep(step, &scope);
      const bool last = step + 1 == flags_.steps;
      if (last || step % kEvalEvery == 0) {
        scope.Phase("eval");
        accuracy = model_.Accuracy(held_out_);
        recorder_.Set(metrics_.accuracy, accuracy);
      }
      scope.End();
      if (last || step % std::max<int64_t>(flags_.steps / 10, 1) == 0) {
        std::printf("step %lld of %lld: loss %.4f, accuracy %.3f\n", static_cast<long long>(step),
                    static_cast<long long>(flags_.steps), result.loss, accuracy);
        std::fflush(stdout);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(flags_.step_delay_ms));
    }
    recorder_.Event("ended", accuracy >= kLearned ? "Learned." : "Did not learn.");
    return accuracy;
  }

 private:
  void DescribeAttempt() {
    recorder_.SetAttribute("model", "mlp-2-32-32-1");
    recorder_.SetAttribute("parameters", model_.parameter_count());
    recorder_.SetAttribute("batch_size", kBatchSize);
    recorder_.SetAttribute("planned_steps", flags_.steps);
    recorder_.SetAttribute("device_kind", "cpu");
    recorder_.SetAttribute("device_count", flags_.tasks);
    recorder_.SetAttribute("seed", flags_.seed);
    recorder_.Event("attempt_started", "Training on two spirals.");
  }

  Mlp::StepResult RecordStep(int64_t step, client::StepScope* scope) {
    scope->Phase("data");
    const std::span<const Point> batch = NextBatch();
    scope->Phase("compute");
    const auto begin = std::chrono::steady_clock::now();
    const double rate = LearningRate(step, flags_.steps);
    const Mlp::StepResult result = model_.TrainStep(batch, rate);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    scope->EndPhase();
    recorder_.Set(metrics_.loss, result.loss);
    recorder_.Set(metrics_.learning_rate, rate);
    recorder_.Set(metrics_.grad_norm, result.gradient_norm);
    recorder_.Observe(metrics_.update_seconds, took.count());
    recorder_.Set(metrics_.examples_per_second, kBatchSize / took.count());
    recorder_.Add(metrics_.examples, kBatchSize);
    return result;
  }

  std::span<const Point> NextBatch() {
    std::uniform_int_distribution<size_t> pick(0, shard_.size() - 1);
    for (Point& point : batch_) point = shard_[pick(random_)];
    return batch_;
  }

  const TrainFlags flags_;
  client::Recorder& recorder_;
  const Metrics metrics_;
  Mlp model_;
  const std::vector<Point> shard_;
  const std::vector<Point> held_out_;
  std::mt19937_64 random_;
  std::array<Point, kBatchSize> batch_;
};

int Main(int argc, const char* const* argv) {
  TrainFlags flags;
  const std::string trouble = ParseTrainFlags(argc, argv, &flags);
  if (!trouble.empty()) {
    std::fprintf(stderr, "tacho-example-train: %s\n", trouble.c_str());
    return 2;
  }
  if (flags.help) {
    std::fputs(kTrainHelp, stdout);
    return 0;
  }
  client::Recorder recorder = client::Recorder::Open({.directory = flags.ring_dir,
                                                      .job = flags.job,
                                                      .task = flags.task,
                                                      .attempt = flags.attempt});
  const double accuracy = Training(flags, &recorder).Run();
  if (accuracy >= kLearned) return 0;
  std::fprintf(stderr, "tacho-example-train: accuracy %.3f is below %.2f: it did not learn\n",
               accuracy, kLearned);
  return 1;
}

}  // namespace
}  // namespace tacho::example

int main(int argc, char** argv) { return tacho::example::Main(argc, argv); }
