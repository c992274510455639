// One task of a training job: records through the client library, and keeps what it recorded.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>

#include "client/recorder.h"
#include "tests/chaos/record.h"

namespace tacho::chaos {

// One thread. Everything recorded goes into a Record of the campaign's, which must outlive it.
class Trainer {
 public:
  Trainer(std::string ring_dir, std::string job, uint32_t task, uint64_t seed, Record* record);

  // Writes rows, and now and then an event, an attribute, a metric that is new; rarely it ends and
  // begins its next attempt, with another ring.
  void Train(int rows);
  void End() { recorder_.reset(); }

 private:
  void Begin();
  void Row();
  void Event();
  void Attribute();
  double Value();

  const std::string ring_dir_;
  const std::string job_;
  const uint32_t task_;
  std::mt19937_64 random_;
  Record* const record_;
  std::optional<client::Recorder> recorder_;
  uint32_t attempt_ = 0;
  uint32_t metrics_ = 1;
  int64_t time_ns_;
  int64_t step_ = 0;
  int64_t step_of_ring_ = -1;  // Its last row's.
  uint64_t events_ = 0;
  uint64_t attributes_ = 0;
};

}  // namespace tacho::chaos
