// Computes a product of matrices whose result is known, on each chip, through the framework that is
// installed: in a process of its own, which is killed at its deadline.
#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/diagnose/child_process.h"
#include "agent/diagnose/context.h"
#include "client/ring/ring_reader.h"

namespace tacho::agent {
namespace {

namespace fs = std::filesystem;

// Tells a line a device: "tacho <framework> <version> <device> ok|wrong <seconds>", words without
// spaces. Rows of the first matrix hold their number, the second is all ones, so each row of the
// product is its number times the length: every value is exact in float32.
constexpr char kScript[] = R"(
import os, sys, time
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
SIZE = 256

def told(framework, version, device, right, seconds):
    print("tacho", framework, version, str(device).replace(" ", "_"),
          "ok" if right else "wrong", "%.3f" % seconds, flush=True)

def by_jax():
    import jax, jax.numpy as jnp
    for device in jax.local_devices():
        begin = time.time()
        with jax.default_device(device):
            rows = jnp.arange(SIZE, dtype=jnp.float32).reshape(SIZE, 1)
            product = (rows * jnp.ones((SIZE, SIZE), jnp.float32)) @ jnp.ones((SIZE, SIZE), jnp.float32)
            right = bool((product == rows * SIZE).all())
        told("jax", jax.__version__, device, right, time.time() - begin)

def by_torch():
    import torch
    names = ["cuda:%d" % i for i in range(torch.cuda.device_count())] or ["cpu"]
    for name in names:
        begin = time.time()
        rows = torch.arange(SIZE, dtype=torch.float32, device=name).reshape(SIZE, 1)
        product = (rows * torch.ones(SIZE, SIZE, device=name)) @ torch.ones(SIZE, SIZE, device=name)
        told("torch", torch.__version__, name, bool((product == rows * SIZE).all()), time.time() - begin)

def by_tensorflow():
    import tensorflow as tf
    devices = tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")
    for device in devices:
        begin = time.time()
        with tf.device(device.name):
            rows = tf.reshape(tf.range(SIZE, dtype=tf.float32), (SIZE, 1))
            product = (rows * tf.ones((SIZE, SIZE))) @ tf.ones((SIZE, SIZE))
            right = bool(tf.reduce_all(product == rows * SIZE))
        told("tensorflow", tf.__version__, device.name, right, time.time() - begin)

import importlib.util
for name, run in (("jax", by_jax), ("torch", by_torch), ("tensorflow", by_tensorflow)):
    if importlib.util.find_spec(name) is None:
        continue
    try:
        run()
    except Exception as error:
        print("tacho-error", name, " ".join(str(error).split())[:500], flush=True)
    break
)";

// Finds a ring whose trainer is alive: its chips are taken and should not be disturbed.
std::string LiveTrainer(const std::string& rings) {
  std::error_code error;
  fs::directory_iterator entry(rings, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string path = entry->path().string();
    if (!absl::EndsWith(path, ".ring")) continue;
    const auto reader = client::RingReader::Open(path);
    if (reader.ok() && (*reader)->WriterAlive()) return (*reader)->info().job;
  }
  return "";
}

std::vector<Finding> ReadOutput(const ChildOutput& output) {
  constexpr size_t kWords = 6;
  std::vector<Finding> findings;
  for (absl::string_view line : absl::StrSplit(output.text, '\n')) {
    if (absl::ConsumePrefix(&line, "tacho-error ")) {
      findings.push_back(
          {.severity = Severity::kFailed,
           .message = std::string(line),
           .remedy = "if a trainer holds the chips, wait for its end; otherwise repair the "
                     "installation of the framework"});
      continue;
    }
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    if (words.size() != kWords || words[0] != "tacho") continue;
    const bool right = words[4] == "ok";
    findings.push_back(
        {.subject = words[3],
         .severity = right ? Severity::kOk : Severity::kFailed,
         .message = absl::StrCat(
             words[1], " ", words[2],
             right ? ": the product is right, after " : ": THE PRODUCT IS WRONG, after ", words[5],
             " s"),
         .remedy = right ? "" : "take the chip out of service: it computes wrong results",
         .figures = {{"framework", words[1]}, {"version", words[2]}, {"seconds", words[5]}}});
  }
  return findings;
}

std::vector<Finding> CheckCompute(const std::string& python, const std::string& rings, bool always,
                                  absl::Duration timeout) {
  if (!always) {
    const std::string job = LiveTrainer(rings);
    if (!job.empty()) {
      return {{.severity = Severity::kInfo,
               .message = absl::StrCat("not tried, because the job ", job,
                                       " runs here; --compute always tries anyway")}};
    }
  }
  const auto output = RunChild({python, "-"}, kScript, timeout);
  if (absl::IsNotFound(output.status())) {
    return {{.severity = Severity::kInfo,
             .message =
                 absl::StrCat("not tried: cannot find ", python, "; name a Python with --python")}};
  }
  if (!output.ok()) {
    return {
        {.severity = Severity::kFailed,
         .message = std::string(output.status().message()),
         .remedy = "a chip or its driver hangs, or a trainer holds the chip: see the kernel log"}};
  }
  std::vector<Finding> findings = ReadOutput(*output);
  if (!findings.empty()) return findings;
  if (output->exit_status == 0) {
    return {{.severity = Severity::kInfo,
             .message =
                 absl::StrCat("not tried: ", python, " has neither jax nor torch nor tensorflow")}};
  }
  return {{.severity = Severity::kFailed,
           .message = absl::StrCat(python, " ended with ", output->exit_status, ": ",
                                   output->text.substr(0, 300)),
           .remedy = "repair the installation of Python or the framework"}};
}

}  // namespace

std::vector<Check> ComputeChecks(const DiagnoseContext& context) {
  if (context.compute == DiagnoseContext::Compute::kNever) return {};
  const bool always = context.compute == DiagnoseContext::Compute::kAlways;
  return {
      {.name = "compute",
       // The child is killed before.
       .deadline = context.compute_timeout + absl::Seconds(5),
       .run =
           [python = context.python, always, timeout = context.compute_timeout,
            rings = context.config.sources().rings().directory()] {
             return CheckCompute(python, rings, always, timeout);
           },
       .remedy = "a process that uses a chip does not end even when killed: restart the machine"}};
}

}  // namespace tacho::agent
