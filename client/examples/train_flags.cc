#include "client/examples/train_flags.h"

#include <charconv>
#include <string_view>

namespace tacho::example {
namespace {

// Past this a delay is a typing error rather than a wish.
constexpr int64_t kMaxStepDelayMs = 60'000;
constexpr int64_t kMaxSteps = 1'000'000'000;

template <typename Number>
bool Parse(std::string_view text, Number* out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc() && end == text.data() + text.size();
}

template <typename Number>
bool Parse(std::string_view text, std::optional<Number>* out) {
  return Parse(text, &out->emplace());
}

// False if there is no such flag or its value is wrong.
bool Set(std::string_view name, std::string_view value, TrainFlags* flags) {
  if (name == "--job") {
    flags->job = value;
    return !value.empty();
  }
  if (name == "--ring-dir") {
    flags->ring_dir = value;
    return !value.empty();
  }
  if (name == "--task") return Parse(value, &flags->task);
  if (name == "--attempt") return Parse(value, &flags->attempt);
  if (name == "--tasks") return Parse(value, &flags->tasks) && flags->tasks > 0;
  if (name == "--seed") return Parse(value, &flags->seed);
  if (name == "--steps") {
    return Parse(value, &flags->steps) && flags->steps > 0 && flags->steps <= kMaxSteps;
  }
  if (name == "--step-delay-ms") {
    return Parse(value, &flags->step_delay_ms) && flags->step_delay_ms >= 0 &&
           flags->step_delay_ms <= kMaxStepDelayMs;
  }
  return false;
}

}  // namespace

const char kTrainHelp[] =
    R"(tacho-example-train: trains a small neural network on this processor and records its run.

The network learns to tell two interleaved spirals apart. What is recorded of every step (loss,
learning rate, gradient norm, step time, examples a second, and now and then the accuracy on points
that it was not trained on) lies in a ring that tacho-agent reads.

  --job NAME          The job's name. Default: $TACHO_JOB. Without one nothing is recorded.
  --task N            Which task of the job this is. Default: $TACHO_TASK, 0.
  --tasks N           How many tasks there are; each trains on points of its own. Default: 1.
  --attempt N         Which start of the job this is. Default: $TACHO_ATTEMPT, 0.
  --steps N           Steps to train. Default: 2000.
  --ring-dir DIR      Where the ring is created. Default: $TACHO_RING_DIR, /run/tacho.
  --step-delay-ms M   Pause after each step, so that there is something to watch. Default: 0.
  --seed S            Seed of weights and points. Default: 1.
  --help              This text.

Exits with 0 if the network learned, 1 if its accuracy stayed below 95 %, 2 on a wrong argument.
)";

std::string ParseTrainFlags(int argc, const char* const* argv, TrainFlags* flags) {
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--help" || argument == "-h") {
      flags->help = true;
      return "";
    }
    const size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    std::string value;
    if (equals != std::string::npos) {
      value = argument.substr(equals + 1);
    } else if (i + 1 < argc) {
      value = argv[++i];
    }
    if (!Set(name, value, flags)) {
      return "unknown argument or wrong value: " + name + " " + value + " (try --help)";
    }
  }
  if (flags->task.value_or(0) >= flags->tasks && flags->task.has_value() && flags->tasks > 1) {
    return "--task must be below --tasks";
  }
  return "";
}

}  // namespace tacho::example
